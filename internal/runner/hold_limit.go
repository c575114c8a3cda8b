package runner

import (
	"context"
	"fmt"
	"sync"

	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// holds tracks the runs that are about to be held and are not in the ledger yet, with their
// callers.
type holds struct {
	mu    sync.Mutex
	begun map[string]ledger.Caller // key: the run's id
}

// A heldCallLimit ends a run whose call would be held, if the caller already has as many waiting
// calls as limits.held allows. Without the limit, one caller's calls could bury the calls of others
// in the approvers' list.
type heldCallLimit struct {
	states.EffectHandler
	configured *ConfiguredRunner
	run        *states.Run
	by         ledger.Caller
	reserved   bool // the run is in holds
}

// Do performs the effect. In the state assessed it needs none, so it may interrupt the run.
func (d *heldCallLimit) Do(ctx context.Context, wanted states.Command) (states.Event, error) {
	event, err := d.EffectHandler.Do(ctx, wanted)
	if err != nil || event != nil || d.run.State() != states.Assessed || !d.run.Facts().Assessed.Verdict.Holds() {
		return event, err
	}
	limit := d.configured.Serve.Held
	switch waiting, err := d.reserveHold(ctx, limit); {
	case err != nil:
		return nil, err
	case waiting >= limit:
		return states.Interruption(policy.CodeTooManyHeld,
			fmt.Sprintf("%d calls of this caller wait for approvers, as many as limits.held allows.", waiting)), nil
	}
	return nil, nil
}

// reserveHold counts the caller's waiting calls, up to a limit. Below the limit, it adds this call
// to the count. It does not see the calls that other gateways are about to hold.
func (d *heldCallLimit) reserveHold(ctx context.Context, limit int) (waiting int, err error) {
	h := &d.configured.runner.holds
	h.mu.Lock()
	defer h.mu.Unlock()
	err = d.configured.runner.options.Ledger.View(ctx, func(r ledger.Reader) error {
		waiting = 0
		for _, caller := range h.begun { // in any order: the loop only counts
			if caller.Name == d.by.Name && caller.OnBehalfOf() == d.by.OnBehalfOf() &&
				caller.Client() == d.by.Client() {
				waiting++
			}
		}
		for q, err := range r.Runs(ledger.Filter{Statuses: []ledger.Status{ledger.Pending}, Open: true,
			Actor: d.by.Name}) {
			switch _, counted := h.begun[q.RunID]; {
			case err != nil:
				return err
			case waiting >= limit:
				return nil
			case !counted && d.by.IsRequester(&q):
				waiting++
			}
		}
		return nil
	})
	if err != nil || waiting >= limit {
		return waiting, err
	}

	if h.begun == nil {
		h.begun = make(map[string]ledger.Caller)
	}
	h.begun[d.run.ID()] = d.by
	d.reserved = true
	return waiting, nil
}

// endReservation ends the reservation: the run is in the ledger, or was not held. Most runs have no
// reservation and take no lock here.
func (d *heldCallLimit) endReservation() {
	if !d.reserved {
		return
	}
	h := &d.configured.runner.holds
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.begun, d.run.ID())
}
