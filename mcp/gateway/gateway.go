package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Defaults of [Limits].
const (
	DefaultBodyBytes           = 4 << 20          // bytes of one message of a client
	DefaultSessions            = 1000             // sessions that are open at once
	DefaultSessionsPerIdentity = 256              // of these, one client's
	DefaultSessionIdle         = 30 * time.Minute // after which a session that nobody uses ends
	DefaultRequests            = 1024             // requests under way at once
	DefaultRequestsPerIdentity = 512              // of these, one client's
	DefaultRequestsPerSession  = 64               // of these, one session's
	DefaultBodiesBytes         = 256 << 20        // of large messages that were not answered yet; half of it one client's
	DefaultAnswersBytes        = 256 << 20        // of large answers that clients have not read yet; half of it one client's
	DefaultConnections         = 4096             // connections that are open at once; see [Gateway.Serve]
)

// Limits bound what clients may ask for. Zero means the default; there is no way to have none.
type Limits struct {
	BodyBytes           int
	Sessions            int
	SessionsPerIdentity int
	SessionIdle         time.Duration
	Requests            int
	RequestsPerIdentity int
	RequestsPerSession  int
	BodiesBytes         int

	// AnswersBytes is how many bytes may wait for clients to read them, as far as one message or one session has more than 64 KiB. Half of
	// each of these is one client's. As many wait to be written: where more would, the connection that takes longest over it is cut off.
	// Half as many are kept for clients who come back to a stream: where more would, the session keeps less. And half as many belong to no
	// request: where more would, it goes as it does with one session that has too much. The connections are those of [Gateway.Serve].
	AnswersBytes int
	Connections  int
}

func (l Limits) withDefaults() (Limits, error) {
	for _, m := range []struct {
		name  string
		value *int
		unset int
	}{
		{"BodyBytes", &l.BodyBytes, DefaultBodyBytes},
		{"Sessions", &l.Sessions, DefaultSessions},
		{"SessionsPerIdentity", &l.SessionsPerIdentity, DefaultSessionsPerIdentity},
		{"Requests", &l.Requests, DefaultRequests},
		{"RequestsPerIdentity", &l.RequestsPerIdentity, DefaultRequestsPerIdentity},
		{"BodiesBytes", &l.BodiesBytes, DefaultBodiesBytes},
		{"AnswersBytes", &l.AnswersBytes, DefaultAnswersBytes},
		{"RequestsPerSession", &l.RequestsPerSession, DefaultRequestsPerSession},
		{"Connections", &l.Connections, DefaultConnections},
	} {
		if *m.value < 0 {
			return l, fmt.Errorf("limit %s is %d; it must not be negative", m.name, *m.value)
		}
		if *m.value == 0 {
			*m.value = m.unset
		}
	}
	if l.SessionIdle < 0 {
		return l, fmt.Errorf("limit SessionIdle is %s; it must not be negative", l.SessionIdle)
	}
	if l.SessionIdle == 0 {
		l.SessionIdle = DefaultSessionIdle
	}
	return l, nil
}

// A Gateway lets clients of any revision of MCP use servers of any revision, as far as it is told to. Its methods may be
// called concurrently.
type Gateway struct {
	options     Options
	dispatching // what the dispatcher keeps

	decide   func(context.Context, *request) []byte // dispatch
	hosts    map[string]bool                        // in lower case
	every    *endpoint                              // all servers under joined names
	named    map[string]*endpoint                   // one server each
	sessions *sessions
	channels channels
	busy     admission
	bodies   bodies
	unsent   unsent
	kept     bodies // of what sessions can say again
	unread   bodies // of what belongs to no request
	pace     pace
}

// New makes a gateway of options. It connects to nothing.
func New(o Options) (*Gateway, error) {
	limits, err := o.Limits.withDefaults()
	if err != nil {
		return nil, err
	}
	o.Limits = limits
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Mask == nil {
		o.Mask = func(b []byte) []byte { return b }
	}
	g := &Gateway{options: o, hosts: make(map[string]bool), every: &endpoint{}, named: make(map[string]*endpoint), pace: usualPace}
	for _, host := range o.Hosts {
		g.hosts[strings.ToLower(host)] = true
	}
	for i := range o.Servers {
		server := &o.Servers[i]
		if server.Name == "" || g.named[server.Name] != nil {
			return nil, fmt.Errorf("the server %q has no name or another's", server.Name)
		}
		g.named[server.Name] = &endpoint{server: server, servers: []*Server{server}}
		g.every.servers = append(g.every.servers, server)
	}
	g.dispatching.init(o)
	g.decide = g.dispatch
	g.busy.init(limits.Requests, limits.RequestsPerIdentity)
	g.bodies.init(limits.BodiesBytes)
	g.unsent.init(limits.AnswersBytes)
	g.kept.init((limits.AnswersBytes + 1) / 2)
	g.unread.init((limits.AnswersBytes + 1) / 2)
	g.errands.room = &g.bodies
	g.sessions = newSessions(g)
	g.channels.init(g)
	return g, nil
}

// Handler serves the clients that come over HTTP: /mcp and /sse for all servers, /servers/{name}/mcp and
// /servers/{name}/sse for one.
func (g *Gateway) Handler() http.Handler { return (*front)(g) }

// Drain takes no more requests, ends the streams on which nothing is under way, and waits for the requests that are,
// until ctx is done. Then it ends all sessions. The error says that requests were cut off.
func (g *Gateway) Drain(ctx context.Context) error {
	idle := g.busy.close()
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = fmt.Errorf("%d requests were cut off: %w", g.busy.count(), context.Cause(ctx))
	}
	g.sessions.endAll()
	g.channels.endAll()
	if cut := g.dispatching.end(); cut > 0 {
		err = errors.Join(err, fmt.Errorf("%d requests were cut off whose clients were asked something and cannot come back", cut))
	}
	return err
}

// errBusy is why a request or a session is not taken.
var errBusy = errors.New("too much is under way; ask again later")

// errDraining is why nothing is taken any more.
var errDraining = errors.New("the gateway is stopping; ask again later, or another one")

// An admission counts what is under way, up to a limit for all and one for each client, and can be closed.
type admission struct {
	mu     sync.Mutex
	n, max int
	per    map[Identity]int
	each   int
	ending chan struct{} // closed by close
	idle   chan struct{} // closed once nothing is under way and nothing more can be
}

func (a *admission) init(limit, each int) {
	a.max, a.each, a.per = limit, each, make(map[Identity]int)
	a.ending, a.idle = make(chan struct{}), make(chan struct{})
}

// enter takes a place, which leave gives back. The error is errBusy or errDraining.
func (a *admission) enter(who Identity) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed() {
		return errDraining
	}
	if a.n >= a.max || a.per[who] >= a.each {
		return errBusy
	}
	a.n++
	a.per[who]++
	return nil
}

func (a *admission) leave(who Identity) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.per[who]--; a.per[who] == 0 {
		delete(a.per, who)
	}
	if a.n--; a.n == 0 && a.closed() {
		close(a.idle)
	}
}

// close lets nothing more in. What it returns is closed when nothing is under way.
func (a *admission) close() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed() {
		close(a.ending)
		if a.n == 0 {
			close(a.idle)
		}
	}
	return a.idle
}

// closed reports whether nothing is let in any more.
func (a *admission) closed() bool {
	select {
	case <-a.ending:
		return true
	default:
		return false
	}
}

func (a *admission) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n
}

// An underway is what one session or pipe has under way, by the ids of the requests as the client spelled them.
type underway struct {
	mu  sync.Mutex
	ids map[string]context.CancelFunc // may be nil

	none chan struct{} // closed once nothing is under way; nil: nobody waits for that
}

// enter takes a place for an id. The error is errBusy or errTwice.
func (u *underway) enter(id string, limit int, cancel context.CancelFunc) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, there := u.ids[id]; there {
		return errTwice
	}
	if len(u.ids) >= limit {
		return errBusy
	}
	if u.ids == nil {
		u.ids = make(map[string]context.CancelFunc)
	}
	u.ids[id] = cancel
	return nil
}

func (u *underway) leave(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if delete(u.ids, id); len(u.ids) == 0 && u.none != nil {
		close(u.none)
		u.none = nil
	}
}

// settled is closed once nothing is under way.
func (u *underway) settled() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	none := u.none
	if none == nil {
		none = make(chan struct{})
	}
	if len(u.ids) == 0 {
		close(none)
	} else {
		u.none = none
	}
	return none
}

// cancel ends a request that is under way with a function to cancel it.
func (u *underway) cancel(id string) {
	u.mu.Lock()
	cancel := u.ids[id]
	u.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

func (u *underway) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.ids)
}

// errTwice is why a request is not taken whose id is that of another one under way.
var errTwice = errors.New("a request with this id is under way")
