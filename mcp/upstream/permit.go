package upstream

import (
	"bytes"
	"errors"
	"strconv"
	"sync/atomic"

	"pgfsm/mcp/wire"
)

// The methods that are sent or answered here.
const (
	methodCall       = "tools/call"
	methodList       = "tools/list"
	methodInitialize = "initialize"
	methodDiscover   = "server/discover"
	methodPing       = "ping" // a server's
	methodListen     = "subscriptions/listen"
	noteInitialized  = "notifications/initialized"
	noteCancelled    = "notifications/cancelled"
)

// The one notification of a server that means something here.
const noteToolsChanged = "notifications/tools/list_changed"

// A permit is the single-use right to send one tools/call. It is consumed when the bytes leave the process. The zero value is spent: it
// calls nothing.
type permit struct {
	tool  string
	args  []byte
	armed atomic.Bool // until the bytes leave, or the call is over
	// What goes beside them, a JSON object each or nil. These bytes are held to the permit, too.
	extra, meta []byte
	listing     uint64 // by which the call was judged
	// touched: bytes of the call may have reached the server. Set before they can, taken back if they certainly did not.
	touched atomic.Bool
}

// arm returns a permit for exactly this tool and these argument bytes.
func arm(tool string, args []byte) *permit {
	p := &permit{tool: tool, args: bytes.Clone(args)}
	p.armed.Store(true)
	return p
}

var errNoPermit = errors.New("no permit is armed for it")

// leave consumes the permit for a whole message, right before its bytes leave the process. A message of ours has one spelling, so every
// byte is compared, and nothing is read twice. A nil permit refuses everything.
func (p *permit) leave(frame []byte) error {
	if p == nil {
		return errNoPermit
	}
	rest := frame
	cut := func(part []byte) bool {
		var ok bool
		rest, ok = bytes.CutPrefix(rest, part)
		return ok
	}
	same := cut([]byte(callHead))
	digits := bytes.IndexByte(rest, ',')
	same = same && digits > 0
	if same {
		_, err := plainID(rest[:digits])
		rest = rest[digits:]
		same = err == nil && cut([]byte(callName)) && cut(wire.Quote(p.tool)) && cut([]byte(callArguments)) && cut(p.args)
	}
	if same && len(p.extra) > len("{}") {
		same = cut([]byte(",")) && cut(p.extra[1:len(p.extra)-1])
	}
	if same && p.meta != nil {
		same = cut([]byte(callMeta)) && cut(p.meta)
	}
	switch {
	case !same || string(rest) != callEnd:
		return errors.New("it is not the message of the permit")
	case !p.armed.CompareAndSwap(true, false):
		return errNoPermit
	}
	return nil
}

// The one form of a tools/call: the head, the id, and the members with their values behind them.
const (
	callHead      = `{"jsonrpc":"2.0","id":`
	callName      = `,"method":"` + methodCall + `","params":{"name":`
	callArguments = `,"arguments":`
	callMeta      = `,"_meta":`
	callEnd       = `}}`
)

// message encodes the tools/call that the permit is for.
func (p *permit) message(id int64) []byte {
	tool := wire.Quote(p.tool)
	b := make([]byte, 0, len(callHead)+20+len(callName)+len(tool)+len(callArguments)+len(p.args)+len(p.extra)+len(callMeta)+
		len(p.meta)+len(callEnd)+1) // and a line end
	b = strconv.AppendInt(append(b, callHead...), id, 10)
	b = append(append(b, callName...), tool...)
	b = append(append(b, callArguments...), p.args...)
	if len(p.extra) > len("{}") {
		b = append(append(b, ','), p.extra[1:len(p.extra)-1]...)
	}
	if p.meta != nil {
		b = append(append(b, callMeta...), p.meta...)
	}
	return append(b, callEnd...)
}
