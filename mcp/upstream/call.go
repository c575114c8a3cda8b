package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/mcp/wire"
)

// A Call is a tools/call to send.
type Call struct {
	Server    string           // the configured name
	Tool      string           // the server's own name of the tool
	Arguments canonical.Object // these bytes are sent
	RunID     string           // the run that makes the call; a run calls at most once
	Listing   uint64           // Number of the listing by which the call was judged. With 0 nothing is sent

	// Extra is a JSON object in canonical form with the members inputResponses and requestState,
	// either or both. They become members of the params. Nil: none.
	Extra jsontext.Value
	// Meta is a JSON object, the _meta of the call. A progressToken in it is the caller's. Members
	// that begin with io.modelcontextprotocol/ are refused, but for those that the link replaces by
	// its own, and the logLevel, which is not sent to a server of an older revision. Nil: none.
	Meta jsontext.Value
	// Header are Mcp-Param-… headers with their values, for a server of the latest revision over
	// HTTP. Others ignore them.
	Header map[string]string
	// Memory holds what the answer takes of the budget, until the caller releases it. Nil: the
	// memory is given back when Call returns.
	Memory *Memory
}

// Returned is the outcome of a [Call].
type Returned struct {
	Result   []byte       // the result, byte for byte as received; nil if there is none
	Members  []wire.Piece // members of a Result that was read strictly; nil if it has more than one reading
	RPCError *RPCError    // the server's error, if that was its answer
	Code     string       // empty if there is a result
	Reason   string       // the same for a person: printable, without secrets, bounded
	Effect   string       // EffectNotSent, EffectUnknown or EffectDone; the zero value must be read as unknown
	ID       int64        // the request's id; 0: it was not encoded
	Protocol string       // the MCP revision in force with the server
}

// An RPCError is a JSON-RPC 2.0 error object as the server sent it. Message and Data are the
// server's words.
type RPCError struct {
	Code    int64
	Message string
	Data    []byte // a JSON value, or nil
}

func (c Call) check() error {
	switch {
	case c.RunID == "" || len(c.RunID) > maxRunID:
		return fmt.Errorf("a run id has 1 to %d bytes", maxRunID)
	case c.Tool == "":
		return errors.New("the call names no tool")
	case c.Arguments.Bytes() == nil:
		return errors.New("the call has no arguments")
	}
	return nil
}

func checkCanonical(what string, doc []byte) error {
	canonicalDoc, err := canonical.JSON(doc)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if !bytes.Equal(canonicalDoc, doc) {
		return fmt.Errorf("%s are not in canonical form", what)
	}
	return nil
}

func notSent(code, reason string) Returned {
	return Returned{Code: code, Reason: presentableText(reason, nil), Effect: EffectNotSent}
}

// maxRunID is the length of a run id in bytes; a UUID has 36.
const maxRunID = 128

// rememberedRuns bounds the runs that are remembered as having called. The machine allows a run one
// call, also across crashes; this is a second check within the process.
const rememberedRuns = 1 << 16

// runs is the set of the latest runs that have called. The zero value is empty.
type runs struct {
	mu    sync.Mutex
	seen  map[string]struct{}
	order []string // the ids in seen, a ring once it is full
	next  int
}

// markCalled records that a run calls. It reports false if the run has called before.
func (r *runs) markCalled(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, called := r.seen[id]; called {
		return false
	}
	if r.seen == nil {
		r.seen = make(map[string]struct{})
	}
	if len(r.order) < rememberedRuns {
		r.order = append(r.order, id)
	} else {
		delete(r.seen, r.order[r.next])
		r.order[r.next] = id
		r.next = (r.next + 1) % rememberedRuns
	}
	r.seen[id] = struct{}{}
	return true
}

// message encodes the tools/call of c with our id.
func (c *Call) message(id int64, meta []byte) []byte {
	b := make([]byte, 0, 128+len(c.Tool)+len(c.Arguments.Bytes())+len(c.Extra)+len(meta))
	b = strconv.AppendInt(append(b, `{"jsonrpc":"2.0","id":`...), id, 10)
	b = wire.AppendQuote(append(b, `,"method":"`+methodCall+`","params":{"name":`...), c.Tool)
	b = append(append(b, `,"arguments":`...), c.Arguments.Bytes()...)
	if len(c.Extra) > len("{}") {
		b = append(append(b, ','), c.Extra[1:len(c.Extra)-1]...)
	}
	return append(append(append(b, `,"_meta":`...), meta...), "}}"...)
}
