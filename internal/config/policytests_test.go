package config

import (
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
