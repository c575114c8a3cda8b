package states_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pgfsm/fsm"
	"pgfsm/fsm/fsmtest"
	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/risk"
	"pgfsm/states"
	"pgfsm/states/statestest"
)

func TestScenarios(t *testing.T) {
	m := statestest.MustMachine(t)
	taken := map[fsm.Mark]bool{}
	for _, s := range statestest.Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			var rec statestest.Memory
			run := s.Run()
			o, err := m.Advance(context.Background(), run, s.Entry(), &rec)
			if err != nil {
				t.Fatalf("Advance() error = %v; trail %v", err, run.Trail())
			}
			if o.State != string(s.State) || o.Code != s.Code {
				t.Errorf("ended as %s %s (%s), want %s %s", o.State, o.Code, o.Reason, s.State, s.Code)
			}
			if !strings.Contains(o.Note, s.Note) || s.Note == "" && o.Note != "" {
				t.Errorf("note = %q, want it to hold %q", o.Note, s.Note)
			}
			if got := len(s.World.Calls); got != s.Calls {
				t.Errorf("%d calls reached the world, want %d", got, s.Calls)
			}
			if o.Effect == states.NotSent && len(s.World.Calls) > 0 {
				t.Errorf("effect not_sent is claimed, but a call was made")
			}
			for _, mark := range rec.Marks() {
				taken[mark] = true
			}
		})
	}
	for _, row := range m.Spec().Rows {
		if !taken[fsm.Mark{From: row.From, On: row.On, To: row.To}] {
			t.Errorf("no scenario takes %s", row)
		}
	}
}

func TestMutantsOfTheTableAreRefused(t *testing.T) {
	mutants := fsmtest.Mutants(states.Table())
	if len(mutants) < len(states.Table().Rows) {
		t.Fatalf("only %d mutants for %d rows", len(mutants), len(states.Table().Rows))
	}
	survived := 0
	for _, mutant := range mutants {
		if _, err := fsm.Compile(mutant.Table); err == nil {
			survived++
			t.Errorf("mutant %q compiles", mutant.Name)
		}
	}
	t.Logf("%d mutants of the table, %d refused", len(mutants), len(mutants)-survived)
}

// liar judges something else than what will run.
type liar struct {
	states.Stage
	judge func(states.Judgement) states.Judgement
}

func (l liar) Judge(r *states.Run, ev states.Event) states.Judgement {
	return l.judge(l.Stage.Judge(r, ev))
}

func TestStageThatLiesIsRefused(t *testing.T) {
	for _, tc := range []struct {
		name  string
		at    fsm.State
		judge func(states.Judgement) states.Judgement
	}{
		{"wrong-trigger", states.Planned, func(j states.Judgement) states.Judgement { j.On = states.Permit; return j }},
		{"skips-ahead", states.Screened, func(j states.Judgement) states.Judgement { j.On = states.Dispatch; return j }},
		{"judged-other-arguments", states.Planned, func(j states.Judgement) states.Judgement {
			j.Fact.(*states.ValidatedFact).Arguments = "sha256:00"
			return j
		}},
		{"judged-another-tool", states.Planned, func(j states.Judgement) states.Judgement {
			j.Fact.(*states.ValidatedFact).Tool = statestest.Delete
			return j
		}},
		{"judged-another-plan", states.Validated, func(j states.Judgement) states.Judgement {
			j.Fact.(*states.AuthorizedFact).Plan = "sha256:00"
			return j
		}},
		{"judged-another-definition", states.Validated, func(j states.Judgement) states.Judgement {
			j.Fact.(*states.AuthorizedFact).Definition = "sha256:00"
			return j
		}},
		{"judged-by-another-bundle", states.Authorized, func(j states.Judgement) states.Judgement {
			j.Fact.(*states.AssessedFact).Bundle = "sha256:00"
			return j
		}},
		{"verdict-missing", states.Validated, func(j states.Judgement) states.Judgement {
			j.Fact.(*states.AuthorizedFact).Verdict = states.AuthorizedFact{}.Verdict
			return j
		}},
		{"permit-for-other-bytes", states.Assessed, func(j states.Judgement) states.Judgement {
			j.Fact.(*states.PermittedFact).Arguments = []byte(`{"policy_id":"policy-001"}`)
			return j
		}},
		{"permit-with-a-trace-context", states.Assessed, func(j states.Judgement) states.Judgement {
			j.Fact.(*states.PermittedFact).Trace = statestest.Traced("1")
			return j
		}},
		{"another-permit-consumed", states.Permitted, func(j states.Judgement) states.Judgement {
			j.Fact.(*states.DispatchedFact).Permit = "sha256:00"
			return j
		}},
		{"another-result", states.Dispatched, func(j states.Judgement) states.Judgement {
			j.Fact.(*states.ExecutedFact).Result = "sha256:00"
			return j
		}},
		{"block-after-the-call", states.Dispatched, func(states.Judgement) states.Judgement {
			return states.Judgement{On: states.Block, Fact: &states.StoppedFact{}}
		}},
		{"empty-summary", states.Typed, func(j states.Judgement) states.Judgement {
			j.Fact.(*states.SummarizedFact).Items = nil
			return j
		}},
		{"claims-an-effect-before-the-call", states.Planned, func(states.Judgement) states.Judgement {
			f := &states.StoppedFact{Effect: states.EffectDone}
			f.Verdict.Code, f.Verdict.Outcome = "x", "block"
			return states.Judgement{On: states.Fail, Fact: f}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			defer states.ReplaceStage(tc.at, func(s states.Stage) states.Stage { return liar{s, tc.judge} })()
			s := statestest.Scenarios()[0]
			run := s.Run()
			_, err := statestest.MustMachine(t).Advance(context.Background(), run, s.Entry(), &statestest.Memory{})
			var refused *fsm.TransitionError
			if !errors.As(err, &refused) {
				t.Fatalf("Advance() error = %v, want a TransitionError", err)
			}
			if run.State() != tc.at || len(refused.Trail) == 0 {
				t.Errorf("the run moved to %s, trail %v; want it to stay at %s", run.State(), refused.Trail, tc.at)
			}
		})
	}
}

// TestStageThatLiesAboutAnApprovalIsRefused: a held call, its approval and its permit have one judgement.
func TestStageThatLiesAboutAnApprovalIsRefused(t *testing.T) {
	holds := func(change func(*states.Binding)) func(states.Judgement) states.Judgement {
		return func(j states.Judgement) states.Judgement {
			f := j.Fact.(*states.HeldFact)
			change(&f.Bound)
			f.Binding = canonical.Sum("approval binding", canonical.MustSorted(&f.Bound))
			return j
		}
	}
	permits := func(change func(*states.PermittedFact)) func(states.Judgement) states.Judgement {
		return func(j states.Judgement) states.Judgement {
			change(j.Fact.(*states.PermittedFact))
			return j
		}
	}
	for _, tc := range []struct {
		name  string
		at    fsm.State
		judge func(states.Judgement) states.Judgement
	}{
		{"binds-a-smaller-quorum", states.Assessed, holds(func(b *states.Binding) { b.Quorum = 0 })},
		{"binds-other-approvers", states.Assessed, holds(func(b *states.Binding) { b.Approvers = nil })},
		{"binds-a-lower-score", states.Assessed, holds(func(b *states.Binding) { b.Score = 1 })},
		{"binds-another-policy", states.Assessed, holds(func(b *states.Binding) { b.Policy = "other" })},
		{"binds-another-connection", states.Assessed, holds(func(b *states.Binding) { b.Connection = "" })},
		{"binds-another-actor", states.Assessed, holds(func(b *states.Binding) { b.Actor = "local:mallory" })},
		{"approved-another-judgement", states.Pending, func(j states.Judgement) states.Judgement {
			j.Fact.(*states.ApprovedFact).Binding = "sha256:00"
			return j
		}},
		{"permit-of-no-judgement", states.Approved, permits(func(f *states.PermittedFact) { f.Binding = "" })},
		{"permit-of-another-judgement", states.Approved, permits(func(f *states.PermittedFact) { f.Binding = "sha256:00" })},
		{"permit-by-another-bundle", states.Approved, permits(func(f *states.PermittedFact) { f.Bundle = "sha256:00" })},
		{"permit-that-names-no-bundle", states.Approved, permits(func(f *states.PermittedFact) {
			*f = states.PermittedFact{
				Arguments: f.Arguments, Assessed: f.Assessed, Binding: f.Binding, Bundle: f.Bundle, Definition: f.Definition, Permit: f.Permit, Plan: f.Plan,
				Server: f.Server, Tool: f.Tool,
			}
		})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			defer states.ReplaceStage(tc.at, func(s states.Stage) states.Stage { return liar{s, tc.judge} })()
			s := statestest.HeldScenario()
			run := s.Run()
			_, err := statestest.MustMachine(t).Advance(context.Background(), run, s.Entry(), &statestest.Memory{})
			var refused *fsm.TransitionError
			if !errors.As(err, &refused) || run.State() != tc.at || len(s.World.Calls) != 0 {
				t.Fatalf("Advance() error = %v at %s, %d calls; want a TransitionError at %s", err, run.State(), len(s.World.Calls), tc.at)
			}
		})
	}
}

// TestOnlyAnApprovalChangesTheBundle: without one, a permit that another bundle gave is no permit.
func TestOnlyAnApprovalChangesTheBundle(t *testing.T) {
	m := statestest.MustMachine(t)
	other := statestest.Scenarios()[0]
	other.Content.Env = "prod"
	elsewhere := other.Run()
	if _, err := m.Advance(context.Background(), elsewhere, until{other.Entry(), elsewhere}, &statestest.Memory{}); err != nil {
		t.Fatal(err)
	}
	defer states.ReplaceStage(states.Assessed, func(s states.Stage) states.Stage { return of{s, elsewhere} })()
	s := statestest.Scenarios()[0]
	_, err := m.Advance(context.Background(), s.Run(), s.Entry(), &statestest.Memory{})
	if err == nil || !strings.Contains(err.Error(), "the bundle differs") || len(s.World.Calls) != 0 {
		t.Errorf("Advance() error = %v, %d calls", err, len(s.World.Calls))
	}
}

// until parks a run when it is assessed.
type until struct {
	states.EffectHandler
	run *states.Run
}

func (u until) Do(ctx context.Context, c states.Command) (states.Event, error) {
	if u.run.State() == states.Assessed {
		return nil, states.ErrParked
	}
	return u.EffectHandler.Do(ctx, c)
}

// of judges another run.
type of struct {
	states.Stage
	run *states.Run
}

func (o of) Judge(_ *states.Run, ev states.Event) states.Judgement { return o.Stage.Judge(o.run, ev) }

// TestRiskWithoutRulesIsBound: mode and score are bound also if no rule says them.
func TestRiskWithoutRulesIsBound(t *testing.T) {
	for _, tc := range []struct {
		name  string
		modes []risk.Mode
		what  string
	}{
		{"mode", []risk.Mode{{Name: "calm", Baseline: 0}, {Name: "review", Baseline: 50}}, `the risk mode was "safe" and is "calm"`},
		{"score", []risk.Mode{{Name: "safe", Baseline: 1}, {Name: "review", Baseline: 50}}, `the risk score was "0" and is "1"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := statestest.HeldScenario()
			s.Content.Risk = statestest.Ladder()
			now := s.Content
			now.Risk = &risk.Content{Modes: tc.modes, Initial: tc.modes[0].Name}
			s.World.Active = statestest.MustBundle(now, nil)
			o, err := statestest.MustMachine(t).Advance(context.Background(), s.Run(), s.Entry(), &statestest.Memory{})
			if err != nil || o.Code != policy.CodeBundleChanged || !strings.HasSuffix(o.Reason, ": "+tc.what+".") {
				t.Errorf("Advance() = %+v, %v", o, err)
			}
		})
	}
}

// TestAHeldRunOfWhichOnlyTheBindingIsKnownEnds: no decision lets it go on.
func TestAHeldRunOfWhichOnlyTheBindingIsKnownEnds(t *testing.T) {
	s := statestest.HeldScenario()
	run := states.NewHeld(statestest.RunID, s.Request, "sha256:00")
	o, err := statestest.MustMachine(t).Advance(context.Background(), run, s.Entry(), &statestest.Memory{})
	if err != nil || o.Code != policy.CodeApprovalMismatch || len(s.World.Calls) != 0 {
		t.Errorf("Advance() = %+v, %v, %d calls", o, err, len(s.World.Calls))
	}
}

// forger mints a permit, right in everything, although the policy asks for a person and none was asked.
type forger struct{ states.Stage }

func (forger) Judge(r *states.Run, _ states.Event) states.Judgement {
	f := r.Facts()
	return states.Judgement{On: states.Permit, Fact: &states.PermittedFact{
		Arguments: r.Plan().Args, Assessed: policy.Verdict{Gate: policy.GatePolicy, Outcome: policy.Allow},
		Bundle: f.Assessed.Bundle, Definition: f.Assessed.Definition, Plan: f.Assessed.Plan,
		Server: f.Validated.Server, Tool: f.Validated.Tool,
	}}
}

func TestPermitWithoutThePersonThatPolicyAsksForIsRefused(t *testing.T) {
	defer states.ReplaceStage(states.Assessed, func(s states.Stage) states.Stage { return forger{s} })()
	s := statestest.Find(t, "parked")
	run := s.Run()
	_, err := statestest.MustMachine(t).Advance(context.Background(), run, s.Entry(), &statestest.Memory{})
	var refused *fsm.TransitionError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "it is not approved") {
		t.Errorf("Advance() error = %v, want the missing person to be named", err)
	}
	if run.State() != states.Assessed || len(s.World.Calls) != 0 {
		t.Errorf("the run stands at %s after %d calls, want %s and none", run.State(), len(s.World.Calls), states.Assessed)
	}
}

func TestStageThatCallsWithoutAPermitIsStopped(t *testing.T) {
	wanted := &states.CallTool{Server: statestest.Server, Tool: statestest.Delete, Bytes: []byte(`{}`)}
	for _, at := range []fsm.State{states.Received, states.Validated, states.Permitted, states.Dispatched, states.Executed} {
		t.Run("in-"+string(at), func(t *testing.T) {
			defer states.ReplaceStage(at, func(s states.Stage) states.Stage { return wanting{s, wanted} })()
			s := statestest.Scenarios()[0]
			_, err := statestest.MustMachine(t).Advance(context.Background(), s.Run(), s.Entry(), &statestest.Memory{})
			if !errors.Is(err, states.ErrPermit) {
				t.Errorf("Advance() error = %v, want %v", err, states.ErrPermit)
			}
			for _, c := range s.World.Calls {
				if c.Tool == statestest.Delete {
					t.Errorf("a call without a permit reached the world: %+v", c)
				}
			}
		})
	}
}

type wanting struct {
	states.Stage
	cmd states.Command
}

func (w wanting) Want(*states.Run) states.Command { return w.cmd }

func TestRecordThatCannotBeKeptStopsTheRunBeforeTheCall(t *testing.T) {
	full := errors.New("disk full")
	for n := range 8 { // step 7 fires dispatch; the call comes behind it
		s := statestest.Scenarios()[0]
		_, err := statestest.MustMachine(t).Advance(context.Background(), s.Run(), s.Entry(), &failing{after: n, err: full})
		if !errors.Is(err, full) || len(s.World.Calls) != 0 {
			t.Errorf("record broken at step %d: error %v, %d calls; want the record's error and no call", n, err, len(s.World.Calls))
		}
	}
}

type failing struct {
	after int
	err   error
}

func (f *failing) Append(context.Context, states.Step) error {
	if f.after == 0 {
		return f.err
	}
	f.after--
	return nil
}
