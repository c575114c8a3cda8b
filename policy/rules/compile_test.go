package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy/condition"
)

// allow is a policy that compiles.
func allow(id string) Policy { return Policy{ID: id, Effect: Allow} }

func with(p Policy, change func(*Policy)) Policy {
	change(&p)
	return p
}

func faultsOf(t *testing.T, policies ...Policy) condition.Faults {
	t.Helper()
	s, err := Compile(Content{Policies: policies})
	if err == nil {
		return nil
	}
	if s != nil {
		t.Errorf("Compile() = a set beside the error %v", err)
	}
	var all condition.Faults
	if !errors.As(err, &all) || len(all) == 0 {
		t.Fatalf("Compile() = %T %v, want faults", err, err)
	}
	return all
}

func TestCompile_Faults(t *testing.T) {
	for _, tc := range []struct {
		name, key, says string
		change          func(*Policy)
	}{
		{"id-with-new-line", "id", "do not show", func(p *Policy) { p.ID = "a\nb" }},
		{"id-with-bidi-control", "id", "do not show", func(p *Policy) { p.ID = "a\u202eb" }},
		{"id-of-spaces", "id", "do not show", func(p *Policy) { p.ID = "  " }},
		{"id-ends-with-space", "id", "ends with a space", func(p *Policy) { p.ID = "a " }},
		{"server-glob-too-long", "match.server", "bytes", func(p *Policy) { p.Match.Server = strings.Repeat("x", 257) }},
		{"tool-glob-with-too-many-stars", "match.tool", "17", func(p *Policy) { p.Match.Tool = strings.Repeat("*x", 17) }},
		{"env-glob-not-utf8", "match.env", "UTF-8", func(p *Policy) { p.Match.Env = "\xff" }},
		{"when-is-no-cel", "when", "", func(p *Policy) { p.When = "and or" }},
		{"when-misspells-a-name", "when", "risk.scor", func(p *Policy) { p.When = "risk.scor > 1" }},
		{"when-is-a-number", "when", "bool", func(p *Policy) { p.When = "risk.score" }},
		{"deny-beside-pending", "deny", "effect: allow", func(p *Policy) { p.Effect, p.Deny = Pending, "true" }},
		{"approval-beside-pending", "require_approval_if", "effect: allow",
			func(p *Policy) { p.Effect, p.RequireApprovalIf = Pending, "true" }},
		{"deny-does-not-compile", "deny", "", func(p *Policy) { p.Deny = "nobody == 1" }},
		{"approval-does-not-compile", "require_approval_if", "", func(p *Policy) { p.RequireApprovalIf = "(" }},
		{"approvers-without-a-hold", "approvers", "never holds", func(p *Policy) { p.Approvers = []string{"x"} }},
		{"quorum-without-a-hold", "quorum", "never holds", func(p *Policy) { p.Quorum = 1 }},
		{"expires-without-a-hold", "expires", "never holds", func(p *Policy) { p.Expires = 1000 }},
		{"expires-beside-deny-with-approval", "expires", "never holds",
			func(p *Policy) { p.Effect, p.Expires = Deny, 1000 }},
		{"fresh-without-a-hold", "fresh", "never holds", func(p *Policy) { p.Fresh = 30_000 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := faultsOf(t, allow("first"), with(allow("it"), tc.change), allow("last"))
			i := slices.IndexFunc(all, func(e *condition.Fault) bool { return e.Key == tc.key })
			if i < 0 {
				t.Fatalf("Compile() = %v, want a fault of %s", all, tc.key)
			}
			if e := all[i]; e.Index != 1 || !strings.Contains(e.Error(), tc.says) || e.Problem == "" ||
				strings.Contains(e.Error(), "\n") {
				t.Errorf("Compile() = %d %q, want policy 1 and %q in one line", e.Index, e, tc.says)
			}
		})
	}
}

func numbered(n int, change func(*Policy)) []Policy {
	policies := make([]Policy, n)
	for i := range policies {
		policies[i] = allow(fmt.Sprint("p", i))
		change(&policies[i])
	}
	return policies
}

func TestCompile_NumberOfPolicies(t *testing.T) {
	nothing := func(*Policy) {}
	if all := faultsOf(t, numbered(MaxPolicies, nothing)...); all != nil {
		t.Errorf("Compile(%d policies) = %v, want no fault", MaxPolicies, all)
	}
	all := faultsOf(t, numbered(MaxPolicies+1, func(p *Policy) { p.Quorum = 1 })...)
	want := condition.Faults{{List: "policies", Index: MaxPolicies, ID: "p10000", Problem: "there are 10001 policies, more than 10000",
		Remedy: "say it with globs"}}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("Compile(one too many) (-want +got):\n%s", diff)
	}
}

func TestCompile_NumberOfShadows(t *testing.T) {
	shadow := func(p *Policy) { p.Mode = Shadow }
	if all := faultsOf(t, numbered(MaxShadow, shadow)...); all != nil {
		t.Errorf("Compile(%d shadows) = %v, want no fault", MaxShadow, all)
	}
	if all := faultsOf(t, numbered(MaxShadow+2, shadow)...); len(all) != 1 || all[0].Index != MaxShadow ||
		all[0].Key != "mode" {
		t.Errorf("Compile(two shadows too many) = %v, want one fault at the first", all)
	}
}

// Conditions are read until the bound, and no further; the same text counts once.
func TestCompile_BytesOfConditions(t *testing.T) {
	const size = 4096
	padded := func(n int) string {
		text := fmt.Sprintf("risk.score > %d", n)
		return text + strings.Repeat(" ", size-len(text))
	}
	next := 0
	distinct := func(p *Policy) { p.When = padded(next); next++ }
	policies := numbered(MaxConditions/size, distinct)
	if all := faultsOf(t, policies...); all != nil {
		t.Errorf("Compile(%d bytes) = %v, want no fault", MaxConditions, all)
	}
	same := append(policies, with(allow("same"), func(p *Policy) { p.When = policies[7].When }))
	if all := faultsOf(t, same...); all != nil {
		t.Errorf("Compile(a text twice) = %v, want no fault", all)
	}
	over := append(policies, with(allow("over"), func(p *Policy) { p.When = "pinned" }), with(allow("more"),
		func(p *Policy) { p.When = "(" }))
	if all := faultsOf(t, over...); len(all) != 1 || all[0].ID != "over" || all[0].Key != "when" {
		t.Errorf("Compile(6 bytes more) = %v, want one fault at the first", all)
	}
}

func TestCompile_AllFaultsAtOnce(t *testing.T) {
	err := func() error {
		_, err := Compile(Content{Policies: []Policy{
			{ID: "a", Effect: Allow, When: "tool == 1"},
			{ID: "ok", Effect: Allow},
			{ID: "a", Effect: Deny, Deny: "pinned &&\n  nobody"},
			{Effect: Deny, Quorum: -1, Match: Match{Tool: "\xff"}},
		}})
		return err
	}()
	var all condition.Faults
	if !errors.As(err, &all) {
		t.Fatalf("Compile() = %v, want faults", err)
	}
	var places []string
	for _, e := range all {
		places = append(places, fmt.Sprintf("%d %q %s", e.Index, e.ID, e.Key))
	}
	want := []string{`0 "a" when`, `2 "a" id`, `2 "a" deny`, `2 "a" deny`, `3 "" id`, `3 "" match.tool`, `3 "" quorum`}
	if diff := cmp.Diff(want, places); diff != "" {
		t.Errorf("Compile() has faults at (-want +got):\n%s", diff)
	}
	if got := strings.Count(err.Error(), "\n") + 1; got != len(all) {
		t.Errorf("Error() has %d lines for %d faults", got, len(all))
	}
	if cause := all[3].Cause; cause == nil || cause.Line != 2 || cause.Column != 3 {
		t.Errorf("the cause of %v is %+v, want one at 2:3", all[3], cause)
	}
	if all[1].Cause != nil {
		t.Errorf("%v has a cause", all[1])
	}
}

func TestError_IsOneVisibleLine(t *testing.T) {
	all := faultsOf(t, Policy{ID: "a\x1b[31m\n", Effect: Deny, Deny: "\u202e"})
	if text := all.Error(); strings.ContainsAny(text, "\x1b\u202e") || strings.Count(text, "\n") != len(all)-1 {
		t.Errorf("Error() = %q, want everything visible", text)
	}
}
