package config_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
	"pgfsm/internal/config"
	"pgfsm/internal/hook"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
)

// A clientBundle is a bundle that allows all embedded tools of one coding agent.
type clientBundle struct {
	*policy.Bundle
	client  string
	catalog *policy.Catalog
}

func mustClientBundle(t *testing.T, client string) *clientBundle {
	t.Helper()
	l, err := load(map[string]string{
		"pgfsm.yaml":     "version: 1\nservers:\n  " + client + ": {kind: client, tools: builtin}\nallowlist: allowlist.json\n",
		"allowlist.json": "{}",
	})
	check.NoError(t, err)
	listing := policy.Listing{Server: client, Status: policy.ServerUp,
		Pages: []canonical.Text{canonical.Text(l.Servers[0].ToolList)}}
	sent, err := listing.Sent()
	check.NoError(t, err)
	var names []string
	for _, tool := range sent {
		names = append(names, tool.Name)
	}
	c := l.Content
	c.Input.Rules = nil // they take long to compile, and say nothing of tools
	c.Allowlist = []policy.Allowance{{Server: client, Tools: names}}
	b, err := policy.Compile(c)
	check.NoError(t, err)
	return &clientBundle{b, client, b.Catalog("", []policy.Listing{listing})}
}

// validate judges the arguments of a call.
func (b *clientBundle) validate(t *testing.T, tool, args string) policy.Code {
	t.Helper()
	plan, v := policy.ReadCall([]byte(`{"type":"call_tool","server":"`+b.client+`","tool":"`+tool+`","args":`+args+`}`), b.Limits())
	if plan == nil {
		t.Fatal(v.Reason)
	}
	_, v = b.Validate(b.catalog, plan, nil)
	return v.Code
}

// Each embedded tool can be called, and takes the arguments that its schema names, and no others.
func TestEmbeddedToolsAreClosed(t *testing.T) {
	if diff := cmp.Diff(slices.Sorted(slices.Values(hook.Clients())), config.Clients()); diff != "" {
		t.Errorf("Clients() are not those whose hooks are known (-hooks +tools):\n%s", diff)
	}
	for _, client := range config.Clients() {
		t.Run(client, func(t *testing.T) {
			b := mustClientBundle(t, client)
			for _, s := range b.catalog.Servers {
				for _, e := range s.LeftOut {
					t.Errorf("%q is no tool: %s", e.Name, e.Reason)
				}
				for _, tool := range s.Tools {
					if !tool.Effective() || tool.Description == "" {
						t.Errorf("%s cannot be called, or has no description: %s %s", tool.Name, tool.Code, tool.Reason)
					}
					if open := tool.Open(); len(open) > 0 {
						t.Errorf("%s takes members that its schema does not name, at %q", tool.Name, open)
					}
					if code := b.validate(t, tool.Name, `{"not_known": 1}`); code != policy.CodeArgumentsInvalid {
						t.Errorf("%s with an argument that nobody knows: code %q, want %q", tool.Name, code, policy.CodeArgumentsInvalid)
					}
				}
			}
		})
	}
}

// Arguments in the form in which agents send them to their hooks.
func TestEmbeddedToolsTakeWhatAgentsSend(t *testing.T) {
	for _, tt := range []struct{ name, client, tool, args string }{
		{"claude-shell", "claude", "Bash", `{"command":"git status","description":"Show the working tree"}`},
		{"claude-background", "claude", "Bash", `{"command":"make","timeout":600000,"run_in_background":true}`},
		{"claude-read", "claude", "Read", `{"file_path":"/srv/app/main.go","offset":1,"limit":200}`},
		{"claude-edit", "claude", "Edit", `{"file_path":"/srv/app/main.go","old_string":"a","new_string":"b","replace_all":false}`},
		{"claude-grep", "claude", "Grep", `{"pattern":"x","-n":true,"-A":3,"output_mode":"content"}`},
		{"claude-agent", "claude", "Agent", `{"description":"Look","prompt":"Look around","subagent_type":"Explore"}`},
		{"claude-todo", "claude", "TodoWrite", `{"todos":[{"content":"a","status":"pending","activeForm":"b"}]}`},
		{"claude-question", "claude", "AskUserQuestion",
			`{"questions":[{"question":"a","header":"b","multiSelect":false,"options":[{"label":"c","description":"d"},{"label":"e","description":"f"}]}]}`},
		{"codex-shell", "codex", "Bash", `{"command":"git status"}`},
		{"codex-patch", "codex", "apply_patch", `{"command":"*** Begin Patch\n*** End Patch"}`},
		{"gemini-shell", "gemini", "run_shell_command", `{"command":"git status"}`},
		{"gemini-write", "gemini", "write_file", `{"file_path":"a","content":"b"}`},
		{"cursor-shell", "cursor", "Shell", `{"command":"git status","cwd":"","timeout":30000}`},
		{"cursor-shell-before-execution", "cursor", "Shell", `{"command":"git status"}`},
		{"cursor-read", "cursor", "Read", `{"file_path":"/home/ada/.ssh/id"}`},
		{"vscode-shell", "vscode", "run_in_terminal", `{"command":"ls","explanation":"a","goal":"b","isBackground":false,"timeout":0}`},
		{"vscode-copilot", "vscode", "Bash", `{"command":"ls"}`},
		{"vscode-create", "vscode", "create_file", `{"filePath":"/a","content":"b"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if code := mustClientBundle(t, tt.client).validate(t, tt.tool, tt.args); code != "" {
				t.Errorf("the code is %q, want the arguments accepted", code)
			}
		})
	}
}

// An approval binds the way to the server. For a coding agent, that is its kind and its name.
func TestConnectionOfACodingAgent(t *testing.T) {
	connection := func(server, name, tools string) canonical.Digest {
		t.Helper()
		l, err := load(map[string]string{
			"pgfsm.yaml":     "version: 1\nservers:\n  " + server + "\nallowlist: allowlist.json\ninput: {defaults: false}\n",
			"allowlist.json": "{}",
			"tools.json":     `{"tools": [{"name": "` + tools + `", "inputSchema": {"type": "object"}}]}`,
		})
		check.NoError(t, err)
		b, err := policy.Compile(l.Content)
		check.NoError(t, err)
		return b.Connection(name)
	}

	agent := connection("claude: {kind: client, tools: builtin}", "claude", "run")
	if agent == "" {
		t.Fatal("the coding agent has no connection, want a digest")
	}
	if got := connection("claude: {kind: client, tools: tools.json}", "claude", "run"); got != agent {
		t.Errorf("with other tools the connection is %s, want %s: pins bind the tools", got.Short(), agent.Short())
	}
	for _, other := range []struct{ server, name string }{
		{"codex: {kind: client, tools: builtin}", "codex"},
		{"claude: {command: claude}", "claude"},
	} {
		if got := connection(other.server, other.name, "run"); got == agent {
			t.Errorf("%s has the connection of the coding agent claude, want another", other.server)
		}
	}
}
