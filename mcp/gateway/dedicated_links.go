package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// Bounds of the dedicated links of one identity with one server. Each stateless request under way has one.
const (
	maxDedicated   = 16
	dedicatedWait  = 5 * time.Second // for which a pending request waits for one, once
	dedicatedRetry = 100 * time.Millisecond
)

// errDedicatedBusy answers a pending request that got no link. Nothing was sent.
var errDedicatedBusy = &upstream.LinkError{Code: upstream.CodeLinks,
	Reason: "as many requests as are allowed are under way during which it may ask this client something; ask again later"}

// dedicatedLink returns a link that no other request uses before it is released. A server with sessions does not always say to which request
// a question belongs. The question reaches the right client only if the link has a single request.
//
// If no link is free, a pending request waits, and fails in the end: a server that could not ask might go on without the answer of a person.
// Other requests, such as listings, share a link whose server is told that the client has no capabilities.
func (g *Gateway) dedicatedLink(ctx context.Context, q *request, server *server) (*link, error) {
	declared := q.capabilities()
	declared.RootsChanged = false // the stateless revisions have no such notification
	capabilities := forServer(declared, server)
	key := linkKey{client: q.From, server: server, capabilities: string(capabilities), dedicated: anyDedicated}
	get := func() (*link, error) {
		return g.pool.shared.get(ctx, key, func(ctx context.Context) (*link, error) {
			return g.connectLink(ctx, q.From, nil, server, session.Stateless, capabilities)
		})
	}
	l, err := get()
	if !tooManyLinks(err) {
		return l, err
	}
	p := ask.PendingOf(ctx)
	if p == nil {
		return g.sharedLink(ctx, q, server, jsontext.Value(`{}`))
	}
	retries := 0
	if p.WaitOnce() { // the runner asks for the link again
		retries = int(dedicatedWait / dedicatedRetry)
	}
	for ; retries > 0 && tooManyLinks(err); retries-- {
		select {
		case <-time.After(dedicatedRetry):
			l, err = get()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if errors.Is(err, errTooManyLinks) {
		err = errDedicatedBusy
	}
	return l, err
}

// tooManyLinks reports whether there is no link because there are too many.
func tooManyLinks(err error) bool {
	var no *upstream.LinkError
	return errors.Is(err, errTooManyLinks) || errors.As(err, &no) && no.Code == upstream.CodeLinks
}

// unused is the number of a dedicated link that nobody uses, or that is not connected yet; zero if there are too many. The caller has the lock.
func (t *linkTable) unused(key linkKey) int {
	n := 0
	var same, idle *linkSlot    // unused slots with the same capabilities, and with others
	for k, s := range t.slots { // in any order: of unused slots any serves, but one that works is better
		if k.dedicated == 0 || k.client != key.client || k.server != key.server {
			continue
		}
		switch n++; {
		case s.uses > 0:
		case k.capabilities != key.capabilities:
			idle = s
		case same == nil || !same.works():
			same = s
		}
	}
	switch {
	case same != nil:
		return same.key.dedicated
	case n >= maxDedicated && idle == nil:
		return 0
	case n >= maxDedicated:
		t.drop(idle)
	}
	for key.dedicated = 1; t.slots[key] != nil; {
		key.dedicated++
	}
	return key.dedicated
}

// assign sends the questions of the server to the client of a pending request, if the link is dedicated.
func (l *link) assign(p *ask.Pending) {
	if l.slot.key.dedicated > 0 {
		p.ForgetCancelled()
		l.pending.Store(p)
	}
}

// unassign ends assign. The link is closed if another client could get a question of this request, or the server has learned something from
// this client and may remember it.
func (l *link) unassign(p *ask.Pending) {
	if p == nil || !l.pending.CompareAndSwap(p, nil) {
		return
	}
	open, clientAnswered := p.Close()
	if len(open) == 0 && !clientAnswered && !p.Cancelled() && !l.GaveUp() {
		return
	}
	l.slot.table.abandon(l.slot)
	refuse := func() {
		ctx, cancel := context.WithTimeout(context.Background(), ask.AnswerTimeout)
		defer cancel()
		for _, x := range open {
			_ = x.Server.Answer(ctx, x.ID, nil, invalid(wire.InternalError, "the request that this was asked for is over")) // its link may have ended
		}
	}
	if p.Cancelled() { // the caller that cancelled closes the link next
		refuse()
		go l.Close()
		return
	}
	go func() {
		refuse()
		l.Close()
	}()
}

// abandon removes a slot from the table. Its only user releases it as usual, and closes the link.
func (t *linkTable) abandon(s *linkSlot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.slots[s.key] == s {
		delete(t.slots, s.key)
	}
	s.link, s.err = nil, errLinksClosed // the slot expires, the link does not
}

// Serves reports whether the link belongs to a pending request.
func (l *link) Serves(p *ask.Pending) bool { return l.pending.Load() == p }

// ServerName is the name of the link's server.
func (l *link) ServerName() string { return l.server.Name }
