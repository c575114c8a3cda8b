//go:build unix

package crash_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

// Loads: what a process does.
const (
	mixed   = "mixed"   // fresh runs, held ones, votes and resumptions, until it is killed
	steady  = "steady"  // alternating new runs and resumptions, until the test ends it
	drain   = "drain"   // all that was approved is taken up, and the process ends
	racing  = "racing"  // everybody votes about the runs that are named, while others try to take them up
	filling = "filling" // fresh runs until the ledger takes no more, and some afterwards, when there is room again
)

// Places at which a process kills itself.
const (
	beforeUpdate = "before"       // nothing of the transaction was written
	withinUpdate = "within"       // all of it was written, and it was not committed
	afterUpdate  = "after-commit" // it was committed, and nobody has received of it
)

// killing is a store whose process does not survive one of its updates.
type killing struct {
	ledger.Store
	place string
	nth   int64
	count atomic.Int64
}

func (k *killing) Update(ctx context.Context, do func(ledger.Tx) error) error {
	here := func(place string) bool { return false }
	if n := k.count.Add(1); n == k.nth {
		here = func(place string) bool { return place == k.place }
	}
	if here(beforeUpdate) {
		die()
	}
	err := k.Store.Update(ctx, func(tx ledger.Tx) error {
		err := do(tx)
		if err == nil && here(withinUpdate) {
			die()
		}
		return err
	})
	if here(afterUpdate) {
		die()
	}
	return err
}

// A worker is a process that has a ledger open.
type worker struct {
	*ledger.Ledger
	tell    func(message)
	call    func(run string) // is the upstream
	told    <-chan string    // what the test says
	machine *states.Machine
	bundles []*policy.Bundle // by quorum
	people  []ledger.Caller
}

// work executes the orders of a process.
func work(o order, l *line) error {
	restore, err := o.confine()
	if err != nil {
		return err
	}
	store, err := stores.Open(o.URL, stores.ToWrite)
	if err != nil {
		return err
	}
	w, err := newWorker(&killing{Store: store, place: o.Place, nth: o.Nth}, ledger.Options{})
	if err != nil {
		return err
	}
	w.tell, w.told = l.tell, l.told
	w.call = func(run string) { l.ask(message{Kind: isCall, Run: run}) }
	for _, text := range o.Tokens {
		c, err := w.Authenticate(context.Background(), text)
		if err != nil {
			return err
		}
		w.people = append(w.people, c)
	}
	if o.Load != racing {
		if err := w.recovers(); err != nil {
			return err
		}
	}
	l.tell(message{Kind: isReady, Owner: w.Owner()})
	if err := w.loaded(&o, restore); err != nil {
		return err
	}
	return errors.Join(w.Close(), store.Close())
}

// newWorker opens a ledger.
func newWorker(store ledger.Store, o ledger.Options) (w *worker, err error) {
	w = &worker{}
	if w.machine, err = states.NewMachine(); err != nil {
		return nil, err
	}
	for quorum := range 3 {
		w.bundles = append(w.bundles, statestest.MustBundle(content(quorum), nil))
	}
	w.Ledger, err = ledger.Open(context.Background(), store, o)
	return w, err
}

// recovers ends what processes that are gone left.
func (w *worker) recovers() error {
	all, err := w.Recover(context.Background(), w.replayer())
	for _, r := range all {
		err = errors.Join(err, r.Err)
	}
	return err
}

func (w *worker) replayer() *traces.Replayer { return traces.NewReplayer(w.machine, nil) }

func (w *worker) loaded(o *order, restore func() error) error {
	switch o.Load {
	case drain:
		return w.drains()
	case racing:
		return w.races()
	case filling:
		return w.fills(restore)
	}
	var all sync.WaitGroup
	fails := make(chan error, o.Hands)
	var stopped atomic.Bool
	go func() {
		<-w.told
		stopped.Store(true)
	}()
	for hand := range o.Hands {
		all.Go(func() {
			r := rand.New(rand.NewPCG(o.Seed, uint64(hand)))
			for !stopped.Load() {
				var err error
				if o.Load == steady {
					err = w.steady(hand)
				} else {
					err = w.mixed(r)
				}
				if err != nil {
					fails <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(fails)
	return <-fails
}

// content of quorum 0 allows the world's call, and any other holds it for an hour until so many of the owners agree.
func content(quorum int) policy.Content {
	c := statestest.Content()
	c.Roles = []policy.Role{{Role: "owners", Actors: people}}
	p := rules.Policy{ID: "looked-at", Effect: rules.Pending, Reason: "A person looks.", Approvers: []string{"owners"}, Quorum: quorum,
		Expires: int64(time.Hour / time.Millisecond)}
	if quorum == 0 {
		p = rules.Policy{ID: "reads", Effect: rules.Allow, Reason: "Reading is fine."}
	}
	c.Policy = statestest.Policies(p)
	return c
}

// people may decide.
var people = func() (all []string) {
	for i := range 2 * electorate {
		all = append(all, fmt.Sprintf("person-%d", i))
	}
	return all
}()

// mixed does one thing of any kind.
func (w *worker) mixed(r *rand.Rand) error {
	switch n := r.IntN(100); {
	case n < 40:
		_, err := w.fresh(0)
		return err
	case n < 60:
		_, err := w.fresh(1 + r.IntN(2))
		return err
	case n < 90:
		return w.votes(r)
	}
	ids, err := w.approved()
	if err != nil || len(ids) == 0 {
		return err
	}
	return w.takes(ids[r.IntN(len(ids))])
}

// fresh plays a run as the command does, and returns its id.
func (w *worker) fresh(quorum int) (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", err
	}
	ask := states.Request{
		Actor: "local:erin", At: time.Now().UTC().Format(time.RFC3339), Kind: states.KindAsk, Text: canonical.Text(statestest.Question),
	}
	run := states.NewRun(id.String(), ask, w.bundles[quorum])
	rec := w.Begin(traces.NewHeader(w.machine, run), run)
	world := statestest.NewWorld()
	o, err := w.machine.Advance(context.Background(), run, rec.Effects(&states.Live{Tools: world, Completer: world, Caller: upstream{w}}), rec)
	if err != nil || o.Type == states.TypePending {
		if err != nil {
			rec.Abandon()
		}
		return id.String(), err
	}
	head, err := rec.Finish(context.Background(), o)
	if err != nil {
		rec.Abandon()
		return id.String(), err
	}
	w.tell(message{Kind: isEnded, Run: id.String(), Head: string(head)})
	return id.String(), nil
}

// upstream makes calls at the test, which counts them.
type upstream struct{ *worker }

// Call is [states.Caller.Call].
func (u upstream) Call(_ context.Context, c *states.CallTool) states.Event {
	u.call(c.Run)
	return &states.ToolReturned{Result: canonical.Text(statestest.GoodResult)}
}

// votes casts a vote about a held run.
func (w *worker) votes(r *rand.Rand) error {
	var waits []ledger.Request
	err := w.View(context.Background(), func(r ledger.Reader) error {
		for q, err := range r.Requests(ledger.Filter{Statuses: []ledger.Status{ledger.Pending}, Open: true, Limit: 16}) {
			if err != nil {
				return err
			}
			waits = append(waits, q)
		}
		return nil
	})
	if err != nil || len(waits) == 0 {
		return err
	}
	q := waits[r.IntN(len(waits))]
	return w.vote(&q, w.people[r.IntN(len(w.people))], r.IntN(4) > 0)
}

// vote casts a vote and tells what was acknowledged. That others were faster is no fault.
func (w *worker) vote(q *ledger.Request, by ledger.Caller, approve bool) error {
	now, err := w.Vote(context.Background(), ledger.Ballot{Run: q.RunID, Binding: q.Binding, By: by, Approve: approve, Reason: "as agreed"})
	if errors.Is(err, ledger.ErrDecided) || errors.Is(err, ledger.ErrVoted) {
		return nil
	}
	if err == nil {
		w.tell(message{Kind: isVoted, Run: q.RunID, By: by.Name, Approve: approve, Status: string(now.Status)})
	}
	return err
}

// approved are runs that wait to be taken up.
func (w *worker) approved() (ids []string, err error) {
	err = w.View(context.Background(), func(r ledger.Reader) error {
		for q, err := range r.Requests(ledger.Filter{Statuses: []ledger.Status{ledger.Approved}, Open: true, Limit: 16}) {
			if err != nil {
				return err
			}
			ids = append(ids, q.RunID)
		}
		return nil
	})
	return ids, err
}

// takes takes up a run that was decided. That others have it is no fault.
func (w *worker) takes(id string) error {
	err := w.Claim(context.Background(), id)
	if errors.Is(err, ledger.ErrTaken) || errors.Is(err, ledger.ErrEnded) || errors.Is(err, ledger.ErrStarted) {
		return nil
	}
	if err != nil {
		return err
	}
	got, err := w.Resume(context.Background(), w.replayer(), id, w.world(id))
	if err != nil {
		return fmt.Errorf("run %s, which is this process's: %w", id, err)
	}
	w.tell(message{Kind: isEnded, Run: id, Head: string(got.Head)})
	return nil
}

// standing is how a run stands.
func (w *worker) standing(id string) (q ledger.Request, err error) {
	err = w.View(context.Background(), func(r ledger.Reader) (err error) {
		q, err = r.Request(id)
		return err
	})
	return q, err
}

// world is what a run finds that is taken up. The configuration is the run's.
func (w *worker) world(id string) ledger.World {
	var bundle *policy.Bundle
	q, err := w.standing(id)
	for _, b := range w.bundles {
		if err == nil && b.Digest() == q.Bundle {
			bundle = b
		}
	}
	world := statestest.NewWorld()
	return ledger.World{
		Ports: func(*states.Run) *states.Live {
			return &states.Live{Tools: world, Completer: world, Caller: upstream{w}}
		},
		Bundle: bundle,
	}
}

// steady plays a fresh run, or one that is held and taken up. Nobody else may end one that this process has.
func (w *worker) steady(hand int) error {
	if hand%2 == 0 {
		_, err := w.fresh(0)
		return err
	}
	id, err := w.fresh(1)
	if err != nil {
		return err
	}
	q, err := w.standing(id)
	if err == nil {
		err = w.vote(&q, w.people[0], true)
	}
	if err != nil {
		return err
	}
	return w.takes(id)
}

// drains takes up everything that was approved.
func (w *worker) drains() error {
	for {
		ids, err := w.approved()
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			if err := w.takes(id); err != nil {
				return err
			}
		}
	}
}
