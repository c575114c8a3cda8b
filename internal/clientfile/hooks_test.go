package clientfile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/clientfile"
	"pgfsm/internal/hook"
	"pgfsm/internal/test/check"
)

const hookCommand = "/usr/bin/pgfsm-hook gemini --gateway http://127.0.0.1:8787"

// geminiHooks are the hooks of Gemini CLI with a list in place of that of BeforeTool.
func geminiHooks(beforeTool string) string {
	entry := `{"hooks":[{"type":"command","command":"` + hookCommand + `","timeout":10000}]}`
	return `"BeforeTool":[` + strings.ReplaceAll(beforeTool, "OURS", entry) + `],"AfterTool":[` + entry + `],"BeforeAgent":[` + entry +
		`],"SessionEnd":[` + entry + `]`
}

// TestHooksSet shows that the hooks are in their place, once, and that the hooks of others are as they were.
func TestHooksSet(t *testing.T) {
	const (
		old    = `{"hooks":[{"command":"pgfsm hook gemini --gateway http://127.0.0.1:1","type":"command"}]}`
		theirs = `{"matcher":"\u0061","hooks":[{"command":"lint"}]}`
	)
	tests := map[string]struct{ was, change, want string }{
		"no-file":              {"", clientfile.Added, `{"hooks":{` + geminiHooks("OURS") + `}}`},
		"other-settings":       {`{"a": 1.0}`, clientfile.Added, `{"hooks":{` + geminiHooks("OURS") + `},"a":1.0}`},
		"hooks-of-others":      {`{"hooks": {"BeforeTool": [` + theirs + `]}}`, clientfile.Added, `{"hooks":{` + geminiHooks(theirs+`,OURS`) + `}}`},
		"same":                 {`{"hooks":{` + geminiHooks("OURS") + `}}`, clientfile.Same, ""},
		"same-before-others":   {`{"hooks":{` + geminiHooks("OURS,"+theirs) + `}}`, clientfile.Same, ""},
		"twice":                {`{"hooks":{` + geminiHooks("OURS,OURS") + `}}`, clientfile.Replaced, `{"hooks":{` + geminiHooks("OURS") + `}}`},
		"another-of-ours":      {`{"hooks":{` + geminiHooks(old+","+theirs) + `}}`, clientfile.Replaced, `{"hooks":{` + geminiHooks(theirs+",OURS") + `}}`},
		"ours-of-other-client": {`{"hooks":{` + geminiHooks(strings.ReplaceAll(old, "gemini", "claude")+",OURS") + `}}`, clientfile.Same, ""},
		"in-a-group-of-theirs": {`{"hooks":{` + geminiHooks(`{"hooks":[{"command":"lint"},{"command":"`+hookCommand+`"}]}`) + `}}`, clientfile.Replaced,
			`{"hooks":{` + geminiHooks(`{"hooks":[{"command":"lint"}]},OURS`) + `}}`},
	}
	hooks, err := clientfile.FindHooks("gemini")
	check.NoError(t, err)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, f := file(t, tt.was, 0o600)
			edited, change, err := hooks.Set(f, hookCommand)
			if err != nil || change != tt.change {
				t.Fatalf("Set() = %s, %v, want %s", change, err, tt.change)
			}
			if change == clientfile.Same {
				if string(edited) != tt.was {
					t.Errorf("Set() = %s, want the file as it was", edited)
				}
				return
			}
			// The members of hooks may be in another order.
			got, want := jsontext.Value(edited).Clone(), jsontext.Value(tt.want)
			check.NoError(t, got.Canonicalize())
			check.NoError(t, want.Canonicalize())
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("Set() (-want +got):\n%s", diff)
			}

			_, again := file(t, string(edited), 0o600)
			if _, change, err := hooks.Set(again, hookCommand); err != nil || change != clientfile.Same {
				t.Errorf("the second Set() = %s, %v, want %s", change, err, clientfile.Same)
			}
			if command, missing := hooks.Command(again), hooks.Missing(again, hookCommand); command != hookCommand || len(missing) > 0 {
				t.Errorf("Command() = %q, Missing() = %q, want %q and none", command, missing, hookCommand)
			}
		})
	}
}

func TestHooksSetRefuses(t *testing.T) {
	hooks, err := clientfile.FindHooks("claude")
	check.NoError(t, err)
	tests := map[string]struct{ was, want string }{
		"no-json":     {"{\n// hidden-1234\n}", "line 2: this is not JSON"},
		"no-object":   {`{"hooks": []}`, `"hooks" is not an object`},
		"no-list":     {`{"hooks": {"SessionEnd": "hidden-1234"}}`, `"SessionEnd" is not a list`},
		"twice-named": {`{"hooks": {}, "hooks": {}}`, "line 1: a name is there twice"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, f := file(t, tt.was, 0o600)
			if _, _, err := hooks.Set(f, "x"); err == nil || err.Error() != tt.want {
				t.Errorf("Set() = %v, want %q", err, tt.want)
			}
		})
	}
}

// TestHooksMissing: an entry that a matcher narrows, or that lost the member that makes failures deny, is not that of link.
func TestHooksMissing(t *testing.T) {
	hooks, err := clientfile.FindHooks("cursor")
	check.NoError(t, err)
	const command = "pgfsm-hook cursor --gateway x"
	_, f := file(t, `{"hooks":`+string(hooks.Value(command))+`}`, 0o600)
	if missing := hooks.Missing(f, command); len(missing) > 0 {
		t.Errorf("Missing() = %q, want none", missing)
	}
	for _, change := range [][2]string{{`,"failClosed":true`, ``}, {`"failClosed":true`, `"failClosed":false`}, {`"failClosed":true`, `"failClosed":true,"matcher":"Shell"`}} {
		_, f := file(t, `{"hooks":`+strings.Replace(string(hooks.Value(command)), change[0], change[1], 1)+`}`, 0o600)
		if missing := hooks.Missing(f, command); !slices.Equal(missing, []string{"preToolUse"}) {
			t.Errorf("with %s: Missing() = %q, want preToolUse", change[1], missing)
		}
	}
}

func TestHooksOfEveryClient(t *testing.T) {
	for _, client := range hook.Clients() {
		hooks, err := clientfile.FindHooks(client)
		if err != nil {
			t.Errorf("FindHooks(%q) = %v", client, err)
			continue
		}
		for i, event := range hooks.Events {
			input := `{"session_id":"s","hook_event_name":"` + event + `","tool_name":"Bash","tool_input":{}}`
			got, err := hook.Translate(client, []byte(input))
			if err != nil || (got.Kind == hook.KindCall) != (i == 0) {
				t.Errorf("%s: %s is the kind %q, %v; want a call for the first event only", client, event, got.Kind, err)
			}
		}
		if got, err := hook.Translate(client, hook.CheckInput(client)); err != nil || got.Kind != hook.KindCall || got.Tool != hook.CheckTool {
			t.Errorf("%s: the input of a check is %+v, %v, want a call of %s", client, got, err, hook.CheckTool)
		}
		if limit := hook.LimitsOf(client); limit.Title == "" || len(limit.Runs) == 0 {
			t.Errorf("%s has no limits", client)
		}
	}
}
