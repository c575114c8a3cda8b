package hook_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/hook"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/golden"
)

// contracts returns the inputs of a client, written from its documents, by the name of their file.
func contracts(t *testing.T, client string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", client, "*.json"))
	if err != nil || len(paths) < 4 {
		t.Fatalf("%s has %d inputs, %v, want at least 4", client, len(paths), err)
	}
	inputs := map[string][]byte{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		check.NoError(t, err)
		inputs[strings.TrimSuffix(filepath.Base(path), ".json")] = text
	}
	return inputs
}

func TestTranslateContracts(t *testing.T) {
	for _, client := range hook.Clients() {
		for name, input := range contracts(t, client) {
			t.Run(client+"/"+name, func(t *testing.T) {
				event, err := hook.Translate(client, input)
				check.NoError(t, err)
				made, err := json.Marshal(event, jsontext.WithIndent("  "), json.Deterministic(true))
				check.NoError(t, err)
				golden.File(t, filepath.Join("testdata", client, name+".event"), append(made, '\n'))

				marked, err := hook.Translate(client, append([]byte("\ufeff"), input...))
				if err != nil || marked.Kind != event.Kind {
					t.Errorf("with a byte order mark: Translate() = %s, %v, want %s", marked.Kind, err, event.Kind)
				}
			})
		}
	}
}

func TestTranslateRefuses(t *testing.T) {
	const call = `"hook_event_name":"PreToolUse","session_id":"s"`
	tests := map[string]struct{ client, input, kind, want string }{
		"no-json":                       {"claude", `hello`, "", "the input is not one JSON object"},
		"nothing":                       {"claude", ``, "", "the input is not one JSON object"},
		"null":                          {"claude", `null`, "", "the input is not one JSON object"},
		"two-objects":                   {"claude", `{}{}`, "", "the input is not one JSON object"},
		"a-name-twice":                  {"claude", `{"tool_name":"a","tool_name":"b"}`, "", "the input is not one JSON object"},
		"a-name-twice-in-the-arguments": {"claude", `{` + call + `,"tool_name":"Bash","tool_input":{"command":"a","command":"b"}}`, "", "the input is not one JSON object"},
		"unknown-client":                {"emacs", `{}`, "", `"emacs" is no client with hooks that this version knows; it knows claude, codex, cursor, gemini, vscode`},
		"no-event":                      {"claude", `{"session_id":"s"}`, "", `claude has no event named "" that this version knows`},
		"unknown-event":                 {"codex", `{"hook_event_name":"Stop","session_id":"s"}`, "", `codex has no event named "Stop" that this version knows`},
		"event-of-another-client":       {"gemini", `{` + call + `}`, "", `gemini has no event named "PreToolUse" that this version knows`},
		"event-is-no-text":              {"claude", `{"hook_event_name":7}`, "", "hook_event_name is not a text"},
		"no-session":                    {"claude", `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}}`, "call", "the input has no session_id"},
		"no-tool":                       {"claude", `{` + call + `,"tool_input":{}}`, "call", "the input has no tool_name"},
		"no-arguments":                  {"claude", `{` + call + `,"tool_name":"Bash"}`, "call", "tool_input is not a JSON object"},
		"arguments-are-no-object":       {"codex", `{` + call + `,"tool_name":"Bash","tool_input":"ls"}`, "call", "tool_input is not a JSON object"},
		"mcp-without-a-tool":            {"claude", `{` + call + `,"tool_name":"mcp__shop","tool_input":{}}`, "call", `the name "mcp__shop" has no server and tool`},
		"mcp-without-a-server":          {"claude", `{` + call + `,"tool_name":"mcp____x","tool_input":{}}`, "call", `the name "mcp____x" has no server and tool`},
		"mcp-of-another-server": {"claude", `{` + call + `,"tool_name":"mcp__shop__refund","tool_input":{},"mcp_server":{"name":"bank"}}`, "call",
			`the tool "mcp__shop__refund" is not one of the server "bank"`},
		"mcp-server-is-no-object":       {"claude", `{` + call + `,"tool_name":"Bash","tool_input":{},"mcp_server":"shop"}`, "call", "mcp_server does not name a server"},
		"cursor-mcp-without-a-tool":     {"cursor", `{"hook_event_name":"preToolUse","conversation_id":"c","tool_name":"MCP:","tool_input":{}}`, "call", `the name "MCP:" has no tool`},
		"cursor-mcp-arguments-no-json":  {"cursor", `{"hook_event_name":"beforeMCPExecution","conversation_id":"c","tool_name":"x","tool_input":"{"}`, "call", "tool_input is not a JSON object"},
		"cursor-shell-without-command":  {"cursor", `{"hook_event_name":"beforeShellExecution","conversation_id":"c"}`, "call", "the input has no command"},
		"a-report-with-a-wrong-error":   {"claude", `{"hook_event_name":"PostToolUseFailure","session_id":"s","tool_name":"Bash","tool_input":{},"error":{}}`, "failure", "error is not a text"},
		"a-prompt-that-is-not-a-text":   {"claude", `{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":{}}`, "prompt", "prompt is not a text"},
		"a-folder-that-is-not-a-folder": {"cursor", `{"hook_event_name":"sessionEnd","conversation_id":"c","workspace_roots":[7]}`, "end", "workspace_roots is not a list of texts"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			event, err := hook.Translate(tt.client, []byte(tt.input))
			if err == nil || err.Error() != tt.want {
				t.Errorf("Translate() = %v, want the error %q", err, tt.want)
			}
			if event.Kind != tt.kind {
				t.Errorf("Translate() has the kind %q, want %q", event.Kind, tt.kind)
			}
		})
	}
}

// TestTranslateCheckCommand: a shell command that only checks the hook is a call of a tool that no client has.
func TestTranslateCheckCommand(t *testing.T) {
	for name, tt := range map[string]struct{ client, input, want string }{
		"claude":  {"claude", `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":": pgfsm_hook_check","description":"a"}`, hook.CheckTool},
		"cursor":  {"cursor", `{"hook_event_name":"beforeShellExecution","command":": pgfsm_hook_check","cwd":"/"`, hook.CheckTool},
		"longer":  {"claude", `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":": pgfsm_hook_check; ls"}`, "Bash"},
		"of-mcp":  {"claude", `{"hook_event_name":"PreToolUse","tool_name":"mcp__a__b","tool_input":{"command":": pgfsm_hook_check"}`, "b"},
		"no-text": {"claude", `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":[": pgfsm_hook_check"]}`, "Bash"},
	} {
		t.Run(name, func(t *testing.T) {
			event, err := hook.Translate(tt.client, []byte(tt.input+`,"session_id":"s","conversation_id":"s"}`))
			if err != nil || event.Tool != tt.want {
				t.Errorf("Translate() has the tool %q and the error %v, want %q", event.Tool, err, tt.want)
			}
		})
	}
}

// FuzzTranslate: whatever a client sends, an event that is accepted can be sent to the gateway.
func FuzzTranslate(f *testing.F) {
	for _, client := range hook.Clients() {
		f.Add(client, []byte(`{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"mcp__a__b","tool_input":{}}`))
	}
	f.Add("cursor", []byte(`{"hook_event_name":"beforeMCPExecution","conversation_id":"c","tool_name":"x","tool_input":"{}"}`))
	f.Add("gemini", []byte(`{"hook_event_name":"BeforeTool","session_id":"s","tool_name":"x","tool_input":{},"mcp_context":{"server_name":"a","tool_name":"b"}}`))
	f.Fuzz(func(t *testing.T, client string, input []byte) {
		event, err := hook.Translate(client, input)
		if err != nil {
			return
		}
		if _, err := json.Marshal(event); err != nil {
			t.Fatalf("Marshal() = %v", err)
		}
		if event.Session == "" {
			t.Error("the event has no session")
		}
		if event.Kind == hook.KindCall && (event.Tool == "" || event.Arguments.Kind() != '{') {
			t.Errorf("the call has the tool %q and the arguments %s", event.Tool, event.Arguments)
		}
	})
}
