package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const linkedValue = `{"url":"http://127.0.0.1:8787/mcp"}`

// TestSpliceEntry: the entry stands where it belongs, in the style of the file, and every other byte is as it was.
func TestSpliceEntry(t *testing.T) {
	const url = `"url": "http://127.0.0.1:8787/mcp"`
	for _, c := range []struct {
		name     string
		comments bool
		was      string
		change   string
		line     int
		want     string
	}{
		{"no-file", false, "", linkAdded, 3, "{\n  \"mcpServers\": {\n    \"pgfsm\": {\n      " + url + "\n    }\n  }\n}\n"},
		{"blank-file", false, " \n\n", linkAdded, 3, "{\n  \"mcpServers\": {\n    \"pgfsm\": {\n      " + url + "\n    }\n  }\n}\n"},
		{"comment-alone", true, "// mine\n", linkAdded, 4, "// mine\n{\n  \"mcpServers\": {\n    \"pgfsm\": {\n      " + url + "\n    }\n  }\n}\n"},
		{"empty-object", false, "{}", linkAdded, 1, `{"mcpServers": {"pgfsm": {` + url + `}}}`},
		{"empty-object-over-lines", false, "{\n}\n", linkAdded, 2, "{\n  \"mcpServers\": {\n    \"pgfsm\": {\n      " + url + "\n    }\n  }\n}\n"},
		{"no-servers-yet", false, "{\n    \"a\": 1.0\n}\n", linkAdded, 3,
			"{\n    \"a\": 1.0,\n    \"mcpServers\": {\n        \"pgfsm\": {\n            " + url + "\n        }\n    }\n}\n"},
		{"empty-servers", false, "{\n\t\"mcpServers\": {},\n\t\"a\": 1e400\n}", linkAdded, 3,
			"{\n\t\"mcpServers\": {\n\t\t\"pgfsm\": {\n\t\t\t" + url + "\n\t\t}\n\t},\n\t\"a\": 1e400\n}"},
		{"behind-others", false, "{\n \"mcpServers\": {\n  \"a\": {\"command\":\"\\u0061\"}\n }\n}\n", linkAdded, 4,
			"{\n \"mcpServers\": {\n  \"a\": {\"command\":\"\\u0061\"},\n  \"pgfsm\": {\n   " + url + "\n  }\n }\n}\n"},
		{"one-line", false, `{"mcpServers":{"a":{}},"b":"\/"}`, linkAdded, 1, `{"mcpServers":{"a":{}, "pgfsm": {` + url + `}},"b":"\/"}`},
		{"line-ends-of-windows", false, "{\r\n  \"mcpServers\": {\r\n    \"a\": {}\r\n  }\r\n}\r\n", linkAdded, 4,
			"{\r\n  \"mcpServers\": {\r\n    \"a\": {},\r\n    \"pgfsm\": {\r\n      " + url + "\r\n    }\r\n  }\r\n}\r\n"},
		{"same", false, `{"mcpServers": {"pgfsm": {"u\u0072l" : "http:\/\/127.0.0.1:8787/mcp"}}}`, linkNone, 1,
			`{"mcpServers": {"pgfsm": {"u\u0072l" : "http:\/\/127.0.0.1:8787/mcp"}}}`},
		{"another", false, "{\"mcpServers\": {\n  \"pgfsm\": {\"command\": \"old\"}, \"b\": {}\n}}", linkReplaced, 2,
			"{\"mcpServers\": {\n  \"pgfsm\": {\n    " + url + "\n  }, \"b\": {}\n}}"},
		{"another-in-one-line", false, `{"mcpServers": {"pgfsm": null, "b": {}}}`, linkReplaced, 1, `{"mcpServers": {"pgfsm": {` + url + `}, "b": {}}}`},
		{"name-in-another-place", false, `{"pgfsm": 1, "mcpServers": {"a": {"pgfsm": 2}}}`, linkAdded, 1,
			`{"pgfsm": 1, "mcpServers": {"a": {"pgfsm": 2}, "pgfsm": {` + url + `}}}`},
		{"name-in-another-spelling", false, `{"mcpServers": {"\u0070gfsm": 1}}`, linkReplaced, 1, `{"mcpServers": {"\u0070gfsm": {` + url + `}}}`},
		{"comments", true, "{ // a \"quote\n  /* { */ \"mcpServers\": { /* none */ }\n}", linkAdded, 3,
			"{ // a \"quote\n  /* { */ \"mcpServers\": {\n    \"pgfsm\": {\n      " + url + "\n    } /* none */ }\n}"},
		{"comment-behind-the-last", true, "{\"mcpServers\": {\n  \"a\": {} // mine, {\n}}", linkAdded, 3,
			"{\"mcpServers\": {\n  \"a\": {}, // mine, {\n  \"pgfsm\": {\n    " + url + "\n  }\n}}"},
		{"comma-and-comment-behind-the-last", true, "{\"mcpServers\": {\r\n  \"a\": {}, // mine\r\n}}", linkAdded, 3,
			"{\"mcpServers\": {\r\n  \"a\": {}, // mine\r\n  \"pgfsm\": {\r\n    " + url + "\r\n  },\r\n}}"},
		{"comma-behind-the-last", true, "{\"mcpServers\": {\n  \"a\": [1,],\n},}", linkAdded, 3,
			"{\"mcpServers\": {\n  \"a\": [1,],\n  \"pgfsm\": {\n    " + url + "\n  },\n},}"},
		{"comment-over-lines-behind-the-last", true, "{\"mcpServers\": {\n  \"a\": {} /* //\n */ ,\n}}", linkAdded, 3,
			"{\"mcpServers\": {\n  \"a\": {},\n  \"pgfsm\": {\n    " + url + "\n  } /* //\n */ ,\n}}"},
		{"comment-up-to-a-line-end-of-old", true, "{ // a\r\"mcpServers\": {\r\"a\": {} // b\r}}", linkAdded, 1,
			"{ // a\r\"mcpServers\": {\r\"a\": {}, \"pgfsm\": {" + url + "} // b\r}}"},
		{"slashes-in-a-text", true, `{"a": "// \" /*", "mcpServers": {"b": "*/,}"}}`, linkAdded, 1,
			`{"a": "// \" /*", "mcpServers": {"b": "*/,}", "pgfsm": {` + url + `}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := spliceEntry([]byte(c.was), c.comments, "mcpServers", "pgfsm", jsontext.Value(linkedValue))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got.text)); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if got.change != c.change || got.line != c.line {
				t.Errorf("%s at line %d, want %s at line %d", got.change, got.line, c.change, c.line)
			}
			again, err := spliceEntry(got.text, c.comments, "mcpServers", "pgfsm", jsontext.Value(linkedValue))
			if err != nil || again.change != linkNone || !bytes.Equal(again.text, got.text) {
				t.Errorf("once more: %s, %v, want that it is there already\n%s", again.change, err, again.text)
			}
		})
	}
}

// TestSpliceRefuses: a file that another reader may take for another one is left alone, and nothing of it is repeated.
func TestSpliceRefuses(t *testing.T) {
	for _, c := range []struct {
		name     string
		comments bool
		was      string
		want     string
	}{
		{"cut-off", false, "{\n \"a\": ", "2:7: this is not JSON"},
		{"not-json", false, "{\n \"sk-live\": sk-live }", "2:13: this is not JSON"},
		{"comment", false, "{\n // sk-live\n}", "2:2: this is not JSON"},
		{"comment-without-an-end", true, "{ /* sk-live }", "1:3: this is not JSON"},
		{"comma-behind-the-last", false, `{"a": 1,}`, "1:8: this is not JSON"},
		{"comma-alone", true, `{,}`, "1:2: this is not JSON"},
		{"two-commas", true, `{"a": 1,,}`, "1:9: this is not JSON"},
		{"comma-for-a-value", true, `{"a":,}`, "1:6: this is not JSON"},
		{"name-twice", false, `{"mcpServers": {}, "mcpServers": {}}`, "1:20: a name stands twice"},
		{"name-twice-in-another-spelling", false, `{"a": {"é": 1, "\u00e9": 2}}`, "1:16: a name stands twice"},
		{"text-behind", false, "{} {}", "1:3: text stands behind"},
		{"list", false, `["sk-live"]`, "1:1: the file is not a JSON object"},
		{"servers-are-a-list", false, "{\n  \"mcpServers\": [\"sk-live\"]}", `2:17: "mcpServers" is not an object`},
		{"byte-order-mark", false, "\uFEFF{}", "1:1: "},
		{"space-that-is-none", false, "\u00a0", "1:1: "},
		{"not-utf-8", false, "{\"a\": \"\xff\"}", "1:"},
		{"lone-surrogate", false, `{"a": "\ud800"}`, "1:"},
		{"text-without-an-end", true, `{"a": "sk-live // \`, "1:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := spliceEntry([]byte(c.was), c.comments, "mcpServers", "pgfsm", jsontext.Value(linkedValue))
			if err == nil {
				t.Fatalf("spliceEntry accepted it: %s", got.text)
			}
			if !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "sk-live") {
				t.Errorf("spliceEntry() = %q, want %q and nothing of the file", err, c.want)
			}
		})
	}
}

// FuzzSpliceEntry: whatever the file is, either it is refused, or the entry is in it and all else is as it was.
func FuzzSpliceEntry(f *testing.F) {
	for _, s := range []string{
		"", "{}", "{\n}", `{"mcpServers": {}}`, "{\"mcpServers\": {\n  \"a\": {}, // b\n},}", `{"mcpServers": {"pgfsm": 1}}`,
		"{ /* a */ \"mcpServers\": { /* b */ } /* c */ }", "// a", "{\r\n\t\"a\": [1,\r\n2,],\r\n}", `{"a": "\"//"}`, "//\f", "{ // a\r}",
	} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, was string, comments bool) {
		edit, err := spliceEntry([]byte(was), comments, "mcpServers", "pgfsm", jsontext.Value(linkedValue))
		if err != nil {
			return
		}
		before, after := linkMembers(t, []byte(was), comments), linkMembers(t, edit.text, comments)
		at := slices.IndexFunc(after, func(m [2]string) bool { return m[0] == "mcpServers/pgfsm" })
		if at < 0 {
			t.Fatalf("%q became %q, which has no entry", was, edit.text)
		}
		if again, err := spliceEntry(edit.text, comments, "mcpServers", "pgfsm", jsontext.Value(linkedValue)); err != nil || again.change != linkNone {
			t.Fatalf("%q became %q, and then: %v, %s", was, edit.text, err, again.change)
		}
		ours := func(m [2]string) bool { return m[0] == "mcpServers/pgfsm" }
		if diff := cmp.Diff(slices.DeleteFunc(before, ours), slices.DeleteFunc(after, ours), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q became %q; the others (-was +is):\n%s", was, edit.text, diff)
		}
		if edit.change == linkAdded && len(bytes.Trim([]byte(was), jsonSpace)) > 0 && !subsequence([]byte(was), edit.text) {
			t.Errorf("%q became %q, in which something is lost", was, edit.text)
		}
	})
}

// linkMembers are the members of a file, and those of its servers, each with its bytes.
func linkMembers(t *testing.T, text []byte, comments bool) (all [][2]string) {
	t.Helper()
	plain := text
	if comments {
		plain = withoutComments(text)
	}
	if len(bytes.Trim(plain, jsonSpace)) == 0 {
		return nil
	}
	root, err := readLinkObject(plain, 0, len(plain))
	if err != nil {
		t.Fatalf("%q cannot be read: %v", text, err)
	}
	for _, m := range root.members {
		if m.name != "mcpServers" {
			all = append(all, [2]string{m.name, string(text[m.at:m.end])})
			continue
		}
		inside, err := readLinkObject(plain, m.at, m.end)
		if err != nil {
			t.Fatalf("%q cannot be read: %v", text, err)
		}
		for _, s := range inside.members {
			all = append(all, [2]string{"mcpServers/" + s.name, string(text[s.at:s.end])})
		}
	}
	return all
}

// subsequence reports whether every byte of a that is no space stands in b, in the same order.
func subsequence(a, b []byte) bool {
	for _, c := range a {
		if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
			continue
		}
		i := bytes.IndexByte(b, c)
		if i < 0 {
			return false
		}
		b = b[i+1:]
	}
	return true
}
