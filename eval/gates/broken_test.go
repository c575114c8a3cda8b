package gates

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pgfsm/eval/world"
	"pgfsm/fsm"
	"pgfsm/internal/canonical"
	"pgfsm/internal/runner"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/schema"
	"pgfsm/states"
)

var allowed = policy.Verdict{Outcome: policy.Allow, Reason: "A broken gate lets it pass."}

// A breakage is a subject with one gate broken, and at least how many slips its suite must count.
type breakage struct {
	name  string
	suite string
	by    func(*subject)
	slips int
}

// breakages are a broken gate for each suite.
func breakages() []breakage {
	play := realSubject().play
	callsUnlisted := func(s *subject) {
		s.play = func(w *world.World, by *runner.Runner, r *states.Run) (states.Outcome, error) {
			o, err := play(w, by, r)
			if o.Code == policy.CodeToolNotAllowed {
				p, _ := policy.ReadPlan(w.Plan, policy.DefaultLimits())
				w.Call(context.Background(), &states.CallTool{Server: p.Server, Tool: p.Tool, Bytes: p.Args})
				o.State = string(states.Answered)
			}
			return o, err
		}
	}
	return []breakage{
		{"screens-nothing", "policy_gate", func(s *subject) {
			s.screen = func(*policy.Bundle, string) policy.Verdict { return allowed }
		}, 300},
		{"accepts-text-behind-the-plan", "plan_parse", func(s *subject) {
			s.readPlan = func(doc []byte, l policy.Limits) (*policy.Plan, policy.Verdict) {
				return policy.ReadPlan(doc[:strings.LastIndexByte(string(doc), '}')+1], l)
			}
		}, 5},
		{"calls-unlisted-tools", "plan_gate", callsUnlisted, 5},
		{"calls-with-other-arguments", "plan_gate", func(s *subject) {
			s.play = func(w *world.World, by *runner.Runner, r *states.Run) (states.Outcome, error) {
				o, err := play(w, by, r)
				for i := range w.Calls {
					w.Calls[i].Args = []byte(`{"entry_id":"entry-999","force":true}`)
				}
				return o, err
			}
		}, 10},
		{"accepts-an-error-as-a-result", "typed_output", func(s *subject) {
			s.play = func(w *world.World, by *runner.Runner, r *states.Run) (states.Outcome, error) {
				w.Result = []byte(strings.Replace(string(w.Result), `"isError"`, `"iserror"`, 1))
				return play(w, by, r)
			}
		}, 5},
		{"believes-numbers", "grounding", believes, 20},
		{"accepts-rows-without-a-guard", "machine", func(s *subject) {
			s.compile = func(t fsm.Table[*states.Run]) error {
				for i := range t.Rows {
					if t.Rows[i].Guard.Allow == nil {
						t.Rows[i].Guard = fsm.Guard[*states.Run]{Name: "free", Why: "A guard.", Allow: func(*states.Run) error { return nil }}
					}
				}
				return realSubject().compile(t)
			}
		}, 30},
		{"opens-the-world", "schema", func(s *subject) {
			s.judge = func(of, doc []byte) error {
				c, err := schema.CompileOpen(of, schema.DefaultLimits())
				if err != nil {
					return err
				}
				return c.Judge(doc)
			}
		}, 10},
		{"accepts-an-approval-for-any-call", "approval_binding", func(s *subject) {
			s.play = func(w *world.World, by *runner.Runner, r *states.Run) (states.Outcome, error) {
				if decide := w.Approver; decide != nil {
					w.Approver = func(r *states.Run, about canonical.Digest) *states.Decided {
						d := decide(r, about)
						d.Binding = about
						for i := range d.Votes {
							d.Votes[i].Binding = about
						}
						return d
					}
				}
				return play(w, by, r)
			}
		}, 12},
		{"allows-by-default", "policy", func(s *subject) {
			s.assess = func(b *policy.Bundle, in *condition.Input) policy.Assessment {
				a := b.Assess(in)
				if a.Policy == "" {
					a.Verdict = allowed
				}
				return a
			}
		}, 5},
	}
}

// believes accepts every number of a claim.
func believes(s *subject) {
	s.lock = func(b *policy.Bundle, typed, summary []byte) policy.Verdict {
		v := realSubject().lock(b, typed, summary)
		if v.Code == "claim_token_unsupported" {
			return allowed
		}
		return v
	}
}

// TestEverySuiteSeesABrokenGate: a suite counts the slips of a broken gate, and lists the first of them.
func TestEverySuiteSeesABrokenGate(t *testing.T) {
	seen := make(map[string]bool)
	for _, tc := range breakages() {
		seen[tc.suite] = true
		t.Run(tc.suite+"-"+tc.name, func(t *testing.T) {
			s := realSubject()
			tc.by(&s)
			e, _ := evaluates(t, s)
			got := suite(t, e, tc.suite)
			if got.Slips < tc.slips || len(got.Slipped) != min(got.Slips, maxSlipped) {
				t.Fatalf("%d slips of %d cases, %d listed; want at least %d", got.Slips, got.Cases, len(got.Slipped), tc.slips)
			}
			for _, slip := range got.Slipped {
				if slip.ID == "" || slip.Want == "" || slip.Want == slip.Got {
					t.Errorf("slip %+v", slip)
				}
			}
		})
	}
	for _, name := range suiteNames() {
		if !seen[name] {
			t.Errorf("no breakage concerns %s", name)
		}
	}
}

func suite(t *testing.T, e *evaluation, name string) Suite {
	t.Helper()
	for _, d := range definitions() {
		if d.name == name {
			s, err := e.runSuite(d)
			if err != nil {
				t.Fatalf("suite %s: %v", name, err)
			}
			return s
		}
	}
	t.Fatalf("there is no suite %s", name)
	return Suite{}
}

// TestARunThatBreaksIsASlip: an error of the machine is a slip, whatever the right answer is.
func TestARunThatBreaksIsASlip(t *testing.T) {
	s := realSubject()
	s.play = func(*world.World, *runner.Runner, *states.Run) (states.Outcome, error) {
		return states.Outcome{}, errors.New("the machine refused a transition")
	}
	e, _ := evaluates(t, s)
	for _, name := range []string{"plan_gate", "typed_output", "approval_binding"} {
		if got := suite(t, e, name); got.Slips != got.Cases {
			t.Errorf("%s: %d slips of %d cases, want all", name, got.Slips, got.Cases)
		}
	}
}
