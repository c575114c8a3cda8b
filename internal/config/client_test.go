package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
)

func TestOurReferences(t *testing.T) {
	for _, c := range []struct{ name, in, want, says string }{
		{"none", "a $ b } $", "a $ b } $", ""},
		{"of-claude", "Bearer ${TOKEN}", "Bearer ${env:TOKEN}", ""},
		{"of-vs-code", "${env:TOKEN}", "${env:TOKEN}", ""},
		{"variable-that-looks-like-the-clients", "${env:workspaceFolder}", "${env:workspaceFolder}", ""},
		{"default", "${A:-b}", "", "only the client"},
		{"folder", "${workspaceFolder}/x", "", "only the client"},
		{"file", "${file:/etc/passwd}", "", "only the client"},
		{"nothing", "${}", "", "only the client"},
		{"two-dollars", "$${A}", "", "only the client"},
		{"open", "${A", "", "only the client"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, f := ourReferences(c.in)
			if got != c.want || !strings.Contains(f.problem, c.says) || (f.problem == "") != (c.says == "") {
				t.Errorf("ourReferences(%q) = %q, %q; want %q, %q in it", c.in, got, f.problem, c.want, c.says)
			}
		})
	}
}

// TestReadClientRefuses: an entry that would run something else in pgfsm than in the client is not copied.
func TestReadClientRefuses(t *testing.T) {
	for _, c := range []struct{ name, entry, says string }{
		{"text", `"npx"`, "must be an object"},
		{"nothing", `{}`, "has none of command, url"},
		{"both", `{"command": "a", "url": "https://h.example"}`, "url does not go with command"},
		{"unknown-type", `{"type": "websocket", "url": "https://h.example"}`, `type is "websocket"`},
		{"working-folder", `{"command": "a", "cwd": "/"}`, "cwd is not supported"},
		{"file-of-variables", `{"command": "a", "envFile": ".env"}`, "envFile is not supported"},
		{"program-for-headers", `{"url": "https://h.example", "headersHelper": "a"}`, "headersHelper is not supported"},
		{"reference-in-command", `{"command": "${A}"}`, "command has a ${…}"},
		{"reference-in-args", `{"command": "a", "args": ["${A}"]}`, "args has a ${…}"},
		{"reference-in-url", `{"url": "https://${A}"}`, "url has a ${…}"},
		{"reference-of-the-client", `{"command": "a", "env": {"A": "${workspaceFolder}"}}`, "env.A has a ${…} that only the client can read"},
		{"number-in-env", `{"command": "a", "env": {"A": 1}}`, "env.A must be text"},
		{"bidi-in-args", `{"command": "a", "args": ["\u202e"]}`, "args[0] holds"},
		{"password-in-url", `{"url": "https://u:hidden@h.example"}`, "url holds a user name or password"},
		{"header-over-plain-http", `{"url": "http://h.example", "headers": {"X-A": "hidden-1"}}`, "headers could be read on the way"},
		{"header-twice", `{"url": "https://h.example", "headers": {"X-A": "hidden-1", "x-a": "hidden-2"}}`, `"x-a" appears twice`},
		{"header-of-the-transport", `{"url": "https://h.example", "headers": {"Host": "hidden-1"}}`, "none that the transport sets"},
		{"disabled", `{"command": "a", "disabled": true}`, "it is disabled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			servers, err := ReadClient("m.json", []byte(`{"mcpServers": {"a": `+c.entry+`}}`))
			check.NoError(t, err)
			if s := servers[0]; !strings.Contains(s.Refused, c.says) || s.Runs != "" || strings.Contains(s.Refused, "hidden") {
				t.Errorf("ReadClient(%s) = %+v, want it refused with %q", c.entry, s, c.says)
			}
		})
	}
	for _, c := range []struct{ name, text, says string }{
		{"both-keys", `{"servers": {}, "mcpServers": {}}`, "has both mcpServers and servers"},
		{"no-servers", `{"a": 1}`, "has no mcpServers"},
		{"list", `{"mcpServers": []}`, "must be an object of names and values"},
		{"server-twice", `{"mcpServers": {"a": {}, "a": {}}}`, "duplicate object member name"},
		{"comment", "{\n// hidden\n}", "m.json:2:1: not JSON: invalid character '/' at start of value\n       JSON has no comments"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := ReadClient("m.json", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("ReadClient(%s) = %v, want %q", c.text, err, c.says)
			}
		})
	}
}

// TestImported shows that what init writes is read as what the entries say, whatever that is.
func TestImported(t *testing.T) {
	text := `{"servers": {
		"null": {"command": "./bin/a", "args": ["-y", "# x", "a: b", "é\u001f"[0:0]], "env": {"TOKEN": "literal-1"}},
		"1e5": {"type": "streamable-http", "url": "https://h.example/mcp?key=literal-2", "headers": {"X-A": "Bearer ${A}", "X-B": "${env:B} $"}},
		"lines": {"command": "sh", "args": ["a\n  evil: {command: evil}"], "env": {"PATH": "literal-3"}},
		"": {"command": "a"},
		"a\nb": {"command": "a"}
	}}`
	text = strings.Replace(text, `"é\u001f"[0:0]`, `"\"é😀"`, 1)
	servers, err := ReadClient("../m.json", []byte(text))
	check.NoError(t, err)
	var shown []string
	for _, s := range servers {
		shown = append(shown, s.Runs, s.Warning)
	}
	if diff := cmp.Diff([]string{
		`{command: ./bin/a, args: ["-y", "# x", "a: b", "\"é😀"], env: {TOKEN: "…"}}`, "",
		`{type: http, url: "https://h.example/mcp?…", headers: {X-A: "…${env:A}", X-B: "${env:B}…"}}`, "",
		`{command: sh, args: ["a\n  evil: {command: evil}"], env: {PATH: "…"}}`, "sets PATH, which can run other code",
		"", "", "", "",
	}, shown); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	written := string(Imported("../m.json", servers))
	if !strings.Contains(written, "\n  # It sets PATH, which can run other code.\n") {
		t.Errorf("Imported() = %s, want the warning", written)
	}
	l, err := Load("d/pgfsm.yaml", openMap(map[string]string{"d/pgfsm.yaml": written, "d/allowlist.json": "{}"}), Overrides{})
	if err != nil {
		t.Fatalf("%v\n%s", err, written)
	}
	want := []Upstream{
		{Name: "null", Type: TypeStdio, Command: "bin/a", Args: []string{"-y", "# x", "a: b", `"é😀`}, Env: Table[string]{{"TOKEN", "literal-1"}}},
		{Name: "1e5", Type: TypeHTTP, URL: "https://h.example/mcp?key=literal-2", Headers: Table[string]{{"X-A", "Bearer ${env:A}"}, {"X-B", "${env:B} $"}}},
		{Name: "lines", Type: TypeStdio, Command: "sh", Args: []string{"a\n  evil: {command: evil}"}, Env: Table[string]{{"PATH", "literal-3"}}},
	}
	for i, s := range l.Servers {
		s.ConnectTimeout, s.Timeout, s.TimeoutTotal, s.IdleTimeout, s.Sessions = 0, 0, 0, 0, ""
		if i >= len(want) || !cmp.Equal(want[i], s) {
			t.Errorf("server %d is %+v, want one of %+v", i, s, want)
		}
	}
}

func TestClientServersAtTheBound(t *testing.T) {
	var entries []string
	for i := range policy.MaxServers + 1 {
		entries = append(entries, fmt.Sprintf(`"s%d": {"command": "a"}`, i))
	}
	servers, err := ReadClient("m.json", []byte(`{"mcpServers": {`+strings.Join(entries, ", ")+`}}`))
	check.NoError(t, err)
	if last := servers[policy.MaxServers-1]; last.Refused != "" {
		t.Errorf("server %d is refused: %s", policy.MaxServers, last.Refused)
	}
	if past := servers[policy.MaxServers]; past.Refused == "" {
		t.Errorf("server %d is not refused", policy.MaxServers+1)
	}
	if _, err := parseConfig("c.yaml", Imported("m.json", servers)); err != nil {
		t.Errorf("Parse(Imported) = %v", err)
	}
}

func TestCanRunCode(t *testing.T) {
	for _, name := range []string{"LD_PRELOAD", "NODE_OPTIONS", "Path", "npm_config_registry", "BASH_FUNC_ls%%"} {
		if !canRunCode(name) {
			t.Errorf("canRunCode(%s) = false, want true", name)
		}
	}
	for _, name := range []string{"", "LD", "MYPATH", "API_KEY", "NODE_ENV"} {
		if canRunCode(name) {
			t.Errorf("canRunCode(%s) = true, want false", name)
		}
	}
}
