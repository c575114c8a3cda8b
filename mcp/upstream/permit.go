package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/deadline"
	"pgfsm/mcp/wire"
)

// The methods that a client of ours sends. Everything else is refused by the guarded connection.
const (
	methodCall       = "tools/call"
	methodList       = "tools/list"
	methodInitialize = "initialize"
	methodDiscover   = "server/discover"
	methodPing       = "ping" // a server's; ours would be refused
	methodListen     = "subscriptions/listen"
	noteInitialized  = "notifications/initialized"
	noteCancelled    = "notifications/cancelled"
)

// The one notification of a server that means something here.
const noteToolsChanged = "notifications/tools/list_changed"

// The life of a permit. The zero value is spent: it calls nothing.
const (
	permitSpent   int32 = iota
	permitArmed         // made for one name and one sequence of argument bytes
	permitWritten       // the guarded connection let the message pass
)

// A permit is the single-use right to send one tools/call. It is passed twice: when the message passes the guarded
// connection (write) and when its bytes leave the process (send), each at most once.
type permit struct {
	tool  string
	args  []byte
	state atomic.Int32
	// What a link sends beside them, a JSON object each or nil, and then these bytes too are held to. A permit with either
	// lets nothing pass the guarded connection, whose messages have neither.
	extra, meta []byte
	listing     uint64 // by which a link's call was judged
	token       string // the progress token that the SDK's client sends; empty: none. A link's stands in meta
	// touched: bytes of the call may have reached the server. Set before they can, taken back if they certainly did not.
	touched atomic.Bool
}

// arm returns a permit for exactly this tool and these argument bytes.
func arm(tool string, args []byte) *permit {
	p := &permit{tool: tool, args: bytes.Clone(args)}
	p.state.Store(permitArmed)
	return p
}

var errNoPermit = errors.New("no permit is armed for it")

// write consumes the permit for outgoing params, which must be {name, arguments} with exactly the permit's values, and a _meta with
// the permit's progress token and, at most, what MCP 2026-07-28 puts on every request. A nil permit refuses everything.
func (p *permit) write(params []byte) error {
	if p == nil {
		return errNoPermit
	}
	var tool, token string
	var args []byte
	err := members(params, func(name string, value jsontext.Value) (err error) {
		switch name {
		case "name":
			tool, err = text(value)
		case "arguments":
			args = value.Clone()
		case "_meta":
			err = members(value, func(name string, value jsontext.Value) error {
				if name == tokenMember {
					token = string(value)
					return nil
				}
				return protocolMeta(name)
			})
		default:
			err = fmt.Errorf("the params have a member %q", name)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case tool != p.tool || !bytes.Equal(args, p.args) || token != p.token || p.extra != nil || p.meta != nil:
		return errors.New("name, arguments and progress token are not those of the permit")
	case !p.state.CompareAndSwap(permitArmed, permitWritten):
		return errNoPermit
	}
	return nil
}

// protocolMeta allows what the protocol itself puts into a request's _meta, and nothing else.
func protocolMeta(name string) error {
	switch name {
	case sdk.MetaKeyProtocolVersion, sdk.MetaKeyClientInfo, sdk.MetaKeyClientCapabilities:
		return nil
	}
	return fmt.Errorf("_meta has a member %q", name)
}

// send consumes what write left: the bytes leave the process once.
func (p *permit) send() error {
	if p == nil || !p.state.CompareAndSwap(permitWritten, permitSpent) {
		return errNoPermit
	}
	return nil
}

// leave consumes the permit for a whole message, right before its bytes leave the process: write and send in one. A message
// of ours has one spelling, so every byte is compared, and nothing is read twice. A nil permit refuses everything.
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
	case !p.state.CompareAndSwap(permitArmed, permitSpent):
		return errNoPermit
	}
	return nil
}

// The one spelling of a tools/call that a link sends: the head, the id, and the members with their values behind them.
const (
	callHead      = `{"jsonrpc":"2.0","id":`
	callName      = `,"method":"` + methodCall + `","params":{"name":`
	callArguments = `,"arguments":`
	callMeta      = `,"_meta":`
	callEnd       = `}}`
)

// message spells the tools/call that the permit is for.
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

// An exchange is one request of ours and the raw answer to it. It travels in the context of the SDK's call.
type exchange struct {
	method string
	permit *permit // nil but for tools/call
	first  bool    // a tools/list that begins a listing

	listing uint64          // by which a tools/call was judged
	clock   *deadline.Clock // of a tools/call

	// stale: the call was stopped on its way, because the tools are no longer those that were listed.
	stale atomic.Bool

	mu     sync.Mutex
	result []byte    // exactly as received; nil until there is one
	failed *RPCError // the answer was an error
	status int       // an HTTP status that is not success; 0 if there was none
}

func (x *exchange) answer(result []byte, failed *RPCError) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.result == nil && x.failed == nil {
		x.result, x.failed = result, failed
	}
}

func (x *exchange) refuse(status int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.status = status
}

func (x *exchange) outcome() (result []byte, failed *RPCError, status int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.result, x.failed, x.status
}

type exchangeKey struct{}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// permitOf returns the permit in ctx, or nil, which refuses everything.
func permitOf(ctx context.Context) *permit {
	if x := exchangeOf(ctx); x != nil {
		return x.permit
	}
	return nil
}
