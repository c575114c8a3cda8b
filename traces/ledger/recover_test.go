package ledger_test

import (
	"context"
	"errors"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// crash plays a run in another process, which is gone when its call leaves.
func (d *fixture) crash() string {
	d.TB.Helper()
	s, id := statestest.Find(d.TB, "policy-allows"), ledgertest.NewID(d.TB)
	other := d.other()
	run, rec := other.begin(id, &s)
	killed := errors.New("killed")
	_, err := other.Machine.Advance(context.Background(), run, crashing{s.Entry(), func() error {
		other.Store.Crash()
		return killed
	}}, rec)
	if !errors.Is(err, killed) {
		d.TB.Fatalf("Advance() = %v", err)
	}
	return id
}

type crashing struct {
	states.EffectHandler
	end func() error
}

func (c crashing) Do(ctx context.Context, command states.Command) (states.Event, error) {
	if _, calls := command.(*states.CallTool); calls {
		return nil, c.end()
	}
	return c.EffectHandler.Do(ctx, command)
}

func TestRecovery(t *testing.T) {
	for _, c := range []struct {
		name   string
		leave  func(*fixture) string
		state  string
		code   policy.Code
		status ledger.Status // of a run that is left alone: as it stands
	}{
		{"call-in-flight", (*fixture).crash, "failed", policy.CodeIndeterminate, ledger.Indeterminate},
		{"waits-for-people", func(d *fixture) string { id, _ := d.hold(nil); return id }, "", "", ledger.Pending},
		{"approved", func(d *fixture) string { id, _ := d.approved(nil); return id }, "", "", ledger.Approved},
		{"denied", func(d *fixture) string {
			id, _ := d.hold(nil)
			d.vote(id, d.Approver("dora"), false)
			return id
		}, "blocked", policy.CodeApprovalDenied, ledger.Denied},
		{"nobody-in-time", func(d *fixture) string {
			id, _ := d.hold(nil)
			d.Clock.Set(d.TB, "2026-11-21T10:00:00.000Z")
			return id
		}, "blocked", policy.CodeApprovalExpired, ledger.Expired},
		{"a-second-before", func(d *fixture) string {
			id, _ := d.hold(nil)
			d.Clock.Set(d.TB, "2026-11-21T09:59:59.000Z")
			return id
		}, "", "", ledger.Pending},
		{"approved-and-never-taken-up", func(d *fixture) string {
			id, _ := d.approved(nil)
			d.Clock.Set(d.TB, "2026-11-21T10:00:00.000Z")
			return id
		}, "blocked", policy.CodeApprovalExpired, ledger.Expired},
		{"claimed-and-gone", func(d *fixture) string {
			id, _ := d.approved(nil)
			other := d.other()
			check.NoError(d.TB, other.Claim(context.Background(), id))
			other.Store.Crash()
			return id
		}, "", "", ledger.Approved},
		{"ended", func(d *fixture) string {
			s, id := statestest.Find(d.TB, "policy-allows"), ledgertest.NewID(d.TB)
			if _, _, err := d.play(id, &s); err != nil {
				d.TB.Fatal(err)
			}
			return id
		}, "", "", ledger.Executed},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t)
			id := c.leave(d)
			got, err := d.Recover(context.Background(), d.replayer(nil))
			if err != nil {
				t.Fatalf("Recover() = %v", err)
			}
			if q := d.Run(id); q.Status != c.status || q.Sent != "" && c.status != ledger.Executed && c.status != ledger.Indeterminate {
				t.Errorf("the request is %s, sent %q; want %s", q.Status, q.Sent, c.status)
			}
			if c.state == "" {
				if len(got) != 0 {
					t.Errorf("Recover() = %+v, want nothing", got)
				}
				return
			}
			if len(got) != 1 || got[0].Err != nil || got[0].RunID != id || got[0].Outcome.State != c.state || got[0].Outcome.Code != c.code {
				t.Fatalf("Recover() = %+v, want %s %s", got, c.state, c.code)
			}
			if trace := d.trace(id, got[0].Outcome, nil); trace.Head != got[0].Head || d.Run(id).Head != got[0].Head {
				t.Errorf("heads: %s, %s, %s", trace.Head, got[0].Head, d.Run(id).Head)
			}
			if got, err := d.Recover(context.Background(), d.replayer(nil)); len(got) != 0 || err != nil {
				t.Errorf("once more: %+v, %v", got, err)
			}
		})
	}
}

// A recovery does not touch the running call of a live process.
func TestRecoveryLeavesLiveProcessesAlone(t *testing.T) {
	d, s := newFixture(t), statestest.Find(t, "policy-allows")
	other := d.other()
	run, rec := d.begin(statestest.RunID, &s)
	o, err := d.Machine.Advance(context.Background(), run, busy{s.Entry(), func() {
		for _, at := range []*fixture{d, other} {
			if got, err := at.Recover(context.Background(), d.replayer(nil)); len(got) != 0 || err != nil {
				t.Errorf("Recover() = %+v, %v", got, err)
			}
		}
	}}, rec)
	check.NoError(t, err)
	if _, err := rec.Finish(context.Background(), o); err != nil || d.Run(statestest.RunID).Status != ledger.Executed {
		t.Errorf("Finish() = %v, %s", err, d.Run(statestest.RunID).Status)
	}
}

// busy does something while the call is in flight.
type busy struct {
	states.EffectHandler
	do func()
}

func (b busy) Do(ctx context.Context, command states.Command) (states.Event, error) {
	if _, calls := command.(*states.CallTool); calls {
		b.do()
	}
	return b.EffectHandler.Do(ctx, command)
}

// blind is a store that cannot say of one owner whether it lives.
type blind struct {
	*ledgertest.Store
	owner string
}

var errUnreadable = errors.New("its lock cannot be read")

func (b *blind) OwnerGone(ctx context.Context, owner string) (bool, error) {
	if owner == b.owner {
		return false, errUnreadable
	}
	return b.Store.OwnerGone(ctx, owner)
}

func (b *blind) Update(ctx context.Context, do func(ledger.Tx) error, ahead ...func(ledger.Reader)) error {
	return b.Store.Update(ctx, func(tx ledger.Tx) error { return do(goneBy{tx, b}) }, ahead...)
}

// goneBy asks a store whether an owner is gone.
type goneBy struct {
	ledger.Tx
	store ledger.Store
}

func (t goneBy) OwnerGone(owner string) (bool, error) {
	return t.store.OwnerGone(context.Background(), owner)
}

// One owner of whom nothing can be told keeps its own runs from being ended, and no others.
func TestRecoveryGoesOnBehindALockThatCannotBeRead(t *testing.T) {
	d := newFixture(t)
	before, unreadable, after := d.crash(), d.crash(), d.crash()
	store := &blind{d.Store.Open(), d.Run(unreadable).Owner}
	l, err := ledger.Open(context.Background(), store, ledger.Options{Clock: d.Clock.Now})
	check.NoError(t, err)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	got, err := l.Recover(context.Background(), d.replayer(nil))
	if err != nil || len(got) != 3 {
		t.Fatalf("Recover() = %+v, %v", got, err)
	}
	for _, r := range got {
		wrong := r.Err != nil || d.Run(r.RunID).Status != ledger.Indeterminate
		if r.RunID == unreadable {
			wrong = !errors.Is(r.Err, errUnreadable) || d.Run(r.RunID).Ended != ""
		} else if r.RunID != before && r.RunID != after {
			wrong = true
		}
		if wrong {
			t.Errorf("run %s: %+v, it stands at %s", r.RunID, r, d.Run(r.RunID).Status)
		}
	}
	store.owner = ""
	if got, err := l.Recover(context.Background(), d.replayer(nil)); err != nil || len(got) != 1 || got[0].RunID != unreadable || got[0].Err != nil {
		t.Errorf("when it can be read again: Recover() = %+v, %v", got, err)
	}
}

// A believer is a store that takes every owner for gone, as who cannot see its lock would.
type believer struct{ ledger.Store }

func (believer) OwnerGone(context.Context, string) (bool, error) { return true, nil }

func (b believer) Update(ctx context.Context, do func(ledger.Tx) error, ahead ...func(ledger.Reader)) error {
	return b.Store.Update(ctx, func(tx ledger.Tx) error { return do(goneBy{tx, b}) }, ahead...)
}

// TestARunThatWasTakenAwayIsNotGoneOnWith: locks are an aid. Whoever's run was ended or taken up by another process, rightly or not,
// finds that out before anything is called or recorded.
func TestARunThatWasTakenAwayIsNotGoneOnWith(t *testing.T) {
	for _, c := range []struct {
		name string
		at   string // when it is gone on with
		take func(*testing.T, *ledger.Ledger, *fixture, string)
	}{
		{"ended", "2026-11-21T10:30:00.000Z" /* it has expired */, func(t *testing.T, l *ledger.Ledger, d *fixture, id string) {
			if got, err := l.RecoverRun(context.Background(), d.replayer(nil), id); err != nil {
				t.Fatalf("RecoverRun() = %+v, %v", got, err)
			}
		}},
		{"taken-up", inTime, func(t *testing.T, l *ledger.Ledger, _ *fixture, id string) {
			if err := l.Claim(context.Background(), id); err != nil {
				t.Fatalf("Claim() = %v", err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t)
			l, err := ledger.Open(context.Background(), believer{d.Store.Open()}, ledger.Options{Clock: d.Clock.Now})
			check.NoError(t, err)
			defer l.Close()
			id, s := d.approved(nil)
			check.NoError(t, d.Claim(context.Background(), id))
			d.Clock.Set(t, c.at)
			w := world(s)
			ports := w.Ports
			w.Ports = func(r *states.Run) *states.Live {
				c.take(t, l, d, id)
				return ports(r)
			}
			before, calls := d.checkpoint(), 0
			_, err = d.Resume(context.Background(), d.replayer(nil), id, w)
			var refused *ledger.ClaimError
			if !errors.As(err, &refused) || !errors.Is(err, ledger.ErrTaken) || len(s.World.Calls) != 0 {
				t.Errorf("Resume() = %v, %d calls, want %v", err, len(s.World.Calls), ledger.ErrTaken)
			}
			if got := d.Run(id); got.Sent != "" || d.checkpoint() == before {
				t.Errorf("the request is %+v", got)
			}
			if c.name == "taken-up" {
				calls = 1
				s.World.Listed = append(s.World.Listed, s.World.Listed[1])
				_, err := l.Resume(context.Background(), d.replayer(nil), id, world(s))
				check.NoError(t, err)
			}
			if len(s.World.Calls) != calls {
				t.Errorf("the other process makes %d calls, want %d", len(s.World.Calls), calls)
			}
			d.sound()
		})
	}
}
