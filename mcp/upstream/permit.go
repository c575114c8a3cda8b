package upstream

import (
	"bytes"
	"errors"
	"sync/atomic"
)

// Methods that this package sends or answers itself.
const (
	methodCall       = "tools/call"
	methodList       = "tools/list"
	methodInitialize = "initialize"
	methodDiscover   = "server/discover"
	methodPing       = "ping"
	methodListen     = "subscriptions/listen"
	noteInitialized  = "notifications/initialized"
	noteCancelled    = "notifications/cancelled"
)

// noteToolsChanged announces that a server's tools have changed.
const noteToolsChanged = "notifications/tools/list_changed"

// A permit is the single-use right to send one tools/call. It is consumed when the bytes leave the
// process. The zero value permits nothing.
type permit struct {
	frame   []byte      // the message that may leave: a copy that nothing else refers to
	listing uint64      // number of the listing by which the call was judged
	armed   atomic.Bool // true until the bytes leave or the call is over
	// touched records that bytes of the call may have reached the server. It is
	// set before that can happen, and reset if they certainly did not.
	touched atomic.Bool
}

// newPermit returns a permit for exactly these bytes.
func newPermit(frame []byte, listing uint64) *permit {
	p := &permit{frame: bytes.Clone(frame), listing: listing}
	p.armed.Store(true)
	return p
}

var errNoPermit = errors.New("no permit is armed for it")

// consume consumes the permit for a whole message, right before its bytes leave the process. A nil
// permit refuses everything.
func (p *permit) consume(frame []byte) error {
	switch {
	case p == nil:
		return errNoPermit
	case !bytes.Equal(frame, p.frame):
		return errors.New("it is not the message of the permit")
	case !p.armed.CompareAndSwap(true, false):
		return errNoPermit
	}
	return nil
}

// authorizeSend checks a message right before its bytes leave the process: a tools/call needs its
// permit, and no other message may have one. A message that may not leave ends the link.
func (l *Link) authorizeSend(frame []byte, p *permit) *fault {
	if p != nil {
		if err := p.consume(frame); err != nil {
			return l.fail(CodePermit, "the connection refused to send %s: %v", methodCall, err)
		}
		if !l.listingCurrent(p.listing) { // the link has read a notification of changed tools
			return &fault{code: CodeChanged,
				reason: "the server says that its tools have changed since they were listed"}
		}
		return nil
	}
	method, err := sentMethod(frame)
	switch {
	case err != nil:
		return l.fail(CodePermit, "the connection refused to send what it cannot read: %v", err)
	case method == methodCall:
		return l.fail(CodePermit, "the connection refused to send %s: %v", methodCall, errNoPermit)
	}
	return nil
}
