package ledger

import (
	"context"
	"errors"
	"time"

	"pgfsm/policy"
)

// PollInterval and MaxPollInterval bound how often a waiting goroutine reads the ledger, because a
// commit of another process wakes no goroutine of this one. While nothing changes, the pauses grow
// to an eighth of the time since the last change: hundreds of calls may wait for people.
const (
	PollInterval    = 250 * time.Millisecond
	MaxPollInterval = 2 * time.Second
)

// A Viewer reads consistent states. Ledgers and stores are Viewers.
type Viewer interface {
	View(ctx context.Context, do func(Reader) error) error
}

// Poll calls look at once and then at every interval, until look is done or fails, or until the
// context is done.
func Poll(ctx context.Context, every time.Duration, look func() (done bool, err error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// PollChanges calls look at once and then after growing pauses, until look is done or fails, or
// until the context is done. When look reports a change, the pauses are short again.
func PollChanges(ctx context.Context, look func() (changed, done bool, err error)) error {
	lastChange := time.Now()
	for {
		changed, done, err := look()
		if done || err != nil {
			return err
		}
		if changed {
			lastChange = time.Now()
		}
		pause := time.NewTimer(min(max(time.Since(lastChange)/8, PollInterval), MaxPollInterval))
		select {
		case <-ctx.Done():
			pause.Stop()
			return context.Cause(ctx)
		case <-pause.C:
		}
	}
}

// Wait waits until a run is no longer pending or has expired, even if the expiry is not recorded.
// It returns the request of the run. When the context is done, it returns the cause and the request
// as it was read last. The error is [ErrUnknown] if there is no such run.
func Wait(ctx context.Context, v Viewer, run string, clock func() time.Time) (q RunRow, err error) {
	err = PollChanges(ctx, func() (_, done bool, err error) {
		err = v.View(ctx, func(r Reader) error {
			row, err := r.Run(run)
			if err != nil {
				return explainNotFound(run, err)
			}
			q, done = row, row.Status != Pending || !policy.IsBefore(clock().UTC().Format(timeForm), row.Expires)
			return nil
		})
		return false, done, err
	})
	return q, err
}

// Watch calls handle for every event from an entry on, and for each new event, once each and in order.
// handle also gets the current request that the event is about, or the zero RunRow if there is none.
// Watch returns the error of handle, or the cause when the context is done. With a negative index it
// begins after the last entry.
func Watch(ctx context.Context, v Viewer, from int64, handle func(Event, RunRow) error) error {
	return PollChanges(ctx, func() (changed, _ bool, _ error) {
		for {
			events, err := nextEvents(ctx, v, &from)
			if err != nil || len(events) == 0 {
				return changed, false, err
			}
			for i := range events { // outside of the transaction, because handle may take long
				if err := handle(events[i].event, events[i].row); err != nil {
					return true, false, err
				}
				from = events[i].event.Index + 1
			}
			changed = true
		}
	})
}

// maxEntries bounds how many entries one transaction reads: a watcher that begins at the first
// entry may need a million.
const maxEntries = 1000

type seenEvent struct {
	event Event
	row   RunRow
}

// nextEvents returns the events of the next entries from an index on, each with its request.
func nextEvents(ctx context.Context, v Viewer, from *int64) (events []seenEvent, err error) {
	err = v.View(ctx, func(r Reader) error {
		if *from < 0 {
			end, err := r.End()
			*from = end.Size
			return err
		}

		n := 0
		for e, err := range r.Entries(*from) {
			if err != nil {
				return err
			}
			list, err := e.ReadEvents()
			if err != nil {
				return err
			}
			for _, event := range list {
				events = append(events, seenEvent{event: event})
			}
			if n++; n == maxEntries {
				break
			}
		}

		for i := range events {
			if events[i].event.RunID == "" {
				continue
			}
			q, err := r.Run(events[i].event.RunID)
			// The request is missing if it was pruned meanwhile.
			if err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
			events[i].row = q
		}

		return nil
	})
	return events, err
}
