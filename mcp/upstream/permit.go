package upstream

import (
	"bytes"
	"errors"
	"strconv"
	"sync/atomic"

	"pgfsm/mcp/wire"
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

// message encodes the tools/call of c with our id.
func (c *Call) message(id int64, meta []byte) []byte {
	b := make([]byte, 0, 128+len(c.Tool)+len(c.Arguments)+len(c.Extra)+len(meta))
	b = strconv.AppendInt(append(b, `{"jsonrpc":"2.0","id":`...), id, 10)
	b = wire.AppendQuote(append(b, `,"method":"`+methodCall+`","params":{"name":`...), c.Tool)
	b = append(append(b, `,"arguments":`...), c.Arguments...)
	if len(c.Extra) > len("{}") {
		b = append(append(b, ','), c.Extra[1:len(c.Extra)-1]...)
	}
	return append(append(append(b, `,"_meta":`...), meta...), "}}"...)
}
