package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"pgfsm/policy/secret"
)

// errClosed is the cause with which Close ends what is under way.
var errClosed = errors.New("the upstreams are closed")

// Info is how this client names itself to servers.
type Info struct{ Name, Version string }

// Upstreams are the configured servers and the sessions with them. All methods may be called concurrently.
type Upstreams struct {
	limits  Limits
	info    Info
	secrets *secret.Masker
	all     []*upstream
	byName  map[string]*upstream
	done    runs

	moments atomic.Uint64 // see changes.go

	ctx   context.Context // its end, with errClosed as the cause, ends listings that are under way
	close context.CancelCauseFunc
}

// An upstream is one server and its current session.
type upstream struct {
	server Server
	gate   chan struct{} // held while the session is made, listed or replaced

	mu      sync.Mutex
	session *Link // of List and Call; nil: not connected

	era      atomic.Int32 // what links have found out about its revisions, see handshake.go
	noRounds atomic.Int64 // when it was last asked for a stateless revision in vain, in nanoseconds of Unix time; see stateless.go
	pool     pool         // what links share over HTTP
	ids      atomic.Int64 // the last request id; unique for the server, so that an answer on a shared connection fits one request only

	linksMu sync.Mutex
	links   map[*Link]struct{} // open, or being opened
	closed  bool               // there will be no more links
}

// New checks the servers and limits and returns them as Upstreams. It starts nothing and connects to nothing. All
// mistakes are reported at once. Secrets are masked in every name, version and reason; in what is returned as received,
// the caller masks them.
func New(servers []Server, limits Limits, info Info, secrets *secret.Masker) (*Upstreams, error) {
	limits, err := limits.withDefaults()
	faults := []error{err}
	if info.Name == "" {
		info.Name = "pgfsm"
	}
	if info.Version == "" {
		info.Version = "0"
	}
	u := &Upstreams{limits: limits, info: info, secrets: secrets, byName: make(map[string]*upstream)}
	u.ctx, u.close = context.WithCancelCause(context.Background())
	for _, s := range servers {
		if err := s.check(); err != nil {
			faults = append(faults, err)
			continue
		}
		if u.byName[s.Name] != nil {
			faults = append(faults, fmt.Errorf("server %q is configured twice", s.Name))
			continue
		}
		s.setTimeouts()
		up := &upstream{server: s, gate: make(chan struct{}, 1), links: make(map[*Link]struct{})}
		u.all = append(u.all, up)
		u.byName[s.Name] = up
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return u, nil
}

// Close ends all sessions, links and child processes and returns when nothing of them is left. A listing under way ends with
// CodeClosed, and so does a call. Afterwards List reports every server down and Call
// sends nothing. Close may be called again.
func (u *Upstreams) Close() error {
	u.close(errClosed)
	var wg sync.WaitGroup
	for _, up := range u.all {
		wg.Go(func() {
			up.gate <- struct{}{} // a listing gives it back soon: its context is over
			defer func() { <-up.gate }()
			up.drop()
		})
		wg.Go(up.closeLinks)
	}
	wg.Wait()
	return nil
}

// current is the session of the last listing, or nil if there is none that works.
func (up *upstream) current() *Link {
	up.mu.Lock()
	defer up.mu.Unlock()
	if up.session != nil && up.session.fault() != nil {
		return nil
	}
	return up.session
}

func (up *upstream) set(l *Link) (old *Link) {
	up.mu.Lock()
	defer up.mu.Unlock()
	old, up.session = up.session, l
	return old
}

// drop ends the session of the last listing, if there is one. The gate must be held.
func (up *upstream) drop() {
	if l := up.set(nil); l != nil {
		l.Close()
	}
}

// overCode tells a deadline from a cancellation.
func overCode(ctx context.Context) string {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return CodeTimeout
	case errors.Is(cause, errClosed):
		return CodeClosed
	}
	return CodeCancelled
}

// TimeoutTotal is how long a call of a server may take in total.
func (u *Upstreams) TimeoutTotal(server string) time.Duration {
	if up := u.byName[server]; up != nil {
		return up.server.TimeoutTotal
	}
	return DefaultTimeoutTotal
}
