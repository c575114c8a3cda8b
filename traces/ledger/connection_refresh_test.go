package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// A rotating is an authorization server that issues a new refresh token at each use. A used one that comes again ends everything.
type rotating struct {
	mu               sync.Mutex
	current          int
	requests, reuses int
	looks            chan struct{} // a caller looks at the row; nil: the answer waits for none
	reused           chan struct{} // closed at the first reuse, which ends the waiting
	once             sync.Once
}

// refresh answers when other callers have looked at the row several times, and might have begun a refresh.
func (a *rotating) refresh(used []byte) ([]byte, error) {
	a.mu.Lock()
	a.requests++
	n, good := a.current+1, string(used) == token(a.current)
	if !good {
		a.reuses++
	} else {
		a.current = n
	}
	a.mu.Unlock()
	for range 40 {
		if a.looks == nil || !good {
			break
		}
		select {
		case <-a.looks:
		case <-a.reused:
		}
	}
	if !good {
		if a.reused != nil {
			a.once.Do(func() { close(a.reused) })
		}
		return nil, ledger.ErrCredentialsLost
	}
	return []byte(token(n)), nil
}

// look counts as a look at the row, if a refresh waits for one.
func (a *rotating) look(op ledgertest.Op, _ int) error {
	if op == ledgertest.Read {
		select {
		case a.looks <- struct{}{}:
		default:
		}
	}
	return nil
}

func token(n int) string { return "refresh-" + strconv.Itoa(n) }

// authorize connects fay with the tokens of an authorization server.
func (d *fixture) authorize() ledger.Connection {
	d.TB.Helper()
	c, err := d.Connect(context.Background(), person(fay), sealKeys(1), ledger.Connection{Server: "files", Kind: ledger.ConnectionOAuth,
		Issuer: issuer, Client: "app", Resource: resource, Scopes: []string{"repo"}}, token(0))
	check.NoError(d.TB, err)
	return c
}

// TestRefreshRaces: sixteen callers in four processes want to refresh one connection, several times, and the authorization server never sees a
// token twice. Each caller gets the newest credentials.
func TestRefreshRaces(t *testing.T) {
	d := newFixture(t)
	processes := []*fixture{d, d.other(), d.other(), d.other()}
	from, made := &rotating{looks: make(chan struct{}), reused: make(chan struct{})}, d.authorize()
	for _, p := range processes {
		p.Store.Fail = from.look
	}
	for round := 1; round <= 5; round++ {
		var group sync.WaitGroup
		for n := range 16 {
			group.Go(func() {
				c, got, err := processes[n%4].RefreshConnection(context.Background(), sealKeys(1), made, true, from.refresh)
				if err != nil || string(got) != token(round) || c.Generation != int64(round)+1 {
					t.Errorf("RefreshConnection() = %d, %q, %v in round %d", c.Generation, got, err, round)
				}
			})
		}
		group.Wait()
		if from.reuses != 0 || from.requests != round {
			t.Fatalf("%d requests and %d reuses after round %d", from.requests, from.reuses, round)
		}
		made = d.connectionOf(fay, "files")
		d.Clock.Add(time.Minute)
	}
	d.sound()
}

// TestRefresh: who gets which credentials, and what the row says afterwards.
func TestRefresh(t *testing.T) {
	ctx := context.Background()
	never := func([]byte) ([]byte, error) { return nil, errors.New("a second refresh") }
	down := errors.New("down")

	t.Run("not-twice-in-ten-seconds", func(t *testing.T) {
		d := newFixture(t)
		first, _, err := d.RefreshConnection(ctx, sealKeys(1), d.authorize(), true, new(rotating).refresh)
		check.NoError(t, err)
		for _, after := range []time.Duration{0, 9 * time.Second} {
			d.Clock.Add(after)
			if _, got, err := d.other().RefreshConnection(ctx, sealKeys(1), first, true, never); err != nil || string(got) != token(1) {
				t.Errorf("RefreshConnection() = %q, %v", got, err)
			}
		}
		d.Clock.Add(time.Second)
		second := &rotating{current: 1}
		if _, got, err := d.RefreshConnection(ctx, sealKeys(1), first, true, second.refresh); err != nil || string(got) != token(2) {
			t.Errorf("RefreshConnection() = %q, %v", got, err)
		}
	})
	t.Run("failure-keeps-the-old", func(t *testing.T) {
		d := newFixture(t)
		made := d.authorize()
		if _, _, err := d.RefreshConnection(ctx, sealKeys(1), made, true, func([]byte) ([]byte, error) { return nil, down }); !errors.Is(err, down) {
			t.Errorf("RefreshConnection() = %v", err)
		}
		if c, got, err := d.RefreshConnection(ctx, sealKeys(1), made, true, never); err != nil || string(got) != token(0) || c.State != ledger.ConnectionReady {
			t.Errorf("RefreshConnection() = %+v, %q, %v", c, got, err)
		}
		d.Clock.Add(10 * time.Second)
		if _, got, err := d.RefreshConnection(ctx, sealKeys(1), made, true, new(rotating).refresh); err != nil || string(got) != token(1) {
			t.Errorf("RefreshConnection() = %q, %v", got, err)
		}
	})
	t.Run("ledger-away-after-the-answer", func(t *testing.T) {
		d := newFixture(t)
		made, from, fails := d.authorize(), new(rotating), 0
		d.Store.Fail = func(op ledgertest.Op, _ int) error {
			if op != ledgertest.Begin || fails == 0 {
				return nil
			}
			fails--
			return fmt.Errorf("%w: a failover", ledger.ErrUnavailable)
		}
		_, got, err := d.RefreshConnection(ctx, sealKeys(1), made, true, func(old []byte) ([]byte, error) {
			fails = 3
			return from.refresh(old)
		})
		if c := d.connectionOf(fay, "files"); err != nil || string(got) != token(1) || c.Generation != 2 || c.Holder != "" {
			t.Errorf("RefreshConnection() = %q, %v; the row is %+v", got, err, c)
		}
	})
	t.Run("lost", func(t *testing.T) {
		d := newFixture(t)
		made := d.authorize()
		_, got, err := d.RefreshConnection(ctx, sealKeys(1), made, true, func([]byte) ([]byte, error) { return nil, ledger.ErrCredentialsLost })
		if !errors.Is(err, ledger.ErrCredentialsLost) || got != nil || d.connectionOf(fay, "files").State != ledger.ConnectionLost {
			t.Errorf("RefreshConnection() = %q, %v", got, err)
		}
		if _, _, err := d.RefreshConnection(ctx, sealKeys(1), made, true, never); !errors.Is(err, ledger.ErrUnconnected) {
			t.Errorf("RefreshConnection() = %v", err)
		}
	})
	t.Run("holder-died", func(t *testing.T) {
		d := newFixture(t)
		made, from := d.authorize(), new(rotating)
		d.holdLease(ctx)
		if _, _, err := d.other().RefreshConnection(ctx, sealKeys(1), made, false, never); !errors.Is(err, ledger.ErrRefreshing) {
			t.Errorf("RefreshConnection() = %v while another refreshes", err)
		}
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if _, _, err := d.other().RefreshConnection(short, sealKeys(1), made, true, never); err == nil {
			t.Error("a second caller did not wait for the holder")
		}
		d.Clock.Add(ledger.RefreshLease)
		if _, got, err := d.other().RefreshConnection(ctx, sealKeys(1), made, true, from.refresh); err != nil || string(got) != token(1) {
			t.Errorf("RefreshConnection() = %q, %v after the lease", got, err)
		}
	})
	t.Run("credentials-are-not-resealed-meanwhile", func(t *testing.T) {
		d := newFixture(t)
		d.authorize()
		d.holdLease(ctx)
		if _, err := d.ResealConnections(ctx, root, sealKeys(2, 1)); !errors.Is(err, ledger.ErrConnection) {
			t.Errorf("ResealConnections() = %v", err)
		}
	})
}

// holdLease leaves the row of fay's connection as a process does that died during a refresh.
func (d *fixture) holdLease(ctx context.Context) {
	d.TB.Helper()
	c := d.connectionOf(fay, "files")
	c.Holder, c.Until = "dead", d.Clock.Now().Add(ledger.RefreshLease).UTC().Format("2006-01-02T15:04:05.000Z")
	check.NoError(d.TB, d.Update(ctx, func(tx ledger.Tx) error { return tx.PutConnection(c) }))
}

// What happens to a connection during a refresh counts: what the refresh brings is dropped, and a newer connection is never marked as lost.
func TestRefreshLosesToChanges(t *testing.T) {
	for name, change := range map[string]func(*fixture){ // in any order
		"disconnect": func(d *fixture) { endings["disconnect"](d, "files") },
		"revoke":     func(d *fixture) { endings["revoke"](d, "files") },
		"reconnect":  func(d *fixture) { d.authorize() },
		"another-generation": func(d *fixture) {
			d.Clock.Add(ledger.RefreshLease) // the holder took too long
			_, _, err := d.RefreshConnection(context.Background(), sealKeys(1), d.connectionOf(fay, "files"), true, new(rotating).refresh)
			check.NoError(d.TB, err)
		},
	} {
		for _, outcome := range []error{nil, ledger.ErrCredentialsLost} {
			t.Run(fmt.Sprintf("%s/%v", name, outcome != nil), func(t *testing.T) {
				d := newFixture(t)
				made := d.authorize()
				var after ledger.Connection
				_, got, err := d.RefreshConnection(context.Background(), sealKeys(1), made, true, func([]byte) ([]byte, error) {
					change(d.other())
					d.Inspect(func(r ledger.Reader) error {
						after, _ = r.Connection(fay, "files")
						return nil
					})
					return []byte("late-refresh-token"), outcome
				})
				if !errors.Is(err, ledger.ErrUnconnected) {
					t.Errorf("RefreshConnection() = %q, %v", got, err)
				}
				d.Inspect(func(r ledger.Reader) error {
					now, _ := r.Connection(fay, "files")
					wantSame(t, after, now)
					return nil
				})
				d.sound()
			})
		}
	}
}
