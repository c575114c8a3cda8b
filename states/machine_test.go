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

// lie changes the fact of a judgement.
func lie[F states.Fact](change func(F)) func(states.Judgement) states.Judgement {
	return func(j states.Judgement) states.Judgement {
		change(j.Fact.(F))
		return j
	}
}

// TestStageThatLiesIsRefused: no stage moves a run by a judgement that does not follow from the run. A held call, its approval and its permit
// have one judgement.
func TestStageThatLiesIsRefused(t *testing.T) {
	triggers := func(on fsm.Trigger) func(states.Judgement) states.Judgement {
		return func(j states.Judgement) states.Judgement { j.On = on; return j }
	}
	says := func(j states.Judgement) func(states.Judgement) states.Judgement {
		return func(states.Judgement) states.Judgement { return j }
	}
	binds := func(change func(*states.Binding)) func(states.Judgement) states.Judgement {
		return lie(func(f *states.HeldFact) {
			change(&f.Bound)
			f.Binding = canonical.Sum("approval binding", canonical.MustSorted(&f.Bound))
		})
	}
	done := &states.StoppedFact{Effect: states.EffectDone}
	done.Verdict.Code, done.Verdict.Outcome = "x", "block"
	for _, tc := range []struct {
		name  string
		at    fsm.State
		judge func(states.Judgement) states.Judgement
		held  bool
	}{
		{"wrong-trigger", states.Planned, triggers(states.Permit), false},
		{"skips-ahead", states.Screened, triggers(states.Dispatch), false},
		{"judged-other-arguments", states.Planned, lie(func(f *states.ValidatedFact) { f.Arguments = "sha256:00" }), false},
		{"judged-another-tool", states.Planned, lie(func(f *states.ValidatedFact) { f.Tool = statestest.Delete }), false},
		{"judged-another-plan", states.Validated, lie(func(f *states.AuthorizedFact) { f.Plan = "sha256:00" }), false},
		{"judged-another-definition", states.Validated, lie(func(f *states.AuthorizedFact) { f.Definition = "sha256:00" }), false},
		{"judged-by-another-bundle", states.Authorized, lie(func(f *states.AssessedFact) { f.Bundle = "sha256:00" }), false},
		{"verdict-missing", states.Validated, lie(func(f *states.AuthorizedFact) { f.Verdict = policy.Verdict{} }), false},
		{"permit-for-other-bytes", states.Assessed, lie(func(f *states.PermittedFact) { f.Arguments = []byte(`{"policy_id":"policy-001"}`) }), false},
		{"permit-with-a-trace-context", states.Assessed, lie(func(f *states.PermittedFact) { f.Trace = statestest.Traced("1") }), false},
		{"another-permit-consumed", states.Permitted, lie(func(f *states.DispatchedFact) { f.Permit = "sha256:00" }), false},
		{"another-result", states.Dispatched, lie(func(f *states.ExecutedFact) { f.Result = "sha256:00" }), false},
		{"block-after-the-call", states.Dispatched, says(states.Judgement{On: states.Block, Fact: &states.StoppedFact{}}), false},
		{"empty-summary", states.Typed, lie(func(f *states.SummarizedFact) { f.Items = nil }), false},
		{"claims-an-effect-before-the-call", states.Planned, says(states.Judgement{On: states.Fail, Fact: done}), false},
		{"binds-a-smaller-quorum", states.Assessed, binds(func(b *states.Binding) { b.Quorum = 0 }), true},
		{"binds-other-approvers", states.Assessed, binds(func(b *states.Binding) { b.Approvers = nil }), true},
		{"binds-a-lower-score", states.Assessed, binds(func(b *states.Binding) { b.Score = 1 }), true},
		{"binds-another-policy", states.Assessed, binds(func(b *states.Binding) { b.Policy = "other" }), true},
		{"binds-another-connection", states.Assessed, binds(func(b *states.Binding) { b.Connection = "" }), true},
		{"binds-another-actor", states.Assessed, binds(func(b *states.Binding) { b.Actor = "local:mallory" }), true},
		{"approved-another-judgement", states.Pending, lie(func(f *states.ApprovedFact) { f.Binding = "sha256:00" }), true},
		{"permit-of-no-judgement", states.Approved, lie(func(f *states.PermittedFact) { f.Binding = "" }), true},
		{"permit-of-another-judgement", states.Approved, lie(func(f *states.PermittedFact) { f.Binding = "sha256:00" }), true},
		{"permit-by-another-bundle", states.Approved, lie(func(f *states.PermittedFact) { f.Bundle = "sha256:00" }), true},
		{"permit-that-names-no-bundle", states.Approved, lie(func(f *states.PermittedFact) {
			*f = states.PermittedFact{
				Arguments: f.Arguments, Assessed: f.Assessed, Binding: f.Binding, Bundle: f.Bundle, Definition: f.Definition, Permit: f.Permit, Plan: f.Plan,
				Server: f.Server, Tool: f.Tool,
			}
		}), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			defer states.ReplaceStage(tc.at, func(s states.Stage) states.Stage { return liar{s, tc.judge} })()
			s := statestest.Scenarios()[0]
			if tc.held {
				s = statestest.HeldScenario()
			}
			run := s.Run()
			_, err := statestest.MustMachine(t).Advance(context.Background(), run, s.Entry(), &statestest.Memory{})
			var refused *fsm.TransitionError
			if !errors.As(err, &refused) || run.State() != tc.at || len(refused.Trail) == 0 || tc.held && len(s.World.Calls) != 0 {
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
		Arguments: r.Plan().Args.Bytes(), Assessed: policy.Verdict{Gate: policy.GatePolicy, Outcome: policy.Allow},
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
	none, err := canonical.ReadObject([]byte(`{}`))
	if err != nil {
		t.Fatalf("ReadObject() = %v", err)
	}
	wanted := &states.CallTool{Server: statestest.Server, Tool: statestest.Delete, Bytes: none}
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
