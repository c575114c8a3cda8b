package ledger_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/fsm"
	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	labels "pgfsm/policy/origin"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// steps returns the steps of a run as far as they are recorded.
func (d *fixture) steps(run string, decider policy.Decider) (all []traces.Step, underWay bool) {
	d.TB.Helper()
	d.Inspect(func(r ledger.Reader) (err error) {
		all, underWay, err = ledger.Steps(context.Background(), r, run, d.replayer(decider))
		return err
	})
	return all, underWay
}

// wantSteps compares the steps of a run that its call found with those of its trace, which has more.
func (d *fixture) wantSteps(early []traces.Step, trace *traces.Trace, decider policy.Decider) {
	d.TB.Helper()
	whole, underWay := d.steps(trace.Header.RunID, decider)
	if underWay || len(whole) != len(trace.Steps) || len(early) > 0 && len(early) >= len(whole) {
		d.TB.Errorf("under way = %t, %d steps, %d at the call, and the trace has %d", underWay, len(whole), len(early), len(trace.Steps))
		return
	}
	for i := range early {
		if early[i].Hash != whole[i].Hash {
			d.TB.Errorf("step %d under way is %+v, and then %+v", i, early[i], whole[i])
		}
	}
}

// TestStepsOfAChangedRecord: a record that says of another call than the permit's has no steps.
func TestStepsOfAChangedRecord(t *testing.T) {
	d := newFixture(t)
	s := statestest.Find(t, "policy-allows")
	run, rec := d.begin(statestest.RunID, &s)
	looked := false
	_, err := d.Machine.Advance(context.Background(), run, busy{rec.Effects(s.Entry()), func() {
		looked = true
		d.Inspect(func(r ledger.Reader) error {
			other := lies{entry: func(e *ledger.Entry) {
				e.Body = permit.ReplaceAll(e.Body, []byte(`"permit":"`+string(canonical.Sum("permit", nil))+`"`))
			}}
			_, _, err := ledger.Steps(context.Background(), lying{r, &other}, statestest.RunID, d.replayer(nil))
			if !errors.Is(err, ledger.ErrChanged) {
				t.Errorf("Steps() = %v, want %v", err, ledger.ErrChanged)
			}
			return nil
		})
	}}, rec)
	if err != nil || !looked {
		t.Fatalf("looked = %t, %v", looked, err)
	}
}

// TestTryBundle: another bundle judges the recorded call by every gate, and nothing is called or recorded.
func TestTryBundle(t *testing.T) {
	other := func(change func(*policy.Content)) *policy.Bundle {
		c := statestest.Content()
		change(&c)
		return statestest.MustBundle(c, nil)
	}
	for _, tc := range []struct {
		name  string
		by    *policy.Bundle
		state string // where it ends
		says  string // the reason, or what the record lacks
	}{
		{"same", other(func(*policy.Content) {}), "permitted", ""},
		{"denies", other(func(c *policy.Content) {
			c.Policy = statestest.Policies(rules.Policy{ID: "no", Effect: rules.Deny, Reason: "Not any more."})
		}), "blocked", "Not any more."},
		{"holds", other(func(c *policy.Content) {
			c.Policy = statestest.Policies(rules.Policy{ID: "ask", Effect: rules.Pending})
		}), "pending", ""},
		{"not-on-the-allowlist", other(func(c *policy.Content) { c.Allowlist = []policy.Allowance{} }), "blocked", "not on the allowlist"},
		{"another-planner", other(func(c *policy.Content) {
			c.Planner = policy.Planner{Mode: policy.PlannerLLM, LLM: &policy.LLM{BaseURL: "http://127.0.0.1:1", Model: "m", Timeout: 1000, MaxTokens: 100, Prompt: "1"}}
		}), "permitted", ""},
		{"asks-for-earlier-calls", other(func(c *policy.Content) {
			c.Policy = statestest.Policies(rules.Policy{ID: "few", Effect: rules.Allow, When: `history.count("actor", "1h") < 5`})
		}), "validated", `history.count("actor", "1h")`},
		{"counts-the-calls-of-the-task", other(func(c *policy.Content) {
			c.Grants = []policy.Grant{{Name: "one", Tools: []policy.Granted{{Server: statestest.Server, Tool: statestest.Tool, Calls: new(1), Args: []policy.Constraint{}}}}}
		}), "validated", "the earlier calls of the task"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newFixture(t)
			s := statestest.Find(t, "policy-allows")
			s.Request.Task = "spring cleaning"
			if _, _, err := d.play(statestest.RunID, &s); err != nil {
				t.Fatal(err)
			}
			check.NoError(t, d.RecordActivation(t.Context(), tc.by, ledger.ActivationReason{Cause: ledger.CauseStart}))
			calls, before := len(s.World.Calls), len(d.Events(0))
			d.Inspect(func(r ledger.Reader) error {
				w, err := ledger.TryBundle(r, d.replayer(nil), statestest.RunID, tc.by.Digest())
				check.NoError(t, err)
				says := ""
				if stopped := w.By.Facts().Stopped; stopped != nil {
					says = stopped.Verdict.Reason
				}
				if w.Unanswered != nil {
					says = w.Unanswered.Error()
				}
				if got := string(w.By.State()); got != tc.state || !strings.Contains(says, tc.says) || says != "" && tc.says == "" {
					t.Errorf("it is at %s: %s; want %s: %s", got, says, tc.state, tc.says)
				}
				if got := w.Own.State(); got != states.Permitted || len(w.Steps) == 0 {
					t.Errorf("the run's own bundle leads to %s, and the other one makes %d steps", got, len(w.Steps))
				}
				_, err = ledger.TryBundle(r, d.replayer(nil), statestest.RunID, canonical.Sum("bundle", []byte("other")))
				if !errors.Is(err, ledger.ErrBundle) {
					t.Errorf("TryBundle() of an unknown bundle = %v", err)
				}
				_, err = ledger.TryBundle(r, d.replayer(nil), ledgertest.NewID(t), tc.by.Digest())
				if !errors.Is(err, ledger.ErrNotFound) {
					t.Errorf("TryBundle() of an unknown run = %v", err)
				}
				return nil
			})
			if len(s.World.Calls) != calls || len(d.Events(0)) != before {
				t.Error("something was called or recorded")
			}
		})
	}
}

// TestTryBundleWithoutTheArguments: a bundle that accepts larger arguments cannot judge a call whose arguments are not recorded.
func TestTryBundleWithoutTheArguments(t *testing.T) {
	d := newFixture(t)
	s := statestest.Find(t, "agent-arguments-too-large")
	if _, _, err := d.play(statestest.RunID, &s); err != nil {
		t.Fatal(err)
	}
	larger, same := statestest.Content(), s.Content
	same.Env = "prod"
	for _, tc := range []struct {
		by    policy.Content
		state fsm.State
		says  string
	}{{larger, states.Received, "refused for their size"}, {same, states.Blocked, ""}} {
		by := statestest.MustBundle(tc.by, nil)
		check.NoError(t, d.RecordActivation(t.Context(), by, ledger.ActivationReason{Cause: ledger.CauseStart}))
		d.Inspect(func(r ledger.Reader) error {
			w, err := ledger.TryBundle(r, d.replayer(nil), statestest.RunID, by.Digest())
			if err != nil || w.By.State() != tc.state || (w.Unanswered != nil) != (tc.says != "") ||
				w.Unanswered != nil && !strings.Contains(w.Unanswered.Error(), tc.says) {
				t.Errorf("it is at %v: %v, %v; want %s: %s", w.By, w.Unanswered, err, tc.state, tc.says)
			}
			return nil
		})
	}
}

// TestTryBundleOfASession: a bundle that reads the client's session judges a run with the recorded session. If the run's
// own bundle did not read it, its earlier calls are not recorded, and the decision is unknown.
func TestTryBundleOfASession(t *testing.T) {
	bundle := func(when string) policy.Content {
		c := statestest.Content()
		c.Policy = statestest.Policies(rules.Policy{ID: "no", When: when, Effect: rules.Deny}, rules.Policy{ID: "rest", Effect: rules.Allow})
		return c
	}
	rewritten := &states.Session{Client: "claude", ID: "s-1", Calls: 7, Rewritten: true}
	started := &states.Session{Client: "claude", ID: "s-1"}
	for _, tc := range []struct {
		name    string
		session *states.Session
		own, by string // conditions
		state   fsm.State
		unknown bool
	}{
		{"rewritten", rewritten, "session.calls > 100", "session.rewritten", states.Blocked, false},
		{"seven-calls", rewritten, "session.calls > 100", "session.calls < 7", states.Permitted, false},
		{"no-known-session", nil, "false", "!session.known", states.Blocked, false},
		{"no-known-session-is-not-rewritten", nil, "false", "session.rewritten", states.Permitted, false},
		{"earlier-calls-not-recorded", started, "false", "session.rewritten", states.Received, true},
		{"not-asked", started, "false", "tool == 'other'", states.Permitted, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newFixture(t)
			s := statestest.Find(t, "policy-allows")
			s.Content, s.Decider, s.Request.Session = bundle(tc.own), nil, tc.session
			if _, _, err := d.play(statestest.RunID, &s); err != nil {
				t.Fatal(err)
			}
			by := statestest.MustBundle(bundle(tc.by), nil)
			check.NoError(t, d.RecordActivation(t.Context(), by, ledger.ActivationReason{Cause: ledger.CauseStart}))
			d.Inspect(func(r ledger.Reader) error {
				w, err := ledger.TryBundle(r, d.replayer(nil), statestest.RunID, by.Digest())
				check.NoError(t, err)
				if w.By.State() != tc.state || (w.Unanswered != nil) != tc.unknown {
					t.Errorf("it is at %s: %v; want %s, unknown %t", w.By.State(), w.Unanswered, tc.state, tc.unknown)
				}
				if tc.unknown && !strings.Contains(w.Unanswered.Error(), "the earlier calls of the session") {
					t.Errorf("Unanswered = %v", w.Unanswered)
				}
				return nil
			})
		})
	}
}

// TestTryBundleOfOrigins: a bundle that reads where arguments come from judges a run with the recorded origins. If they were not
// recorded, or by other labels, the decision is unknown.
func TestTryBundleOfOrigins(t *testing.T) {
	bundle := func(when string, private bool) policy.Content {
		c := statestest.Content()
		c.Policy = statestest.Policies(rules.Policy{ID: "no", When: when, Effect: rules.Deny}, rules.Policy{ID: "rest", Effect: rules.Allow})
		c.Labels = &labels.Labels{Tools: []labels.ToolLabel{{Server: statestest.Server, Tool: statestest.Tool, Private: private}}}
		return c
	}
	for _, tc := range []struct {
		name, task, own, by string
		private             bool
		state               fsm.State
		unknown             bool
	}{
		{"recorded", "t", "session.private", "!found()", false, states.Blocked, false},
		{"recorded-and-allowed", "t", "session.private", "session.untrusted", false, states.Permitted, false},
		{"not-recorded", "t", "false", "!found()", false, states.Validated, true},
		{"by-other-labels", "t", "session.private", "!found()", true, states.Validated, true},
		{"without-a-session", "", "false", "!found()", false, states.Blocked, false},
		{"not-asked", "t", "session.private", "false", true, states.Permitted, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newFixture(t)
			s := statestest.Find(t, "policy-allows")
			s.Content, s.Decider, s.Request.Task = bundle(tc.own, false), nil, tc.task
			if _, _, err := d.play(statestest.RunID, &s); err != nil {
				t.Fatal(err)
			}
			by := statestest.MustBundle(bundle(tc.by, tc.private), nil)
			check.NoError(t, d.RecordActivation(t.Context(), by, ledger.ActivationReason{Cause: ledger.CauseStart}))
			d.Inspect(func(r ledger.Reader) error {
				w, err := ledger.TryBundle(r, d.replayer(nil), statestest.RunID, by.Digest())
				check.NoError(t, err)
				if w.By.State() != tc.state || (w.Unanswered != nil) != tc.unknown {
					t.Errorf("it is at %s: %v; want %s, unknown %t", w.By.State(), w.Unanswered, tc.state, tc.unknown)
				}
				return nil
			})
		})
	}
}

// TestActivations: the active bundle comes first, and each bundle once.
func TestActivations(t *testing.T) {
	d := newFixture(t)
	var all []*policy.Bundle
	for _, env := range []string{"a", "b", "c"} {
		c := statestest.Content()
		c.Env = env
		all = append(all, statestest.MustBundle(c, nil))
	}
	for _, i := range []int{0, 1, 2, 1} {
		check.NoError(t, d.RecordActivation(t.Context(), all[i], ledger.ActivationReason{Cause: ledger.CauseStart}))
	}
	d.Inspect(func(r ledger.Reader) error {
		got, err := d.Activations(r, 2)
		if err != nil || len(got) != 2 || got[0].Bundle != all[1].Digest() || got[1].Bundle != all[2].Digest() || got[0].At == "" {
			t.Errorf("Activations() = %+v, %v", got, err)
		}
		return nil
	})
}

// TestInclude: the hashes lead from the run's last entry to the root.
func TestInclude(t *testing.T) {
	d := newFixture(t)
	q := d.Hold(1)
	for range 20 {
		d.Hold(1)
	}
	d.Inspect(func(r ledger.Reader) error {
		in, err := ledger.InclusionOf(r, q.RunID)
		if err != nil || len(in.Entries) == 0 {
			t.Fatalf("Include() = %+v, %v", in, err)
		}
		last := in.Entries[len(in.Entries)-1]
		if err := tlog.CheckRecord(in.Path, in.Size, in.Root, last.Index, last.Hash); err != nil || last.Index != q.Entry {
			t.Errorf("entry %d of %d: %v", last.Index, in.Size, err)
		}
		if _, err := ledger.InclusionOf(r, ledgertest.NewID(t)); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("Include() of an unknown run = %v", err)
		}
		return nil
	})
}

var permit = regexp.MustCompile(`"permit":"sha256:[0-9a-f]{64}"`)
