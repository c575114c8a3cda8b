package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"pgfsm/policy/canonical"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

// decides has calls held, and Alice say about each what she says. The ids are in order.
func (h *hall) decides(n int, approve bool) (ids []string) {
	h.t.Helper()
	h.with(time.Now, func(l *ledger.Ledger) error {
		alice, err := l.Authenticate(context.Background(), h.alice)
		if err != nil {
			return err
		}
		errs := make([]error, n)
		var wg sync.WaitGroup
		for i := range n {
			id, err := uuid.NewV7()
			if err != nil {
				return err
			}
			ids = append(ids, id.String())
			wg.Go(func() { errs[i] = h.decide(l, id.String(), alice, approve) })
		}
		wg.Wait()
		return errors.Join(errs...)
	})
	return ids
}

func (h *hall) decide(l *ledger.Ledger, id string, by ledger.Caller, approve bool) error {
	r := states.Request{
		Actor: statestest.Actor, At: now(), Kind: states.KindAsk, Text: canonical.Text(statestest.Question),
	}
	run := states.NewRun(id, r, statestest.MustBundle(heldContent(), nil))
	rec := l.Begin(traces.NewHeader(h.machine, run), run)
	defer rec.Abandon()
	if _, err := h.machine.Advance(context.Background(), run, rec.Door(statestest.NewWorld().Door()), rec); err != nil {
		return err
	}
	v := ledger.Ballot{Run: id, Binding: run.Held().Binding, By: by, Approve: approve, Reason: "as decided"}
	_, err := l.Vote(context.Background(), v)
	return err
}

// works gives a test the worker of a service that only decides, which has just swept up.
func (h *hall) works(do func(*worker)) {
	h.t.Helper()
	o, err := openLedger(world{}, "", h.name, toWrite)
	if err != nil {
		h.t.Fatal(err)
	}
	k, err := newWorker(o, nil, func(string) {})
	if err != nil {
		h.t.Fatal(err)
	}
	k.sweep = time.Now().Add(time.Hour)
	do(k)
	k.all.Wait()
	if err := o.Close(); err != nil {
		h.t.Error(err)
	}
}

// Runs that nothing can be done about keep no other from its turn, however many they are.
func TestAWorkerReadsOnBehindWhatItReads(t *testing.T) {
	for _, tt := range []struct {
		name string
		runs int
		ends int // the look that ends the last run
		anew int // the look behind which the next one begins with the oldest
	}{
		{"one-less", maxDecided - 1, 1, 1},
		{"at-the-limit", maxDecided, 1, 2},
		{"one-more", maxDecided + 1, 2, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHall(t)
			ids := h.decides(tt.runs, false)
			last := ids[len(ids)-1]
			h.works(func(k *worker) {
				for _, id := range ids[:len(ids)-1] {
					k.later[id] = retry{time.Now().Add(time.Hour), time.Hour}
				}
				k.later["nobody's business"] = retry{time.Now().Add(time.Hour), time.Hour}
				for i := 1; i <= tt.anew; i++ {
					if begins := k.after == ""; begins != (i == 1) {
						t.Errorf("look %d begins behind %q", i, k.after)
					}
					k.look(t.Context(), t.Context())
					k.all.Wait()
					if q := h.request(last); (q.Ended != "") != (i >= tt.ends) {
						t.Errorf("behind look %d the last run is %s at %s", i, q.Status, q.State)
					}
				}
				if len(k.later) != len(ids)-1 || k.after != "" {
					t.Errorf("%d runs are left alone, want %d; the next look begins behind %q", len(k.later), len(ids)-1, k.after)
				}
			})
		})
	}
}

// Where there is no room for a run, the next look begins with it.
func TestAWorkerWithoutRoom(t *testing.T) {
	h := newHall(t)
	ids := h.decides(2, false)
	h.works(func(k *worker) {
		k.later[ids[0]] = retry{time.Now().Add(time.Hour), time.Hour}
		for range maxResumed {
			k.slots <- struct{}{}
		}
		k.look(t.Context(), t.Context())
		k.all.Wait()
		if q := h.request(ids[1]); q.Ended != "" || k.after != ids[0] {
			t.Errorf("ended %q, the next look begins behind %q, want %q", q.Ended, k.after, ids[0])
		}
		<-k.slots
		k.look(t.Context(), t.Context())
	})
	if q := h.request(ids[1]); q.Ended == "" {
		t.Errorf("the run is %s at %s", q.Status, q.State)
	}
}

// A service that only decides does not even look at what people agreed to: it is left to others.
func TestAWorkerThatOnlyDecides(t *testing.T) {
	h := newHall(t)
	h.decides(1, true)
	denied := h.decides(1, false)[0]
	h.works(func(k *worker) {
		todo, err := k.decided(t.Context())
		if err != nil || len(todo) != 1 || todo[0].RunID != denied {
			t.Errorf("decided() = %s, %v, want the denied run alone", fmt.Sprint(todo), err)
		}
		k.app = new(app)
		if todo, err = k.decided(t.Context()); err != nil || len(todo) != 2 {
			t.Errorf("decided() of one that calls = %d runs, %v, want 2", len(todo), err)
		}
	})
}
