package ledger_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// TestVerifyByAnotherBuild executes runs again as a build would that differs: its compiler makes another bundle of the recorded content.
func TestVerifyByAnotherBuild(t *testing.T) {
	d := newFixture(t)
	d.passes(3)
	if _, s := d.approved(nil); s == nil {
		t.Fatal("nothing is held")
	}
	for _, c := range []struct {
		name    string
		change  func(*policy.Assessment)
		compile error
		want    ledger.Reexecution
		what    string
	}{
		{"the-same-build", func(*policy.Assessment) {}, nil, ledger.Reexecution{Same: 4}, ""},
		{"a-reason-reworded", func(a *policy.Assessment) { a.Verdict.Reason += " Said otherwise." }, nil, ledger.Reexecution{Same: 4, OtherTrace: 4}, ""},
		{"a-gate-changed", func(a *policy.Assessment) { a.Verdict.Outcome, a.Verdict.Code = policy.Block, policy.CodePolicyDenied }, nil, ledger.Reexecution{Otherwise: 4}, "decided otherwise"},
		{"a-quorum-changed", func(a *policy.Assessment) { a.Quorum++ }, nil, ledger.Reexecution{Same: 3, OtherTrace: 3, Otherwise: 1}, "approval.requested"},
		{"bundles-that-are-not-read", nil, errors.New("unknown member"), ledger.Reexecution{Unjudged: 4}, "unknown member"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := d.otherBuild(c.change, c.compile)
			d.Inspect(func(r ledger.Reader) error {
				report, err := ledger.Verify(context.Background(), r, ledger.VerifyOptions{Replayer: p})
				got, first := report.Deep, ""
				if (got.FirstOtherTrace != nil) != (got.OtherTrace > 0) || got.OK() != (c.want == ledger.Reexecution{Same: 4}) {
					t.Errorf("%+v, OK() = %t", got, got.OK())
				}
				for _, f := range []*ledger.Fault{got.FirstOtherwise, got.FirstUnjudged} {
					if f != nil {
						first += f.What
					}
				}
				got.FirstOtherwise, got.FirstUnjudged, got.FirstOtherTrace = nil, nil, nil
				if got != c.want || (first == "") != (c.what == "") || !strings.Contains(first, c.what) {
					t.Errorf("%+v, %q; want %+v, %q", got, first, c.want, c.what)
				}
				return err
			})
		})
	}
}

// changed is a decider whose assessments differ.
type changed struct {
	policy.Decider
	change func(*policy.Assessment)
}

func (c changed) Decide(q policy.Question) policy.Assessment {
	a := c.Decider.Decide(q)
	c.change(&a)
	return a
}
