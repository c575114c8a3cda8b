package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// Times of a refresh. They count by the clock of the ledger, apart from refreshWait.
const (
	// RefreshLease is how long one caller may take to refresh a connection. It must exceed the time limits of the
	// requests that a refresh makes: when the lease ends, another caller sends the same refresh token.
	RefreshLease = time.Minute
	// refreshPause is the least time between two refreshes of a connection.
	refreshPause = 10 * time.Second
	// refreshWait is how long callers wait for the holder of a lease, and refreshPoll how often they look.
	refreshWait = 5 * time.Second
	refreshPoll = 50 * time.Millisecond
	// storeWait is how long the holder of a lease tries to store new credentials while the ledger is not available. The lease
	// lasts longer, after the requests of the refresh.
	storeWait = 20 * time.Second
)

// ErrRefreshing means that another caller refreshes a connection, and takes long.
var ErrRefreshing = errors.New("the credentials of the connection are being refreshed; try again")

// ErrCredentialsLost is the error of a refresh after which the credentials can never be used or refreshed again.
var ErrCredentialsLost = errors.New("the credentials of the connection cannot be refreshed any more")

// A refreshStep says what a caller that wants to refresh a connection does next.
type refreshStep int

const (
	refreshIsDone  refreshStep = iota // the row has newer credentials, or they were refreshed a moment ago
	refreshIsHeld                     // another caller refreshes them
	refreshIsReady                    // nobody does
)

// RefreshConnection returns the credentials of a connection that are newer than those of have. If the row has none, it
// calls refresh for them: of all callers that share the ledger, one at a time, and outside of a transaction. The new
// credentials are durable before anybody uses them. If a moment ago somebody has refreshed in vain, or refreshed
// the credentials that have has, it returns those of the row. While another caller refreshes them, it waits for the
// outcome if wait is set; the error is [ErrRefreshing] if it does not, or not any longer.
//
// If the error of refresh is [ErrCredentialsLost], the connection is lost, unless its credentials were replaced
// meanwhile. refresh must not depend on ctx alone: what it began has to end in the ledger. The error is
// [ErrUnconnected] if the connection has ended or is lost.
func (l *Ledger) RefreshConnection(ctx context.Context, keys SealKeys, have Connection, wait bool,
	refresh func(credentials []byte) ([]byte, error)) (c Connection, credentials []byte, err error) {
	leased, opened, err := l.leaseConnection(ctx, keys, &have, wait)
	if err != nil || leased.Holder == "" {
		return leased, opened, err
	}
	fresh, refreshErr := refresh(opened)
	within, cancel := context.WithTimeout(context.Background(), storeWait)
	defer cancel()
	_ = Poll(within, refreshPoll, func() (bool, error) { // without them, the connection is lost
		c, err = l.storeRefreshed(keys, leased, fresh, refreshErr)
		return !errors.Is(err, ErrUnavailable), nil
	})
	return c, fresh, errors.Join(refreshErr, err)
}

// leaseConnection takes the lease of a connection, or waits for its holder, if wait is set. Without a holder, the returned connection
// is not leased, and has the credentials that the caller uses.
func (l *Ledger) leaseConnection(ctx context.Context, keys SealKeys, have *Connection, wait bool) (c Connection, credentials []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, refreshWait, ErrRefreshing)
	defer cancel()
	holder := rand.Text()
	read := func(r Reader, now string) (step refreshStep, err error) {
		if c, step, err = have.nextRefresh(r, now); err != nil || step == refreshIsHeld {
			return step, err
		}
		credentials, err = keys.open(r, &c)
		return step, err
	}
	for {
		step := refreshIsDone
		err := l.View(ctx, func(r Reader) error {
			now, err := l.readTime(r)
			if err == nil {
				step, err = read(r, now)
			}
			return err
		})
		if err == nil && step == refreshIsReady {
			err = l.commit(ctx, func(b *batch) (err error) {
				if step, err = read(b, b.now); err != nil || step != refreshIsReady {
					return err
				}
				b.wrote, c.Holder, c.Until = true, holder, addToTime(b.now, RefreshLease)
				return b.PutConnection(c)
			})
		}
		switch {
		case err != nil:
			return c, nil, err
		case step == refreshIsDone:
			c.Holder = ""
			return c, credentials, nil
		case step == refreshIsReady:
			return c, credentials, nil
		case !wait:
			return c, nil, ErrRefreshing
		}
		select {
		case <-ctx.Done():
			return c, nil, context.Cause(ctx)
		case <-time.After(refreshPoll):
		}
	}
}

// nextRefresh returns the row of a connection, and what a caller does next whose credentials are older or the same.
func (c *Connection) nextRefresh(r Reader, now string) (row Connection, step refreshStep, err error) {
	row, err = r.Connection(c.Person, c.Server)
	switch {
	case errors.Is(err, ErrNotFound), err == nil && (row.ID != c.ID || !row.Usable()):
		return row, step, ErrUnconnected
	case err != nil:
		return row, step, err
	case row.Generation > c.Generation:
		return row, refreshIsDone, nil
	case row.Until <= now:
		return row, refreshIsReady, nil
	case row.Holder != "":
		return row, refreshIsHeld, nil
	}
	return row, refreshIsDone, nil
}

// storeRefreshed ends a lease, and stores what the refresh brought, if the row is still the one that was leased.
func (l *Ledger) storeRefreshed(keys SealKeys, leased Connection, fresh []byte, failed error) (c Connection, err error) {
	err = l.commit(context.Background(), func(b *batch) error {
		c, err = b.Connection(leased.Person, leased.Server)
		switch {
		case errors.Is(err, ErrNotFound), err == nil && (c.ID != leased.ID || c.Generation != leased.Generation || c.Holder != leased.Holder):
			return fmt.Errorf("%w: it was replaced or ended during a refresh", ErrUnconnected)
		case err != nil:
			return err
		}
		c.Holder, c.Until = "", addToTime(b.now, refreshPause)
		switch {
		case failed == nil:
			c.Generation++
			if err := keys.seal(b, &c, fresh); err != nil {
				return err
			}
		case errors.Is(failed, ErrCredentialsLost):
			return b.endConnection(l.owner, EndLost, &c)
		}
		b.wrote = true
		return b.PutConnection(c)
	})
	return c, err
}
