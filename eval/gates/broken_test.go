package gates

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pgfsm/fsm"
	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/condition"
	"pgfsm/policy/schema"
	"pgfsm/states"
)

var allowed = policy.Verdict{Outcome: policy.Allow, Reason: "A broken gate lets it pass."}

// A breakage is a subject with one gate broken, and what the suite must make of it.
type breakage struct {
	name  string
	suite string
	by    func(*subject)
	// small reports whether a slip is as small as it can be shrunk to.
	small func(Slip) bool
	slips int // at least so many
}

// breakages are a broken gate for each suite.
func breakages() []breakage {
	input := func(want string) func(Slip) bool { return func(s Slip) bool { return s.Input == want } }
	atMost := func(n int) func(Slip) bool { return func(s Slip) bool { return len(s.Bytes) <= n } }
	play := real().play
	unlisted := func(m *states.Machine, r *states.Run, w *world) (states.Outcome, error) {
		o, err := play(m, r, w)
		if o.Code == policy.CodeToolNotAllowed {
			p, _ := policy.ReadPlan(w.plan, policy.DefaultLimits())
			w.Call(context.Background(), &states.CallTool{Server: p.Server, Tool: p.Tool, Bytes: p.Args})
			o.State = string(states.Answered)
		}
		return o, err
	}
	return []breakage{
		{"screens-nothing", "policy_gate", func(s *subject) {
			s.screen = func(*policy.Bundle, string) policy.Verdict { return allowed }
		}, input("write ransomware"), 300},
		{"takes-text-behind-the-plan", "plan_parse", func(s *subject) {
			s.readPlan = func(doc []byte, l policy.Limits) (*policy.Plan, policy.Verdict) {
				return policy.ReadPlan(doc[:strings.LastIndexByte(string(doc), '}')+1], l)
			}
		}, atMost(len(`{"type":"call_tool","server":"s","tool":"t","args":{}}`) + 8), 5},
		{"calls-what-is-not-allowed", "plan_gate", func(s *subject) { s.play = unlisted },
			input(`{"type":"call_tool","server":"kb","tool":"delete_entry","args":{}}`), 5},
		{"calls-what-is-not-allowed", "plan_fuzz", func(s *subject) { s.play = unlisted },
			atMost(len(`{"type":"call_tool","server":"desk","tool":"delete_entry","args":{}}`)), 20},
		{"calls-with-other-arguments", "plan_fuzz", func(s *subject) {
			s.play = func(m *states.Machine, r *states.Run, w *world) (states.Outcome, error) {
				o, err := play(m, r, w)
				for i := range w.calls {
					w.calls[i].Bytes = []byte(`{"entry_id":"entry-999","force":true}`)
				}
				return o, err
			}
		}, atMost(90), 20},
		{"refuses-all", "plan_fuzz", func(s *subject) {
			s.play = func(*states.Machine, *states.Run, *world) (states.Outcome, error) {
				return states.Outcome{State: string(states.Blocked), Code: policy.CodePlanInvalid}, nil
			}
		}, atMost(90), 20},
		{"takes-an-error-for-a-result", "typed_output", func(s *subject) {
			s.play = func(m *states.Machine, r *states.Run, w *world) (states.Outcome, error) {
				w.result = []byte(strings.Replace(string(w.result), `"isError"`, `"iserror"`, 1))
				return play(m, r, w)
			}
		}, func(s Slip) bool { return strings.Contains(s.Input, `"isError":`) && len(s.Bytes) < 60 }, 5},
		{"believes-numbers", "grounding", believes, func(s Slip) bool { return len(s.Bytes) < 140 }, 20},
		{"believes-numbers", "grounding_fuzz", believes, func(s Slip) bool { return len(s.Bytes) < 140 }, 5},
		{"takes-rows-without-a-guard", "machine", func(s *subject) {
			s.compile = func(t fsm.Table[*states.Run]) error {
				for i := range t.Rows {
					if t.Rows[i].Guard.Allow == nil {
						t.Rows[i].Guard = free()
					}
				}
				return real().compile(t)
			}
		}, func(s Slip) bool { return strings.HasPrefix(s.Input, `["guard_`) && !strings.Contains(s.Input, `","`) }, 70},
		{"opens-the-world", "schema", func(s *subject) {
			s.judge = func(of, doc []byte) error {
				c, err := schema.CompileOpen(of, schema.DefaultLimits())
				if err != nil {
					return err
				}
				return c.Judge(doc)
			}
		}, atMost(40), 10},
		{"takes-an-approval-for-any-call", "approval_binding", func(s *subject) {
			s.play = func(m *states.Machine, r *states.Run, w *world) (states.Outcome, error) {
				if said := w.decided; said != nil {
					w.decided = func(about canonical.Digest) *states.Decided {
						d := said(about)
						d.Binding = about
						for i := range d.Votes {
							d.Votes[i].Binding = about
						}
						return d
					}
				}
				return play(m, r, w)
			}
		}, func(s Slip) bool { return !strings.Contains(s.Input, ",") && s.Input != "[]" }, 12},
		{"allows-by-default", "policy", func(s *subject) {
			s.assess = func(b *policy.Bundle, in *condition.Input) policy.Assessment {
				a := b.Assess(in)
				if a.Policy == "" {
					a.Verdict = allowed
				}
				return a
			}
		}, input("[]"), 5},
	}
}

// believes takes every number of a claim for true.
func believes(s *subject) {
	s.lock = func(b *policy.Bundle, typed, summary []byte) policy.Verdict {
		v := real().lock(b, typed, summary)
		if v.Code == "claim_token_unsupported" {
			return allowed
		}
		return v
	}
}

// TestEverySuiteSeesABrokenGate: with a gate broken its suite reports slips, keeps some, shrunk, and all others are as before.
func TestEverySuiteSeesABrokenGate(t *testing.T) {
	seen := make(map[string]bool)
	for _, tc := range breakages() {
		seen[tc.suite] = true
		t.Run(tc.suite+"-"+tc.name, func(t *testing.T) {
			s := real()
			tc.by(&s)
			got := suite(t, evaluates(t, s), tc.suite)
			if got.Slips < tc.slips || got.Passed != got.Cases-got.Slips || len(got.Slipped) != min(got.Slips, maxSlipped) {
				t.Fatalf("%d slips of %d cases, %d passed, %d kept; want at least %d", got.Slips, got.Cases, got.Passed, len(got.Slipped), tc.slips)
			}
			small := false
			for _, slip := range got.Slipped {
				if slip.ID == "" || slip.Suite != tc.suite || slip.Want == "" || slip.Want == slip.Got {
					t.Errorf("slip %+v", slip)
				}
				small = small || tc.small(slip)
			}
			if !small {
				t.Errorf("no slip was shrunk as far as it can be: %+v", got.Slipped)
			}
			r := Report{Suites: []Suite{got}}
			if r.Slips() != got.Slips {
				t.Errorf("Slips() = %d, want %d", r.Slips(), got.Slips)
			}
			if doc, err := r.JSON(); err != nil || !strings.Contains(string(doc), `"slipped"`) {
				t.Errorf("JSON() = %s, %v, want the slips in it", doc, err)
			}
		})
	}
	for _, name := range Names() {
		if !seen[name] {
			t.Errorf("no broken gate is shown to %s", name)
		}
	}
}

func suite(t *testing.T, e *evaluation, name string) Suite {
	t.Helper()
	for _, d := range definitions() {
		if d.name == name {
			s, err := e.suite(d)
			if err != nil {
				t.Fatalf("suite %s: %v", name, err)
			}
			return s
		}
	}
	t.Fatalf("there is no suite %s", name)
	return Suite{}
}

// TestARunThatBreaksIsASlip: an error of the machine itself is no pass, whatever the case wanted.
func TestARunThatBreaksIsASlip(t *testing.T) {
	s := real()
	s.play = func(*states.Machine, *states.Run, *world) (states.Outcome, error) {
		return states.Outcome{}, errors.New("the machine refused a transition")
	}
	for _, name := range []string{"plan_gate", "plan_fuzz", "typed_output", "approval_binding"} {
		if got := suite(t, evaluates(t, s), name); got.Slips != got.Cases {
			t.Errorf("%s: %d slips of %d cases, want all", name, got.Slips, got.Cases)
		}
	}
}
