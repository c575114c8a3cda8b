package gateway

import (
	"context"
	"crypto/sha256"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

// Bounds of comparing the lists of clients after a replacement.
const (
	maxComparing = 8                // at once
	compareTime  = 10 * time.Second // for the list of one client
	anyAge       = time.Duration(math.MaxInt64)
)

// A Replacement is a configuration that [Gateway.Replace] can make the active one.
type Replacement struct{ next *generation }

// Prepare returns the Replacement for a configuration, unless it has a fault. It changes nothing.
func (g *Gateway) Prepare(c Config) (r Replacement, err error) {
	r.next, err = newGeneration(&c, g.active.Load())
	return r, err
}

// Replace makes requests use another configuration from now on. Requests under way keep theirs; idle is closed when none of them is left. The
// sessions of clients stay, and so do the links with servers that did not change. The links with the others are closed when their requests
// have ended. Clients whose list of tools changed are notified. No other call of Replace may come between Prepare and Replace.
func (g *Gateway) Replace(r Replacement) (idle <-chan struct{}) {
	former, next := g.active.Load(), r.next
	_, idle = g.active.Replace(next)
	g.front.Replace(next.front())
	for _, s := range former.endpoints[""].servers {
		if !next.has(s) {
			g.retire(s)
		}
	}
	close(former.replaced)
	for _, s := range g.openSessions() {
		if next.endpoints[s.Endpoint] == nil {
			s.End()
			continue
		}
		for _, method := range changedLists(former, next, s.Endpoint) {
			s.notify(method)
		}
	}
	if g.comparing.Add(1) == 1 {
		go g.compareLists()
	}
	return idle
}

// retire closes the links with a server as soon as nobody uses them.
func (g *Gateway) retire(s *server) {
	s.retired.Store(true)
	g.pool.forget(s)
	g.pool.shared.retire(s)
	for _, of := range g.openSessions() {
		of.links.retire(s)
	}
}

func (g *Gateway) openSessions() []*clientSession {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Values(g.sessions)) // in any order: each is independent
}

// changedLists returns the notifications about the lists of prompts and resources at an endpoint that other servers have now. Whether these
// servers send other lists is unknown.
func changedLists(former, next *generation, at string) (methods []string) {
	before, now := former.endpoints[at], next.endpoints[at]
	for _, list := range []struct {
		needs  Expose
		method string
	}{{ExposePrompts, notePrompts}, {ExposeResources, noteResources}} {
		if before == nil || !slices.Equal(before.exposing(list.needs), now.exposing(list.needs)) {
			methods = append(methods, list.method)
		}
	}
	return methods
}

// notify sends the session's client a notification without params, if its revision has it.
func (s *clientSession) notify(method string) {
	if methodOf(fromServer, method).in(s.Protocol) {
		_ = s.Send(wire.Call(nil, nil, method, nil)) // the front notices that the client is gone
	}
}

// A listedTools is the list of tools that a client has.
type listedTools struct {
	identity *policy.Identity // the client's, when it asked for the list
	digest   [sha256.Size]byte
}

// digestOf is the digest of a list of tools.
func digestOf(tools []jsontext.Value) (d [sha256.Size]byte) {
	h := sha256.New()
	for _, t := range tools {
		h.Write(t)
		h.Write([]byte{'\n'})
	}
	h.Sum(d[:0])
	return d
}

// noteListed notes the list that the client of a session gets. If the configuration was replaced meanwhile, the list is compared now.
func (q *request) noteListed(tools []jsontext.Value) {
	s := q.session
	if s == nil {
		return
	}
	s.mu.Lock()
	s.listed = &listedTools{q.Identity, digestOf(tools)}
	s.mu.Unlock()
	select {
	case <-q.using.Value.replaced:
		go q.gateway.compareSession(s)
	default:
	}
}

// compareLists notifies the clients whose list of tools has changed.
func (g *Gateway) compareLists() {
	for {
		n := g.comparing.Load()
		var all errgroup.Group // no function returns an error
		all.SetLimit(maxComparing)
		for _, s := range g.openSessions() {
			all.Go(func() error { g.compareSession(s); return nil })
		}
		for _, l := range g.openListeners() {
			all.Go(func() error { l.compare(); return nil })
		}
		_ = all.Wait()
		if g.comparing.CompareAndSwap(n, 0) {
			return
		}
	}
}

// compareSession notifies the client of a session if it has asked for the list of tools, and the list has changed since.
func (g *Gateway) compareSession(s *clientSession) {
	s.mu.Lock()
	had := s.listed
	s.mu.Unlock()
	if had == nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.Context, compareTime)
	defer cancel()
	q := &request{
		Request: &session.Request{From: s.Client, Identity: had.identity, Session: s.Session, Endpoint: s.Endpoint, Protocol: s.Protocol},
		gateway: g, session: s,
	}
	now, ok := g.listNow(ctx, q)
	if !ok || now == had.digest {
		return
	}
	s.mu.Lock()
	same := s.listed == had
	if same {
		s.listed = &listedTools{had.identity, now}
	}
	s.mu.Unlock()
	if same { // otherwise the client has asked again
		s.notify(noteTools)
	}
}

// listNow is the digest of the list that a client would get now. It asks no server whose list is known.
func (g *Gateway) listNow(ctx context.Context, q *request) (d [sha256.Size]byte, ok bool) {
	q.use(g.active.Acquire())
	defer q.release()
	if q.endpoint == nil {
		return d, false
	}
	tools, _, failed := g.toolsOf(ctx, q, anyAge)
	return digestOf(tools), ctx.Err() == nil && failed == nil
}
