package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// statuses says how a request stands whose run ended like that.
func status(o states.Outcome) ledger.Status {
	switch o.Type {
	case states.TypeFailed:
		if o.Code == policy.CodeIndeterminate {
			return ledger.Indeterminate
		}
		return ledger.Failed
	case states.TypeBlocked:
		return ledger.Denied
	case states.TypeFinalAnswer:
		return ledger.Proposed
	case states.TypeDelegated, states.TypeReported, states.TypeUnreported:
		return ledger.Status(o.Type)
	case states.TypePending:
		return ledger.Pending
	}
	return ledger.Executed
}

// TestEveryScenarioIsRecorded: the trace of each run replays. While a call is under way, the ledger has the steps up to it.
func TestEveryScenarioIsRecorded(t *testing.T) {
	calls := 0
	for _, s := range statestest.Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			if strings.HasPrefix(s.Name, "history-") || strings.HasPrefix(s.Name, "ledger-count-") || strings.HasPrefix(s.Name, "origins-") {
				return // what was called before is made up there; here the ledger says it: TestHistory…, TestTasksAreCounted, TestOrigins…
			}
			d := newFixture(t)
			var early []traces.Step
			wrapped := s.Handler
			s.Handler = func(handler states.EffectHandler) states.EffectHandler {
				if wrapped != nil {
					handler = wrapped(handler)
				}
				return busy{handler, func() {
					calls++
					var underWay bool
					if early, underWay = d.steps(statestest.RunID, s.Decider); !underWay || len(early) == 0 || early[len(early)-1].To != states.Dispatched {
						t.Errorf("under way = %t, with the steps %+v", underWay, early)
					}
				}}
			}
			o, head, err := d.play(statestest.RunID, &s)
			if err != nil {
				t.Fatalf("play() = %v", err)
			}
			q := d.Run(statestest.RunID)
			if held := s.World.Decided != nil || s.State == states.Pending || strings.HasSuffix(s.Name, "-when-approved"); held {
				if o.Type != states.TypePending {
					t.Fatalf("a held run is %+v", o)
				}
			} else if o.State != string(s.State) || o.Code != s.Code && s.Code != "" {
				t.Fatalf("outcome %+v, want %s %s", o, s.State, s.Code)
			}
			if q.Status != status(o) || string(q.State) != o.State || (q.Ended == "") != o.Waits() || q.Owner != "" {
				t.Errorf("the request is %s at %s, ended %q, owner %q; the outcome is %+v", q.Status, q.State, q.Ended, q.Owner, o)
			}
			if want := len(s.World.Calls); (q.Sent != "") != (slices.Contains(d.types(statestest.RunID), ledger.ProxySent) || slices.Contains(d.types(statestest.RunID), ledger.CallDelegated)) || want > 0 && q.Sent == "" {
				t.Errorf("sent %q with %d calls", q.Sent, want)
			}
			trace := d.trace(statestest.RunID, o, s.Decider)
			if head != "" && (trace.Head != head || q.Head != head) {
				t.Errorf("heads: of the trace %s, of Finish %s, of the request %s", trace.Head, head, q.Head)
			}
			if q.Steps != len(trace.Steps) {
				t.Errorf("the request has %d steps, the trace %d", q.Steps, len(trace.Steps))
			}
			d.wantSteps(early, trace, s.Decider)
			if s.Decider == nil { // a test's decider is in no bundle
				d.sound()
			}
		})
	}
	if calls < 10 {
		t.Errorf("only %d calls were looked at", calls)
	}
}

func TestEventsOfARun(t *testing.T) {
	const (
		created, scored, made, sent = ledger.RequestCreated, ledger.RiskScored, ledger.DecisionMade, ledger.ProxySent
		result, ended, asked        = ledger.ToolResult, ledger.RunEnded, ledger.ApprovalRequested
	)
	wants := map[string][]ledger.Type{
		"policy-allows":                {created, scored, made, sent, result, ended},
		"policy-denies-by-effect":      {created, scored, made, ended},
		"policy-holds":                 {created, scored, made, asked},
		"input-rule-hit":               {created, made, ended},
		"call-timed-out":               {created, scored, made, sent, ended},
		"cancelled-when-permitted":     {created, scored, made, ended},
		"interrupted-when-screened":    {created, ended},
		"process-gone-when-dispatched": {created, scored, made, sent, ended},
	}
	for _, s := range statestest.Scenarios() {
		want, listed := wants[s.Name]
		if !listed {
			continue
		}
		delete(wants, s.Name)
		t.Run(s.Name, func(t *testing.T) {
			d := newFixture(t)
			if _, _, err := d.play(statestest.RunID, &s); err != nil {
				t.Fatal(err)
			}
			if got := d.types(statestest.RunID); !slices.Equal(got, want) {
				t.Errorf("events %v, want %v", got, want)
			}
		})
	}
	for name := range wants { // in any order
		t.Errorf("there is no scenario %s", name)
	}
}

func TestWhatTheRequestSays(t *testing.T) {
	d, s := newFixture(t), statestest.Find(t, "policy-holds")
	if _, _, err := d.play(statestest.RunID, &s); err != nil {
		t.Fatal(err)
	}
	q := d.Run(statestest.RunID)
	args := `{"policy_id":"policy-002"}`
	got := fmt.Sprint(q.At, q.Kind, q.Actor, q.Env, q.Server, q.Tool, q.Args, q.Mode, q.Score, q.Policy, q.Quorum, q.Approvers, q.Expires, q.Steps)
	want := fmt.Sprint(statestest.At, states.KindAsk, statestest.Actor, "test", statestest.Server, statestest.Tool, args, "review", 50,
		"looked-at", 1, []string{"owners"}, "2026-11-21T10:00:00.000Z", 7)
	if got != want {
		t.Errorf("the request says\n%s, want\n%s", got, want)
	}
	if q.Arguments != canonical.Sum("arguments", []byte(args)) || q.Binding == "" || q.Definition == "" || q.Bundle == "" {
		t.Errorf("digests are missing: %+v", q)
	}
}

func TestARunIsRecordedOnce(t *testing.T) {
	d, s := newFixture(t), statestest.Find(t, "policy-allows")
	if _, _, err := d.play(statestest.RunID, &s); err != nil {
		t.Fatal(err)
	}
	again := statestest.Find(t, "policy-allows")
	_, _, err := d.other().play(statestest.RunID, &again)
	if !errors.Is(err, ledger.ErrTaken) || len(again.World.Calls) != 0 {
		t.Errorf("play() of an id that is there = %v, %d calls", err, len(again.World.Calls))
	}
	if n := len(d.types(statestest.RunID)); n != 6 {
		t.Errorf("the refusal left %d events", n)
	}

	var all sync.WaitGroup // beside others that share its transaction
	for i := range 8 {
		s, id, want := statestest.Find(t, "policy-allows"), ledgertest.NewID(t), error(nil)
		if i%4 == 1 {
			id, want = statestest.RunID, ledger.ErrTaken
		}
		all.Go(func() {
			if _, _, err := d.play(id, &s); !errors.Is(err, want) {
				t.Errorf("run %s: %v, want %v", id, err, want)
			}
		})
	}
	all.Wait()
	d.sound()
}

// A run that is not in the ledger any more does not begin there anew.
func TestARunThatIsGoneStaysGone(t *testing.T) {
	d, s, ctx := newFixture(t), statestest.Find(t, "policy-allows"), context.Background()
	run, rec := d.begin(statestest.RunID, &s)
	o, err := d.Machine.Advance(ctx, run, rec.Effects(busy{s.Entry(), func() {
		err := d.Store.Update(ctx, func(tx ledger.Tx) error {
			return tx.Prune(nil, []string{statestest.RunID}, nil)
		})
		if err != nil {
			t.Errorf("Prune() = %v", err)
		}
	}}), rec)
	check.NoError(t, err)
	if _, err := rec.Finish(context.Background(), o); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("Finish() = %v, want %v", err, ledger.ErrNotFound)
	}
}

// Runs share the listing of their tool, whatever its age is.
func TestAListingIsStoredOnce(t *testing.T) {
	d, s := newFixture(t), statestest.Find(t, "policy-allows")
	var runs []string
	for range 3 {
		id := ledgertest.NewID(t)
		o, _, err := d.play(id, &s)
		check.NoError(t, err)
		d.trace(id, o, s.Decider)
		runs = append(runs, id)
		d.Clock.Add(time.Minute)
	}

	references := make(map[string]int)
	d.Inspect(func(r ledger.Reader) error {
		for _, run := range runs {
			for e, err := range r.EntriesOf(run) {
				if err != nil {
					return err
				}
				for _, found := range regexp.MustCompile(`"event":"@(sha256:[0-9a-f]+)"`).FindAllStringSubmatch(string(e.Body), -1) {
					references[found[1]]++
				}
			}
		}
		return nil
	})
	if len(references) != 1 {
		t.Errorf("the runs refer to %v, want one blob", references)
	}
}

func TestAClockSetBackStopsTheRun(t *testing.T) {
	for _, c := range []struct {
		name, now string
		refused   bool
	}{
		{"within-the-skew", "2026-11-21T08:59:00.000Z", false},
		{"one-millisecond-more", "2026-11-21T08:58:59.999Z", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, first, s := newFixture(t), statestest.Find(t, "policy-allows"), statestest.Find(t, "policy-allows")
			if _, _, err := d.play(ledgertest.NewID(t), &first); err != nil {
				t.Fatal(err)
			}
			d.Clock.Set(t, c.now)
			id := ledgertest.NewID(t)
			_, _, err := d.play(id, &s)
			if refused := errors.Is(err, ledger.ErrClockBack); refused != c.refused || refused == (len(s.World.Calls) > 0) {
				t.Fatalf("play() = %v, %d calls", err, len(s.World.Calls))
			}
			if !c.refused && d.Run(id).Sent != statestest.At {
				t.Errorf("the ledger's time went back to %s", d.Run(id).Sent)
			}
		})
	}
}

// TestStepsWithinOneSecond records two runs within one second, the second after the clock was set
// back: each step has its millisecond, and the times of entries never fall.
func TestStepsWithinOneSecond(t *testing.T) {
	d := newFixture(t)
	d.Clock.Tick(7 * time.Millisecond)
	second := statestest.At[:len("2026-11-21T09:00:00")]
	for range 2 {
		d.Clock.Set(t, statestest.At)
		id, s := ledgertest.NewID(t), statestest.Find(t, "policy-allows")
		if _, _, err := d.play(id, &s); err != nil {
			t.Fatal(err)
		}
		last := statestest.At
		steps, _ := d.steps(id, s.Decider)
		for _, step := range steps {
			if step.At <= last || !strings.HasPrefix(step.At, second) {
				t.Errorf("step %d of %d is of %s, want a later millisecond of the same second than %s", step.Seq, len(steps), step.At, last)
			}
			last = step.At
		}
	}

	last := ""
	err := d.View(t.Context(), func(r ledger.Reader) error {
		for e, err := range r.Entries(0) {
			if err != nil {
				return err
			}
			if e.At < last {
				t.Errorf("entry %d is of %s, before %s of the entry before it", e.Index, e.At, last)
			}
			last = e.At
		}
		return nil
	})
	check.NoError(t, err)
}
