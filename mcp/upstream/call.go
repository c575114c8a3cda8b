package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/deadline"
	"pgfsm/policy/canonical"
)

// A Call is one tools/call that is wanted.
type Call struct {
	Server    string // the configured name
	Tool      string // the server's own name of the tool
	Arguments []byte // a JSON object in canonical form, see package canonical; these bytes go onto the wire
	RunID     string // the run that the call belongs to; a run calls at most once
	Listing   uint64 // the Number of the listing that the call was judged by; 0 is none, and calls nothing

	// Only [Link.Call] sends these; [Upstreams.Call] refuses a call that has any.

	// Extra is a JSON object in canonical form with the members inputResponses and requestState, either or both. They become
	// members of the params. Nil: none.
	Extra jsontext.Value
	// Meta is a JSON object that goes with the call as its _meta. A progressToken in it is the caller's. What begins with
	// io.modelcontextprotocol/ is refused, but for what the link itself puts there, in place of what there was, and the
	// logLevel, which a server of an older revision is not told. Nil: none.
	Meta jsontext.Value
	// Header are Mcp-Param-… headers with their values, for a server of the latest revision over HTTP. Others ignore them.
	Header map[string]string
}

// Returned is what came of a [Call].
type Returned struct {
	Result   []byte    // the result, byte for byte as received; nil if there is none
	RPCError *RPCError // the server's error, if that was its answer
	Code     string    // empty if there is a result
	Reason   string    // the same for a person: printable, without secrets, bounded
	Effect   string    // EffectNotSent, EffectUnknown or EffectDone; the zero value must be read as unknown
}

// An RPCError is a JSON-RPC 2.0 error object as the server sent it. Message and Data are the server's words.
type RPCError struct {
	Code    int64
	Message string
	Data    []byte // a JSON value, or nil
}

// Call sends exactly one tools/call, or none, and waits for its answer until ctx ends or the server's Timeout or TimeoutTotal is over.
// It asks the server for progress. It never connects, never repeats and never follows: it needs the session of the last List, and sends nothing if the
// server has said since then that its tools changed. The second Call of a run is refused whatever became of the first.
func (u *Upstreams) Call(ctx context.Context, c Call) Returned {
	if u.ctx.Err() != nil {
		return notSent(CodeClosed, errClosed.Error())
	}
	if err := c.check(); err != nil {
		return notSent(CodeInvalid, err.Error())
	}
	if c.Extra != nil || c.Meta != nil || c.Header != nil {
		return notSent(CodeInvalid, "the call has what only a link can send")
	}
	up := u.byName[c.Server]
	if up == nil {
		return notSent(CodeUnknown, "no server of this name is configured")
	}
	s := up.current()
	if s == nil {
		return notSent(CodeUnreachable, "there is no working session with it")
	}
	if !u.done.first(c.RunID) {
		return notSent(CodePermit, "this run has made its call")
	}
	return s.call(ctx, arm(c.Tool, c.Arguments), c.Listing)
}

func (c Call) check() error {
	switch {
	case c.RunID == "" || len(c.RunID) > maxRunID:
		return fmt.Errorf("a run id has 1 to %d bytes", maxRunID)
	case c.Tool == "":
		return errors.New("the call names no tool")
	case jsontext.Value(c.Arguments).Kind() != '{':
		return errors.New("the arguments are not a JSON object")
	}
	same, err := canonical.JSON(c.Arguments)
	if err != nil {
		return fmt.Errorf("the arguments: %w", err)
	}
	if !bytes.Equal(same, c.Arguments) {
		return errors.New("the arguments are not in canonical form")
	}
	return nil
}

// call spends p. The SDK's own call is given the permit's bytes, and the guarded connection holds it to them.
func (s *session) call(ctx context.Context, p *permit, listing uint64) Returned {
	s.calls.Add(1)
	defer s.calls.Add(-1)
	ctx, clock := deadline.New(ctx, s.server.limits())
	defer clock.Stop()
	token := s.tokens.Add(1)
	p.token = strconv.FormatInt(token, 10)
	x := &exchange{method: methodCall, permit: p, listing: listing, clock: clock}
	_, err := s.client.CallTool(withExchange(ctx, x), &sdk.CallToolParams{
		Name: p.tool, Arguments: jsontext.Value(p.args), Meta: sdk.Meta{tokenMember: token},
	})
	s.guard.forget(x)
	// Whatever comes later, nothing may still be sent for it.
	p.state.Store(permitSpent)
	if x.stale.Load() {
		return notSent(CodeChanged, "the server says that its tools have changed since they were listed")
	}
	result, failed, status := x.outcome()
	switch {
	case result != nil && len(result) <= s.limits.ResultBytes:
		return Returned{Result: result, Effect: EffectDone}
	case result != nil:
		return Returned{Code: CodeResult, Effect: EffectDone,
			Reason: fmt.Sprintf("the result has %d bytes; %d are allowed", len(result), s.limits.ResultBytes)}
	case failed != nil:
		reason := fmt.Sprintf("it answered with error %d %q", failed.Code, failed.Message)
		return Returned{RPCError: failed, Code: CodeRPC, Effect: EffectUnknown,
			Reason: presentable(reason, s.secrets)}
	}
	return s.lost(ctx, p, status, err)
}

// lost says what is known of a call that has no answer.
func (s *session) lost(ctx context.Context, p *permit, status int, err error) Returned {
	r := Returned{Effect: EffectNotSent}
	if p.touched.Load() {
		r.Effect = EffectUnknown
	}
	f := s.fault()
	switch {
	case f != nil && f.code == codeFrame:
		r.Code, r.Reason = CodeResult, f.reason
		if f.calls == 1 { // it can only have been the answer to this call
			r.Effect = EffectDone
		}
	case f != nil && !f.lost:
		r.Code, r.Reason = f.code, f.reason
	case status != 0:
		r.Code, r.Reason = CodeUnreachable, httpReason(status)
	case ctx.Err() != nil:
		r.Code, r.Reason = overCode(ctx), "it did not answer within the time allowed"
	case f != nil:
		r.Code, r.Reason = f.code, f.reason
	case err == nil:
		r.Code, r.Reason = CodeProtocol, "no answer came"
	default:
		r.Code, r.Reason = s.broken(err)
		r.Reason = presentable(r.Reason, s.secrets)
	}
	return r
}

func notSent(code, reason string) Returned {
	return Returned{Code: code, Reason: presentable(reason, nil), Effect: EffectNotSent}
}

// maxRunID is the length of a run id in bytes; a UUID has 36.
const maxRunID = 128

// rememberedRuns is how many runs are remembered as having called. The states above hold a run to one call across
// crashes; this holds for a process what they might get wrong.
const rememberedRuns = 1 << 16

// runs is the set of the latest runs that have called. The zero value is empty.
type runs struct {
	mu    sync.Mutex
	seen  map[string]struct{}
	order []string // the ids in seen, a ring once it is full
	next  int
}

// first reports whether it is the first time that it is asked for id.
func (r *runs) first(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again := r.seen[id]; again {
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
