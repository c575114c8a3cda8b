package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy"
)

func TestOurReferences(t *testing.T) {
	for _, c := range []struct{ name, in, want, says string }{
		{"none", "a $ b } $", "a $ b } $", ""},
		{"of-claude", "Bearer ${TOKEN}", "Bearer ${env:TOKEN}", ""},
		{"of-vs-code", "${env:TOKEN}", "${env:TOKEN}", ""},
		{"several", "${A}/${env:B}$C", "${env:A}/${env:B}$C", ""},
		{"variable-that-looks-like-the-clients", "${env:workspaceFolder}", "${env:workspaceFolder}", ""},
		{"default", "${A:-b}", "", "default value"},
		{"default-that-is-empty", "${A:-}", "", "default value"},
		{"input", "${input:token}", "", "only the client"},
		{"folder", "${workspaceFolder}/x", "", "only the client"},
		{"folder-of-a-name", "${workspaceFolder:api}", "", "only the client"},
		{"home", "${userHome}", "", "only the client"},
		{"file", "${file:/etc/passwd}", "", "only the client"},
		{"configuration", "${config:x}", "", "only the client"},
		{"command", "${command:x}", "", "only the client"},
		{"nothing", "${}", "", "only the client"},
		{"nested", "${${A}}", "", "only the client"},
		{"two-dollars", "$${A}", "", "$${"},
		{"two-dollars-behind-a-reference", "${A}$${B}", "", "$${"},
		{"open", "${A", "", "never closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, f := ourReferences(c.in)
			if got != c.want || !strings.Contains(f.problem, c.says) || (f.problem == "") != (c.says == "") {
				t.Errorf("ourReferences(%q) = %q, %q; want %q, %q in it", c.in, got, f.problem, c.want, c.says)
			}
		})
	}
}

// TestNothingOfAClientsFileIsUsedUnlisted: whatever the file holds, without a digest no server comes of it.
func TestNothingOfAClientsFileIsUsedUnlisted(t *testing.T) {
	files := map[string]string{"c.yaml": minimal + "mcp_servers: m.json\n", "allow.json": `{"docs": ["read"]}`,
		"m.json": `{"mcpServers": {"docs": {"command": "evil"}, "other": {"command": "evil"}, "off": {"command": "evil", "disabled": true}, "x\u001b": 7}}`}
	l, err := Load("c.yaml", openMap(files), Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Servers) != 1 || l.Servers[0].Command != "" || l.Servers[0].URL != "https://docs.example.com/mcp" {
		t.Errorf("servers = %+v, want the one that the configuration defines", l.Servers)
	}
	want := []string{`c.yaml:5:14: pgfsm does not start these servers of m.json, because "servers" does not list them: "other", "x\x1b"`}
	if diff := cmp.Diff(want, l.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// TestImported shows that what init writes is read as what was shown, whatever the entries say.
func TestImported(t *testing.T) {
	const path = "../a \"b\"\\é/.mcp.json"
	text := `{"mcpServers": {
		"null": {"command": "npx", "args": ["-y", "# x", "a: b", "` + strings.Repeat("é", maxComment) + `"],
			"env": {"TOKEN": "hidden-1"}},
		"1e5": {"url": "https://h.example/mcp?key=hidden-2", "headers": {"X-A": "hidden-3"}},
		"lines": {"command": "sh", "args": ["a\n  evil: {command: evil}"], "env": {"A": "x"}},
		"more": {"command": "sh", "args": ["\u2028\u0085evil: 1"]},
		"": {"command": "a"},
		"a\nb": {"command": "a"}
	}}`
	servers, err := ReadClient(path, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var refused []string
	for _, s := range servers {
		if strings.ContainsAny(s.Runs+s.Refused, "\n\u2028\u0085") || strings.Contains(s.Runs+s.Refused, "hidden-") {
			t.Errorf("%q: %q, %q; want one line without a secret", s.Name, s.Runs, s.Refused)
		}
		if s.Refused != "" {
			refused = append(refused, s.Name)
		}
	}
	if diff := cmp.Diff([]string{"more", "", "a\nb"}, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	for name, all := range map[string][]ClientServer{
		"as-judged": servers, "comments-that-are-refused-too": unrefused(servers),
	} {
		written := Imported(path, all)
		files := map[string]string{"d/pgfsm.yaml": string(written), "d/allowlist.json": "{}", "a \"b\"\\é/.mcp.json": text}
		if strings.Contains(string(written), "\n  evil") || strings.Contains(string(written), "hidden-") {
			t.Errorf("%s: a comment broke out:\n%s", name, written)
		}
		l, err := Load("d/pgfsm.yaml", openMap(files), Overrides{})
		if name != "as-judged" {
			if err == nil || strings.Contains(err.Error(), "not YAML") {
				t.Errorf("%s: Load = %v, want the faults of the entries", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		var names []string
		for _, s := range l.Servers {
			names = append(names, s.Name)
		}
		mode := l.Content.Planner.Mode
		if diff := cmp.Diff([]string{"null", "1e5", "lines"}, names); diff != "" || mode != policy.PlannerAuto {
			t.Errorf("mode %s, servers (-want +got):\n%s", mode, diff)
		}
	}
	if got := string(Imported("~/x.json", nil)); !strings.Contains(got, `mcp_servers: "./~/x.json"`) {
		t.Errorf("Imported(~/x.json) = %s, want no home folder", got)
	}
}

// unrefused are servers with plain names, as if nothing had been refused.
func unrefused(servers []ClientServer) []ClientServer {
	var out []ClientServer
	for _, s := range servers {
		if s.Refused = ""; plainName.MatchString(s.Name) {
			out = append(out, s)
		}
	}
	return out
}

func TestClientServersAtTheBound(t *testing.T) {
	var entries []string
	for i := range policy.MaxServers + 1 {
		entries = append(entries, fmt.Sprintf(`"s%d": {"command": "a"}`, i))
	}
	servers, err := ReadClient("m.json", []byte(`{"mcpServers": {`+strings.Join(entries, ", ")+`}}`))
	if err != nil {
		t.Fatal(err)
	}
	if last := servers[policy.MaxServers-1]; last.Refused != "" {
		t.Errorf("server %d is refused: %s", policy.MaxServers, last.Refused)
	}
	if past := servers[policy.MaxServers]; past.Refused == "" {
		t.Errorf("server %d is not refused", policy.MaxServers+1)
	}
	if _, err := parse("c.yaml", Imported("m.json", servers)); err != nil {
		t.Errorf("Parse(Imported) = %v", err)
	}
}
