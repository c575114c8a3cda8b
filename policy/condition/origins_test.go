package condition_test

import (
	"errors"
	"strings"
	"testing"

	"pgfsm/policy/condition"
	"pgfsm/policy/origin"
)

func TestOrigins(t *testing.T) {
	of := func(leaves ...origin.Leaf) *condition.Origins { return &condition.Origins{Leaves: leaves} }
	to := origin.Leaf{At: "/to", Role: origin.Target, Origin: origin.Request}
	first := origin.Leaf{At: "/items/0/id", Origin: origin.Own}
	second := origin.Leaf{At: "/items/1/id", Origin: origin.Trusted}
	nowhere := origin.Leaf{At: "/cc", Role: origin.Target, Origin: origin.None}
	exempt := origin.Leaf{At: "/cc/x", Role: origin.Amount, Origin: origin.None, Exempt: true}
	strange := origin.Leaf{At: "/to", Role: origin.Target, Origin: "heaven"}

	for _, tc := range []struct {
		name, src string
		origins   *condition.Origins
		want      bool
	}{
		{"targets-found", `found()`, of(to, first), true},
		{"a-target-is-not", `found()`, of(to, nowhere), false},
		{"no-target", `found()`, of(first), false},
		{"a-path", `found("to") && !found("cc")`, of(to, nowhere), true},
		{"a-path-of-nothing", `found("bcc")`, of(to), false},
		{"a-path-with-a-star", `found("items/*/id") && found("items")`, of(first, second), true},
		{"origin", `origin("to") == "request"`, of(to, nowhere), true},
		{"the-weakest-of-two", `origin("items") == "own"`, of(first, second), true},
		{"the-weakest-whatever-the-order", `origin("items") == "own"`, of(second, first), true},
		{"origin-of-what-is-not-found", `origin("cc") == "none" && origin("bcc") == "none"`, of(to, nowhere), true},
		{"exempt-is-passed-over", `origin("cc") == "own"`, of(origin.Leaf{At: "/cc/y", Origin: origin.Own}, exempt), true},
		{"nothing-but-exempt", `origin("cc") == "none"`, of(exempt), true},
		{"an-unknown-origin", `!found() && origin("to") == "none"`, of(strange), true},
		{"session-without-anything", `!session.untrusted && !session.private && !found()`, of(), true},
		{"untrusted", `session.untrusted && !session.private`, &condition.Origins{Untrusted: true}, true},
		{"private", `session.private && !session.untrusted`, &condition.Origins{Private: true}, true},
		{"in-a-loop", `["x"].all(x, found("to") && x != origin("to"))`, of(to), true},

		{"no-session-nothing-is-found", `!found() && !found("to")`, nil, true},
		{"no-session-no-origin", `origin("to") == "none"`, nil, true},
		{"no-session-may-hold-anything", `session.untrusted && session.private`, nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := mustBool(t, policyEnv(t), tc.src)
			got, err := p.True(condition.NewSubject(&condition.Input{Args: []byte(`{}`), Origins: tc.origins}))
			if got != tc.want || err != nil {
				t.Errorf("True(%s) = %t, %v; want %t", tc.src, got, err, tc.want)
			}
			if !p.ReadsOrigins() || p.ReadsSession() {
				t.Errorf("%s reads origins %t and the session %t; want origins alone", tc.src, p.ReadsOrigins(), p.ReadsSession())
			}
		})
	}
	if p := mustBool(t, policyEnv(t), `session.known || args.found == args.origin`); p.ReadsOrigins() || !p.ReadsSession() {
		t.Error("a condition on the session and on arguments reads origins")
	}
}

func TestOriginsRefused(t *testing.T) {
	for _, tc := range []struct {
		name, src string
		column    int
		says      string
	}{
		{"not-written-out", `found(args.name)`, 11, "must be written out"},
		{"empty", `found("")`, 7, "is no path; write names"},
		{"a-pointer", `origin("/to") == "none"`, 8, "write names with / between"},
		{"no-escape", `found("a~b")`, 7, "~0 for ~"},
		{"too-deep", `found("` + strings.Repeat("a/", 32) + `a")`, 7, "33 names"},
		{"two-paths", `found("a", "b")`, 6, "found"},
		{"origin-of-all", `origin() == "none"`, 7, "origin"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := policyEnv(t).Bool(tc.src)
			var refused *condition.Error
			if !errors.As(err, &refused) || refused.Column != tc.column || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Bool(%s) = %v, want column %d and %q", tc.src, err, tc.column, tc.says)
			}
		})
	}
}

// TestOriginsAreCharged: a condition pays for each leaf that it looks at.
func TestOriginsAreCharged(t *testing.T) {
	leaves := make([]origin.Leaf, origin.MaxLeaves)
	s := condition.NewSubject(&condition.Input{Origins: &condition.Origins{Leaves: leaves}}).WithBudget(int64(len(leaves)), 0)
	if _, err := mustBool(t, policyEnv(t), `found("a")`).True(s); err != condition.ErrSpent {
		t.Errorf("True() = %v, want the budget to be spent", err)
	}
}
