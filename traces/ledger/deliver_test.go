package ledger_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// agents makes a scenario one of an agent's call.
func agents(actor string) func(*statestest.Scenario) {
	return func(s *statestest.Scenario) {
		s.Request.Actor, s.Request.Kind, s.Request.Text = actor, states.KindAgent, canonical.Text(statestest.GoodPlan)
	}
}

// called is an agent's call that was held, approved and made.
func (d *fixture) called(actor string) string {
	d.TB.Helper()
	id, s := d.approved(agents(actor))
	if _, err := d.resume(id, world(s)); err != nil {
		d.TB.Fatalf("resume() = %v", err)
	}
	return id
}

func TestDeliver(t *testing.T) {
	ended := func(d *fixture) string { return d.called(ledger.Anonymous) }
	for _, c := range []struct {
		name string
		run  func(*fixture) string
		how  string
		want error // nil: it is delivered, once
	}{
		{"in-the-answer-itself", ended, ledger.ByReply, nil},
		{"to-a-repetition", ended, ledger.ByRepeat, nil},
		{"as-a-task", ended, ledger.ByTask, nil},
		{"of-a-question", func(d *fixture) string { // not only agents wait
			id, s := d.approved(nil)
			if _, err := d.resume(id, world(s)); err != nil {
				d.TB.Fatal(err)
			}
			return id
		}, ledger.ByReply, nil},
		{"denied", func(d *fixture) string {
			id, _ := d.hold(agents(ledger.Anonymous))
			d.vote(id, d.Approver("dora"), false)
			if _, err := d.Recover(context.Background(), d.replayer(nil)); err != nil {
				d.TB.Fatal(err)
			}
			return id
		}, ledger.ByRepeat, nil},
		{"pending", func(d *fixture) string { id, _ := d.hold(nil); return id }, ledger.ByRepeat, ledger.ErrOpen},
		{"approved", func(d *fixture) string { id, _ := d.approved(nil); return id }, ledger.ByTask, ledger.ErrOpen},
		{"never-held", func(d *fixture) string { d.passes(1); return d.runs()[0] }, ledger.ByReply, ledger.ErrNotHeld},
		{"unknown", func(d *fixture) string { return ledgertest.NewID(d.TB) }, ledger.ByReply, ledger.ErrUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t)
			id := c.run(d)
			before := d.checkpoint()
			if first, err := d.Deliver(context.Background(), id, "by pigeon"); err == nil || first || d.checkpoint() != before {
				t.Errorf("Deliver() in an unknown way = %t, %v", first, err)
			}
			d.Clock.Set(d.TB, d.Clock.Now().Add(time.Second).Format(policy.TimeForm))
			first, err := d.Deliver(context.Background(), id, c.how)
			if !errors.Is(err, c.want) || first != (c.want == nil) {
				t.Fatalf("Deliver() = %t, %v, want %v", first, err, c.want)
			}
			if c.want != nil {
				if d.checkpoint() != before {
					t.Error("what is refused was recorded")
				}
				return
			}
			q := d.Run(id)
			if q.Delivered != d.Clock.Now().Format(policy.TimeForm) || q.Ended == "" || q.Entry != before.Size {
				t.Errorf("the request is %+v", q)
			}
			if q.Updated != q.Ended { // a client's completed task never changes
				t.Errorf("the delivery moved the time of the last change from %s to %s", q.Ended, q.Updated)
			}
			again, err := d.other().Deliver(context.Background(), id, ledger.ByTask)
			if again || err != nil || d.checkpoint().Size != before.Size+1 {
				t.Errorf("Deliver() once more = %t, %v", again, err)
			}
			d.sound()
			// What became of it can still be read, and nothing else can happen to it.
			if got, err := d.Ended(context.Background(), d.replayer(nil), id); err != nil || got.Head != q.Head {
				t.Errorf("Ended() = %v, %v", got.Head, err)
			}
			if err := d.Claim(context.Background(), id); !errors.Is(err, ledger.ErrEnded) {
				t.Errorf("Claim() = %v", err)
			}
		})
	}
}

func TestDeliverOfMany(t *testing.T) {
	d := newFixture(t)
	id := d.called(ledger.Anonymous)
	other := d.other()
	var all sync.WaitGroup
	var firsts atomic.Int32
	for i := range 64 {
		l := []*ledger.Ledger{d.Ledger, other.Ledger}[i%2]
		all.Go(func() {
			first, err := l.Deliver(context.Background(), id, ledger.DeliveryWays()[i%3])
			if err != nil {
				t.Error(err)
			}
			if first {
				firsts.Add(1)
			}
		})
	}
	all.Wait()
	if n := firsts.Load(); n != 1 {
		t.Errorf("%d were the first", n)
	}
}

// TestAttach: an agent's repeated call attaches to its oldest held one whose outcome nobody got yet. storetest has what a look-up compares.
func TestAttach(t *testing.T) {
	d := newFixture(t)
	const worker = "worker-1"
	d.token(worker, ledger.RoleAgent, "")
	attach := func(l ledger.RepeatedCall) string {
		t.Helper()
		run, err := d.other().Attach(context.Background(), l)
		if err != nil && (!errors.Is(err, ledger.ErrNotFound) || run != "") {
			t.Errorf("Attach() = %q, %v", run, err)
		}
		return run
	}
	allowed := statestest.Find(t, "policy-allows") // the very call, but it was not held
	agents(worker)(&allowed)
	if _, _, err := d.play(ledgertest.NewID(t), &allowed); err != nil {
		t.Fatal(err)
	}
	asked, _ := d.hold(func(s *statestest.Scenario) { s.Request.Actor = worker })
	q := d.Run(asked)
	look := ledger.RepeatedCall{Actor: worker, Server: q.Server, Tool: q.Tool, Arguments: q.Arguments}
	if got := attach(look); got != "" {
		t.Errorf("what is no agent's, or was not held, is attached to: %s of %s", got, asked)
	}
	first := d.called(worker)
	second, _ := d.hold(agents(worker))
	if got := attach(look); got != first {
		t.Errorf("Attach() = %q, want the oldest, %q", got, first)
	}
	d.delivers(first, ledger.ByRepeat)
	if got := attach(look); got != second {
		t.Errorf("when the oldest was delivered: %q, want %q", got, second)
	}
	d.vote(second, d.Approver("dora"), false)
	if _, err := d.Recover(context.Background(), d.replayer(nil)); err != nil {
		t.Fatal(err)
	}
	if got := attach(look); got != second {
		t.Errorf("when the other was denied: %q, want %q", got, second)
	}
	d.delivers(second, ledger.ByTask)
	if got := attach(look); got != "" {
		t.Errorf("when both were delivered: %q", got)
	}
}

// TestVerifyJudgesDeliveries: a ledger that was written anew as a whole cannot tell of an outcome before there was one, or twice.
func TestVerifyJudgesDeliveries(t *testing.T) {
	moved := func(before ledger.Type) edit {
		return func(t *testing.T, all []ledger.Event) []ledger.Event {
			i := lastOf(t, all, ledger.OutcomeDelivered)
			e := all[i]
			e.At = all[lastOf(t, all, before)].At
			all = slices.Delete(all, i, i+1)
			return slices.Insert(all, lastOf(t, all, before), e)
		}
	}
	d := newFixture(t)
	d.passes(1)
	other := d.runs()[0]
	held := d.called(ledger.Anonymous)
	d.delivers(held, ledger.ByRepeat)
	d.forge(t, []forgery{
		{"nothing-changed", unedited, ""},
		{"of-a-run-that-was-never-held", changes(ledger.OutcomeDelivered, func(e *ledger.Event) { e.RunID = other }), "is not what its entries say"},
		{"twice", repeated(ledger.OutcomeDelivered), "delivered twice"},
		{"before-the-end", moved(ledger.RunEnded), "has not ended"},
		{"before-people-were-asked", moved(ledger.ApprovalRequested), "never held"},
		{"another-way", edits(ledger.OutcomeDelivered, `"repeat"`, `"pigeon"`), "by way of"},
		{"of-no-run", changes(ledger.OutcomeDelivered, func(e *ledger.Event) { e.RunID = "" }), "must be about a run"},
		{"not-at-all", without(ledger.OutcomeDelivered), ""},
		{"something-behind-it", func(t *testing.T, all []ledger.Event) []ledger.Event {
			e := all[lastOf(t, all, ledger.RunClaimed)]
			e.At = all[len(all)-1].At
			return append(all, e)
		}, "is not what its entries say"},
	}...)
}

// TestPruneOfDeliveredRuns: of a run everything goes, or nothing.
func TestPruneOfDeliveredRuns(t *testing.T) {
	d := newFixture(t)
	early, late := d.called(ledger.Anonymous), ""
	d.delivers(early, ledger.ByReply)
	late = d.called(ledger.Anonymous) // is delivered later
	never := d.called(ledger.Anonymous)
	d.Clock.Set(t, "2026-11-21T09:40:00.000Z")
	d.delivers(late, ledger.ByTask)
	d.Clock.Set(t, "2026-11-21T09:50:00.000Z")
	d.passes(1)
	done := d.prunes("2026-11-21T09:40:00.000Z")
	if diff := cmp.Diff([]string{late}, d.runs()[:1]); diff != "" || done.Runs != 2 {
		t.Errorf("Prune() = %+v (-want +left):\n%s", done, diff)
	}
	if done := d.prunes("2026-11-21T09:50:00.000Z"); done.Runs != 1 || len(d.runs()) != 1 {
		t.Errorf("Prune() = %+v, %d runs are left", done, len(d.runs()))
	}
	if _, err := d.Deliver(context.Background(), never, ledger.ByTask); !errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("Deliver() of what was pruned = %v", err)
	}
}
