package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy"
)

// TestPolicyTestsTellOfTheTool: what is not written is not said, and false is said.
func TestPolicyTestsTellOfTheTool(t *testing.T) {
	for _, tt := range []struct {
		name, input string
		pinned      *bool
		annotations *policy.Annotations
	}{
		{"nothing", "", nil, nil},
		{"pinned", ", pinned: true", new(true), nil},
		{"not-pinned", ", pinned: false", new(false), nil},
		{"no-hints", ", annotations: {}", nil, &policy.Annotations{}},
		{"one-hint", ", annotations: {readOnlyHint: false}", nil, &policy.Annotations{ReadOnly: new(false)}},
		{"every-hint", ", pinned: true, annotations: {readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false}",
			new(true), &policy.Annotations{ReadOnly: new(true), Destructive: new(false), Idempotent: new(true), OpenWorld: new(false)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := "tests:\n- {name: a, expect: deny, input: {server: s, tool: t" + tt.input + "}}\n"
			got, err := ReadPolicyTests("tests.yaml", []byte(text), nil)
			if err != nil || len(got) != 1 {
				t.Fatalf("ReadPolicyTests(%q) = %+v, %v", text, got, err)
			}
			if d := cmp.Diff(tt.pinned, got[0].Pinned); d != "" {
				t.Errorf("pinned (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.annotations, got[0].Annotations); d != "" {
				t.Errorf("annotations (-want +got):\n%s", d)
			}
		})
	}
}

// TestSessionOfPolicyTests: a session that is not written is unknown, and a written one may hold anything.
func TestSessionOfPolicyTests(t *testing.T) {
	for _, tt := range []struct {
		name, input string
		want        *TestSession
		says        string
	}{
		{"nothing", "", nil, ""},
		{"whole", ", session: {client: claude, id: s-1, calls: 3, rewritten: true}",
			&TestSession{policy.Session{Client: "claude", ID: "s-1", Calls: 3, Rewritten: true}, true, true}, ""},
		{"new", ", session: {client: vscode, id: s-1}", &TestSession{policy.Session{Client: "vscode", ID: "s-1"}, true, true}, ""},
		{"empty", ", session: {}", &TestSession{Untrusted: true, Private: true}, ""},
		{"trusted", ", session: {untrusted: false, private: false}", &TestSession{}, ""},
		{"empty-id", ", session: {client: claude, id: \"\"}", nil, "session.id"},
		{"id-with-a-control-character", `, session: {client: claude, id: "a\x07b"}`, nil, "session.id"},
		{"unknown-client", ", session: {client: aider, id: s-1}", nil, "claude, codex, cursor, gemini"},
		{"fewer-than-no-calls", ", session: {client: claude, id: s-1, calls: -1}", nil, "0 to 10000"},
		{"more-calls-than-are-counted", ", session: {client: claude, id: s-1, calls: 10001}", nil, "0 to 10000"},
		{"rewritten-is-a-number", ", session: {client: claude, id: s-1, rewritten: 1}", nil, "true or false"},
		{"origin-of-no-argument", `, args: {to: a}, origins: {cc: request}`, nil, `args has no value at "cc"`},
		{"origin-at-a-pointer", `, args: {to: a}, origins: {/to: request}`, nil, "names with / between"},
		{"another-origin", `, args: {to: a}, origins: {to: user}`, nil, "request, trusted, own"},
		{"known-is-not-written", ", session: {client: claude, id: s-1, known: true}", nil, `"known"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := "tests:\n- {name: a, expect: deny, input: {server: s, tool: t" + tt.input + "}}\n"
			tests, err := ReadPolicyTests("tests.yaml", []byte(text), nil)
			if tt.says != "" {
				if err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("ReadPolicyTests(%q) = %v, want %q", text, err, tt.says)
				}
				return
			}
			if err != nil || len(tests) != 1 {
				t.Fatalf("ReadPolicyTests(%q) = %+v, %v", text, tests, err)
			}
			if d := cmp.Diff(tt.want, tests[0].Session); d != "" {
				t.Errorf("session (-want +got):\n%s", d)
			}
		})
	}
}
