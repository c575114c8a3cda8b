package upstream

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"pgfsm/internal/secret"
)

// errClosed is the cause with which Close cancels requests under way.
var errClosed = errors.New("the upstreams are closed")

// Info is the name and the version of an MCP client or server.
type Info struct{ Name, Version string }

// Upstreams are the configured servers and the sessions with them. All methods may be called
// concurrently.
type Upstreams struct {
	*common
	limits  Limits
	stdio   int // number of servers that are child processes
	servers []*sharedServer
	byName  map[string]*sharedServer
}

// A common is the part that Upstreams share with their replacements.
type common struct {
	info    Info
	secrets *secret.Masker
	called  runs
	memory  *memoryBudget // budget of large messages

	accounts maskedAccounts

	log atomic.Pointer[slog.Logger] // nil: no log

	moments atomic.Uint64 // the last moment: see list_changed.go

	processes linkSet // the links with stdio servers

	ctx   context.Context // cancelled by Close, with errClosed as the cause
	close context.CancelCauseFunc
}

// A sharedServer is one server and the sessions with it.
type sharedServer struct {
	server Server

	opening singleflight.Group // opens the sessions of [Client]s, by owner

	tokens *accessTokens

	clientTools *CachedListing // the tools of a client; nil for an MCP server

	// target and transport are set for HTTP. All links share the connections, so that a call needs
	// no TLS handshake. If the server closes such a connection while a call is being sent, the call
	// is reported as unknown and never sent again. That is rare, because a connection is kept for
	// at most idleTimeout after the last answer.
	target    httpTarget
	transport *transport

	junk sync.Once    // used to log only the first line on standard output that is no message
	ids  atomic.Int64 // the last request id. Links share connections, so ids are unique for the server

	stale atomic.Uint64 // no link uses listings up to this moment: see list_changed.go
	links linkSet
}

// New returns servers as Upstreams. It connects to no server and starts none. The names are unique.
// Secrets are masked in names, versions and reasons; the caller masks them in results and error
// objects.
func New(servers []Server, limits Limits, info Info, secrets *secret.Masker) *Upstreams {
	c := &common{info: Info{cmp.Or(info.Name, "pgfsm"), cmp.Or(info.Version, "0")}, secrets: secrets}
	if c.secrets == nil {
		c.secrets = secret.New(nil) // still needed: access tokens become secrets
	}
	c.memory = newMemoryBudget(maxMemory)
	c.ctx, c.close = context.WithCancelCause(context.Background())
	return c.newUpstreams(servers, limits, nil)
}

// LogTo sets the log for errors of servers that fail no request.
func (u *Upstreams) LogTo(log *slog.Logger) { u.common.log.Store(log) }

// Replace returns Upstreams for other servers. An unchanged server under unchanged limits is
// shared: it keeps its sessions. The caller closes the other servers of u with
// [Upstreams.CloseReplaced]. A run makes at most one call over both Upstreams together.
func (u *Upstreams) Replace(servers []Server, limits Limits) *Upstreams {
	return u.common.newUpstreams(servers, limits, u)
}

// newUpstreams returns Upstreams. They share with former the servers that did not change.
func (c *common) newUpstreams(servers []Server, limits Limits, former *Upstreams) *Upstreams {
	u := &Upstreams{common: c, limits: limits.withDefaults(), byName: make(map[string]*sharedServer)}
	for _, s := range servers {
		s.setTimeouts()

		// A server that did not change keeps its sessions, connections and access token.
		var up *sharedServer
		if former != nil && former.limits == u.limits {
			up = former.byName[s.Name]
		}
		if up == nil || !up.server.Equal(s) {
			up = &sharedServer{server: s}
			up.tokens = newAccessTokens(c.ctx, s, c.secrets)
			switch s.Type {
			case TypeStdio:
			case TypeClient:
				up.clientTools = c.newClientTools(s)
			default:
				up.target = newHTTPTarget(s)
				up.transport = up.target.newTransport()
			}
		}

		u.servers = append(u.servers, up)
		if s.Type == TypeStdio {
			u.stdio++
		}
		u.byName[s.Name] = up
	}
	return u
}

// Shares reports whether u and other have the same session with a server. Both may be nil.
func (u *Upstreams) Shares(other *Upstreams, server string) bool {
	return u == other || u != nil && other != nil && u.byName[server] != nil && u.byName[server] == other.byName[server]
}

// CloseReplaced ends all links with those servers of u that next does not share, and returns when
// they have ended.
func (u *Upstreams) CloseReplaced(next *Upstreams) {
	closeAll(slices.DeleteFunc(slices.Clone(u.servers),
		func(up *sharedServer) bool { return next.byName[up.server.Name] == up }))
}

// Close ends all links and child processes and returns when they have ended. Listings and calls
// under way end with CodeClosed. Afterwards List reports every server down and Call sends nothing.
// Close may be called again.
func (u *Upstreams) Close() error {
	u.close(errClosed)
	closeAll(u.servers)
	return nil
}

func closeAll(upstreams []*sharedServer) {
	var wg sync.WaitGroup
	for _, up := range upstreams {
		wg.Go(up.closeLinks)
	}
	wg.Wait()
}

// serversNamed returns the servers with these names, or all if there are none, in the order of New.
func (u *Upstreams) serversNamed(names []string) []*sharedServer {
	if len(names) == 0 {
		return u.servers
	}
	return slices.DeleteFunc(slices.Clone(u.servers),
		func(up *sharedServer) bool { return !slices.Contains(names, up.server.Name) })
}

// contextCode returns the code for a context that has ended: a deadline, a cancellation, or Close.
func contextCode(ctx context.Context) string {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return CodeTimeout
	case errors.Is(cause, errClosed):
		return CodeClosed
	}
	return CodeCancelled
}

// TimeoutTotal returns the time that a call to a server may take in total.
func (u *Upstreams) TimeoutTotal(server string) time.Duration {
	if up := u.byName[server]; up != nil {
		return up.server.TimeoutTotal
	}
	return DefaultTimeoutTotal
}
