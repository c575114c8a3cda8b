package ledger

import (
	"context"
	"errors"
	"time"

	"pgfsm/policy"
)

// PollInterval is how often whoever waits looks into the ledger. Another process's commit wakes nobody, and a look at a
// few rows costs microseconds; people do not notice a quarter of a second.
const PollInterval = 250 * time.Millisecond

// A Viewer reads consistent states. Ledgers and stores are viewers.
type Viewer interface {
	View(ctx context.Context, do func(Reader) error) error
}

// Poll calls look at once and then at every interval, until it says that it is done or fails, or the context is.
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

// Wait waits until a run is not pending any more, or its time is over, whether or not somebody has recorded that. It
// returns how the run stands. When the context is done it returns its cause, with the run as it was seen last. The error
// is [ErrUnknown] where there is no such run.
func Wait(ctx context.Context, v Viewer, run string, clock func() time.Time) (q Request, err error) {
	err = Poll(ctx, PollInterval, func() (done bool, err error) {
		err = v.View(ctx, func(r Reader) error {
			seen, err := r.Request(run)
			if err != nil {
				return orUnknown(run, err)
			}
			q, done = seen, seen.Status != Pending || !policy.Before(clock().UTC().Format(timeForm), seen.Expires)
			return nil
		})
		return done, err
	})
	return q, err
}

// Watch calls see for every event behind a seq, and for those that come, in order and once each, with the request that the
// event is about as it stands when the event is seen; the zero Request where there is none. It returns the error of see,
// or the cause when the context is done. A seq below zero begins behind the last event that is there.
func Watch(ctx context.Context, v Viewer, after int64, see func(Event, Request) error) error {
	return Poll(ctx, PollInterval, func() (bool, error) {
		for {
			seen, err := sights(ctx, v, &after)
			if err != nil {
				return false, err
			}
			for i := range seen { // outside of the snapshot: see may take as long as it likes
				if err := see(seen[i].event, seen[i].request); err != nil {
					return false, err
				}
				after = seen[i].event.Seq
			}
			if len(seen) < maxSights {
				return false, nil
			}
		}
	})
}

// maxSights bounds how many events are held at once: whoever watches from the beginning may have a million to come.
const maxSights = 1000

type sight struct {
	event   Event
	request Request
}

// sights returns the next events behind a seq, each with its request.
func sights(ctx context.Context, v Viewer, after *int64) (seen []sight, err error) {
	err = v.View(ctx, func(r Reader) error {
		if *after < 0 {
			end, err := lastLink(r)
			*after = end.seq
			return err
		}
		for e, err := range r.Events(*after) {
			if err != nil {
				return err
			}
			if seen = append(seen, sight{event: e}); len(seen) == maxSights {
				break
			}
		}
		for i := range seen {
			if seen[i].event.RunID == "" {
				continue
			}
			q, err := r.Request(seen[i].event.RunID)
			if err != nil && !errors.Is(err, ErrNotFound) { // it was pruned meanwhile
				return err
			}
			seen[i].request = q
		}
		return nil
	})
	return seen, err
}
