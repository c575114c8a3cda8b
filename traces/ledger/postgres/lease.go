package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pgfsm/traces/ledger"
)

const (
	microseconds = "* interval '1 microsecond'"
	takeLease    = "INSERT INTO replicas (owner, since, until) VALUES ($1, clock_timestamp(), clock_timestamp() + $2 " + microseconds + ") ON CONFLICT DO NOTHING"
	renewLease   = "UPDATE replicas SET until = clock_timestamp() + $2 " + microseconds +
		" WHERE owner = $1 AND NOT over RETURNING clock_timestamp()"
	// No process checks a lapsed lease whose owner had no run: it is deleted after a day.
	dropLeases = "DELETE FROM replicas WHERE until < clock_timestamp() - interval '1 day'"
	askOver    = "SELECT over::text FROM replicas WHERE owner = ?"
	askLease   = "SELECT (over OR until < clock_timestamp())::text FROM replicas WHERE owner = ?"
	endLease   = "UPDATE replicas SET over = true WHERE owner = ? AND NOT over AND until < clock_timestamp()"
)

// checkOwner returns an error unless owner is the id of an owner.
func checkOwner(owner string) error {
	if id, err := uuid.Parse(owner); err != nil || id.String() != owner {
		return fmt.Errorf("%q is not the id of an owner: want a UUID", owner)
	}
	return nil
}

// AcquireOwnership implements [ledger.Store.AcquireOwnership]. The store renews the owner's lease
// until release. An owner that no longer has a lease is never owned again.
func (s *Store) AcquireOwnership(ctx context.Context, owner string) (release func() error, err error) {
	if s.readOnly {
		return nil, errReadOnly
	}
	if err := checkOwner(owner); err != nil {
		return nil, err
	}
	if err := s.acquireSlot(ctx, s.writing); err != nil {
		return nil, err
	}
	defer func() { <-s.writing }()
	if _, err := s.exec(ctx, dropLeases); err != nil {
		return nil, err
	}

	n, err := s.exec(ctx, takeLease, owner, s.lease.Microseconds())
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, fmt.Errorf("the ledger: owner %s is another process", owner)
	}

	// From here on every transaction renews the lease, and so does a goroutine between
	// transactions.
	s.owners = append(s.owners, owner)
	ctx, stop := context.WithCancel(context.Background())
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		s.keepLease(ctx, owner)
	}()

	return sync.OnceValue(func() error {
		stop()
		<-renewed
		return s.releaseLease(owner)
	}), nil
}

// releaseTime bounds the end of a lease. Without its synchronous standby a database answers no
// commit, and the lease runs out anyway.
const releaseTime = 5 * time.Second

// releaseLease ends a lease. The caller ensures that no transaction of this store is in progress.
func (s *Store) releaseLease(owner string) error {
	if s.acquireSlot(context.Background(), s.writing) != nil {
		return nil // the lease was ended already, or runs out
	}
	defer func() { <-s.writing }()
	s.owners = slices.DeleteFunc(s.owners, func(o string) bool { return o == owner })
	ctx, stop := context.WithTimeout(context.Background(), releaseTime)
	defer stop()
	if _, err := s.exec(ctx, "DELETE FROM replicas WHERE owner = $1 AND NOT over", owner); ctx.Err() == nil {
		return err
	}
	return nil
}

// keepLease renews a lease until ctx is done. While the database is unavailable, it retries.
func (s *Store) keepLease(ctx context.Context, owner string) {
	tick := time.NewTicker(s.lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.closed:
			return
		case <-tick.C:
		}
		if s.checkUsable() == nil {
			s.renewOnce(ctx, owner)
		}
	}
}

// renewOnce renews a lease, unless another process has ended it.
func (s *Store) renewOnce(ctx context.Context, owner string) {
	ctx, stop := context.WithTimeout(ctx, s.lease)
	defer stop()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return
	}
	defer conn.Release()
	var dbTime time.Time
	sent := time.Now()
	err = conn.QueryRow(ctx, renewLease, owner, s.lease.Microseconds()).Scan(&dbTime)
	if errors.Is(err, pgx.ErrNoRows) {
		_ = s.endWith(ledger.ErrFenced) // every operation returns it
		return
	}
	if err != nil { // the next attempt follows
		return
	}

	s.setClock(dbTime, sent)
}

// OwnerGone implements [ledger.Store.OwnerGone]. It is called within views, so it does not wait for
// one.
func (s *Store) OwnerGone(ctx context.Context, owner string) (bool, error) {
	if err := errors.Join(checkOwner(owner), s.checkUsable()); err != nil {
		return false, err
	}
	exec := &executor{ctx: ctx, pool: s.pool, wait: s.wait}
	defer exec.release()
	t := newTx(ctx, exec)
	defer t.Finish()
	return t.leaseLapsed(askLease, owner)
}

// exec runs a statement outside of a transaction.
func (s *Store) exec(ctx context.Context, query string, args ...any) (int64, error) {
	ctx, stop := context.WithTimeoutCause(ctx, s.wait, errNoAnswer)
	defer stop()
	tag, err := s.pool.Exec(ctx, query, args...)
	if err != nil {
		return 0, explainError(ctx, err)
	}
	return tag.RowsAffected(), nil
}

// setClock compares the database's clock with this machine's: at is the database's time, and sent
// is this machine's time when it sent the query. The answer has arrived just now.
func (s *Store) setClock(dbTime, sent time.Time) {
	s.ahead.Store(int64(dbTime.Sub(sent.Add(time.Since(sent) / 2))))
}

// Now implements [ledger.Store.Now] with the database's clock.
func (s *Store) Now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }
