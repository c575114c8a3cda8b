package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// errAlone is answered to an errand that has waited for nothing. Nothing was sent.
var errDedicatedBusy = &upstream.LinkError{Code: upstream.CodeLinks,
	Reason: "as many requests as are allowed are under way during which it may ask this client something; ask again later"}

// alone returns a line that no other request has before it is released. A server with sessions does not always say what it asks
// a question for; so that the question gets to the client whose request it is about, the line must be that request's alone.
//
// Where there is none left an errand waits, and is refused in the end: on a line where nobody is asked its server might go on without
// the answer of a person, only because many requests came at once. What is no errand, such as a listing, shares a line whose server is told
// that the client can do nothing.
func (g *Gateway) dedicatedLink(ctx context.Context, q *request, server *Server) (*link, error) {
	can := q.capabilities()
	can.rootsChanged = false // there is no such notification in the stateless revisions
	told := can.forServer(server.Expose)
	key := linkKey{who: q.From, server: server.Name, capabilities: string(told)}
	get := func() (*link, error) {
		return g.pool.shared.getDedicated(ctx, key, func(ctx context.Context) (*link, error) {
			return g.connectLink(ctx, q.From, nil, server, session.Stateless, told)
		})
	}
	l, err := get()
	if !tooMany(err) {
		return l, err
	}
	e, _ := ctx.Value(pendingKey{}).(*pendingRequest)
	if e == nil {
		return g.sharedLink(ctx, q, server, jsontext.Value(`{}`))
	}
	looks := int(dedicatedWait / dedicatedRetry)
	if e.waitedForLink.Swap(true) { // and who calls asks once more
		looks = 0
	}
	for ; looks > 0 && tooMany(err); looks-- {
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

// Bounds of the lines to one server that may ask by itself, which an identity has for stateless requests: one for each that is under way,
// whatever the server was told that its clients can do.
const (
	maxDedicated   = 16
	dedicatedWait  = 5 * time.Second        // for which an errand waits for one, once
	dedicatedRetry = 100 * time.Millisecond // after which it looks again: lines are given back by many
)

// An errandKey is what the context of an errand has it under.
type pendingKey struct{}

// crowded reports whether there is no line because there are too many.
func tooMany(err error) bool {
	var no *upstream.LinkError
	return errors.Is(err, errTooManyLinks) || errors.As(err, &no) && no.Code == upstream.CodeLinks
}

// getAlone is get for the first line of a key that nobody uses. The error is errTooManyLinks if there is none.
func (t *linkTable) getDedicated(ctx context.Context, key linkKey, connect func(context.Context) (*link, error)) (*link, error) {
	s, err := t.takeDedicated(key, connect)
	if err != nil {
		return nil, err
	}
	return t.wait(ctx, s)
}

func (t *linkTable) takeDedicated(key linkKey, connect func(context.Context) (*link, error)) (*linkSlot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	var again, idle *linkSlot
	for k, s := range t.slots { // in any order: of those that nobody uses any does, but one that works is better
		if k.dedicated == 0 || k.who != key.who || k.server != key.server {
			continue
		}
		switch n++; {
		case s.uses > 0:
		case k.capabilities != key.capabilities:
			idle = s
		case again == nil || !again.works():
			again = s
		}
	}
	switch {
	case again != nil:
		return t.takeLocked(again.key, connect)
	case n >= maxDedicated && idle == nil:
		return nil, errTooManyLinks
	case n >= maxDedicated:
		t.drop(idle)
	}
	for key.dedicated = 1; t.slots[key] != nil; {
		key.dedicated++
	}
	return t.takeLocked(key, connect)
}

// works reports whether a slot has a line that can be used. The table's lock is held.
func (s *linkSlot) works() bool { return s.settled() && s.err == nil && !s.line.ended() }

// host has the server's questions asked of an errand's client, if no other request has the line.
func (l *link) assign(e *pendingRequest) {
	if l.slot.key.dedicated > 0 {
		e.forgetCancelled()
		l.pending.Store(e)
	}
}

// leave takes host back. What the server still wants to know, nobody tells it. The line serves no other request if the server may still be at
// this one, for what it asked later would be asked of another client; or if it was told something by this client, which it may remember.
func (l *link) unassign(e *pendingRequest) {
	if e == nil || !l.pending.CompareAndSwap(e, nil) {
		return
	}
	open, told := e.close()
	if len(open) == 0 && !told && e.ctx.Err() == nil && !l.GaveUp() {
		return
	}
	l.slot.table.abandon(l.slot)
	bye := func() {
		ctx, cancel := context.WithTimeout(context.Background(), answerWait)
		defer cancel()
		for _, x := range open {
			_ = x.line.Answer(ctx, x.id, nil, invalid(wire.InternalError, "the request that this was asked for is over")) // as it may be itself
		}
	}
	if e.ctx.Err() != nil { // nobody waits for the errand, and whoever ends it closes the line next
		bye()
		go l.Close()
		return
	}
	go func() {
		bye()
		l.Close()
	}()
}

// abandon takes the slot of a line that serves nobody else out of the table. Its only user gives it back as ever, and closes the line.
func (t *linkTable) abandon(s *linkSlot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.slots[s.key] == s {
		delete(t.slots, s.key)
	}
	s.line, s.err = nil, errLinksClosed // it waits to expire, and the line does not
}
