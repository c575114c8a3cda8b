package main

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

const linkedValue = `{"url":"http://127.0.0.1:8787/mcp"}`

// TestEditEntry: the entry is in its place, and every other value is as it was.
func TestEditEntry(t *testing.T) {
	const entry = `"pgfsm":{"url":"http://127.0.0.1:8787/mcp"}`
	for _, c := range []struct{ name, was, change, want string }{
		{"no-file", "", linkAdded, `{"mcpServers":{` + entry + `}}`},
		{"blank-file", " \n\n", linkAdded, `{"mcpServers":{` + entry + `}}`},
		{"empty-object", "{}", linkAdded, `{"mcpServers":{` + entry + `}}`},
		{"no-servers-yet", "{\n    \"a\": 1.0\n}\n", linkAdded, `{"mcpServers":{` + entry + `},"a":1.0}`},
		{"beside-others", `{"mcpServers": {"a": {"command":"\u0061"}}, "b": "\/"}`, linkAdded,
			`{"mcpServers":{` + entry + `,"a":{"command":"\u0061"}},"b":"\/"}`},
		{"line-ends-of-windows", "{\r\n  \"mcpServers\": {\r\n    \"a\": 1e400\r\n  }\r\n}\r\n", linkAdded, `{"mcpServers":{` + entry + `,"a":1e400}}`},
		{"same", `{"mcpServers": {"pgfsm": {"u\u0072l" : "http:\/\/127.0.0.1:8787/mcp"}}}`, linkNone,
			`{"mcpServers": {"pgfsm": {"u\u0072l" : "http:\/\/127.0.0.1:8787/mcp"}}}`},
		{"another", `{"mcpServers": {"a": {}, "pgfsm": {"command": "old"}, "b": {}}}`, linkReplaced, `{"mcpServers":{"a":{},` + entry + `,"b":{}}}`},
		{"name-in-another-place", `{"pgfsm": 1, "mcpServers": {"a": {"pgfsm": 2}}}`, linkAdded, `{"pgfsm":1,"mcpServers":{` + entry + `,"a":{"pgfsm":2}}}`},
		{"escaped-name", `{"mcpServers": {"\u0070gfsm": 1}}`, linkReplaced, `{"mcpServers":{` + entry + `}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, change, err := editEntry([]byte(c.was), "mcpServers", "pgfsm", jsontext.Value(linkedValue))
			if err != nil || change != c.change {
				t.Fatalf("editEntry() = %s, %v, want %s", change, err, c.change)
			}
			want := jsontext.Value(c.want)
			if change != linkNone {
				if err := want.Indent(jsontext.WithIndent("  ")); err != nil {
					t.Fatal(err)
				}
				want = append(want, '\n')
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if again, change, err := editEntry(got, "mcpServers", "pgfsm", jsontext.Value(linkedValue)); err != nil || change != linkNone {
				t.Errorf("once more: %s, %v, want that it is there already\n%s", change, err, again)
			}
		})
	}
}

// TestEditEntryRefuses: a file that is not one strict JSON object is left alone, and nothing of it is repeated.
func TestEditEntryRefuses(t *testing.T) {
	for _, c := range []struct{ name, was, want string }{
		{"cut-off", "{\n \"a\": ", "line 2: this is not JSON"},
		{"not-json", "{\n \"sk-live\": sk-live }", "line 2: this is not JSON"},
		{"comment", "{\n // sk-live\n}", "line 2: this is not JSON"},
		{"trailing-comma", `{"a": 1,}`, "line 1: this is not JSON"},
		{"duplicate-name", "{\"mcpServers\": {},\n \"mcpServers\": {}}", "line 2: a name is there twice"},
		{"duplicate-name-escaped", `{"a": {"é": 1, "\u00e9": 2}}`, "line 1: a name is there twice"},
		{"text-behind", "{} {}", "text behind"},
		{"list", `["sk-live"]`, "not a JSON object"},
		{"servers-are-a-list", "{\n  \"mcpServers\": [\"sk-live\"]}", `"mcpServers" is not an object`},
		{"byte-order-mark", "\uFEFF{}", "line 1: this is not JSON"},
		{"not-utf-8", "{\"a\": \"\xff\"}", "line 1: this is not JSON"},
		{"lone-surrogate", `{"a": "\ud800"}`, "line 1: this is not JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := editEntry([]byte(c.was), "mcpServers", "pgfsm", jsontext.Value(linkedValue))
			if err == nil {
				t.Fatalf("editEntry accepted it: %s", got)
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "sk-live") {
				t.Errorf("editEntry() = %q, want %q and nothing of the file", err, c.want)
			}
		})
	}
}
