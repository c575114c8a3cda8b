package upstream

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// paramHeader is the prefix of headers that repeat arguments.
const paramHeader = "Mcp-Param-"

// maxHeaders bounds [Call.Header].
const maxHeaders = 100

// Call sends exactly one tools/call, or none, and waits for its answer until ctx ends or the
// server's Timeout or TimeoutTotal is over. It always asks the server for progress; each report
// restarts the Timeout. The server's messages that belong to the call go to on, in order, in this
// goroutine; progress only if the caller wants it. While a request of the server waits for
// [Link.Answer], the Timeout pauses, unless the link is [Link.Modern]; TimeoutTotal and ctx do not.
// Call never repeats a call and never follows a redirect. It sends nothing if the server has
// announced changed tools since c.Listing. A second Call of a run is refused over any link, even if
// the first failed.
//
// A call is checked in this order: states.Run hands out the permit of the run once, the run is
// marked as called (markCalled), and right before the bytes leave, authorizeSend compares them with
// the permit of the frame and consumes it. From then on its effect is unknown until the answer.
func (l *Link) Call(ctx context.Context, c Call, on func(wire.Message)) Returned {
	if f := l.fault(); f != nil {
		return notSent(f.code, f.reason)
	}
	if c.Server != l.up.server.Name {
		return notSent(CodeInvalid, "the call is for another server")
	}

	id := l.up.ids.Add(1)
	frame, token, err := l.encodeCall(c, id)
	if err != nil {
		return notSent(CodeInvalid, err.Error())
	}
	// From here on the run has called, whatever becomes of this call.
	if !l.u.called.markCalled(c.RunID) {
		return notSent(CodePermit, "this run has made its call")
	}

	ctx, clock := l.startClock(ctx, methodCall)
	defer l.stopClock(clock)
	if ctx.Err() != nil {
		return notSent(contextCode(ctx), "there was no time to send it")
	}

	p := newPermit(frame, c.Listing)
	q := &query{
		id:     id,
		method: methodCall,
		name:   c.Tool,
		frame:  frame,
		permit: p,
		header: c.Header,
		token:  token,
		asked:  true,
		on:     on,
		clock:  clock,
		memory: c.Memory,
	}

	l.awaitStream(ctx)
	o := l.sendRequest(ctx, q)
	p.armed.Store(false) // from here on nothing may be sent for the call
	returned := l.convertOutcome(p, o)
	returned.ID, returned.Protocol = id, l.ServerInfo().Protocol

	return returned
}

// encodeCall checks and encodes the call. The message asks for progress with the call's id as the
// token; token is the caller's own, or nil.
func (l *Link) encodeCall(c Call, id int64) (frame []byte, token jsontext.Value, err error) {
	if err := c.check(); err != nil {
		return nil, nil, err
	}
	if err := checkExtra(c.Extra); err != nil {
		return nil, nil, err
	}
	if err := checkParamHeaders(c.Header); err != nil {
		return nil, nil, err
	}
	meta, token, err := l.mergeMeta(c.Meta, id, true)
	if err != nil {
		return nil, nil, err
	}
	return c.message(id, meta), token, nil
}

// checkExtra allows a canonical object with the members that a repeated call adds.
func checkExtra(extra jsontext.Value) error {
	if extra == nil {
		return nil
	}
	if err := checkCanonical("the extra members", extra); err != nil {
		return err
	}
	return wire.Members(extra, func(name string, _ jsontext.Value) error {
		if name != "inputResponses" && name != "requestState" {
			return fmt.Errorf("the call has an extra member %q", name)
		}
		return nil
	})
}

func checkParamHeaders(header map[string]string) error {
	if len(header) > maxHeaders {
		return fmt.Errorf("the call has more than %d headers", maxHeaders)
	}
	for name := range header { // in any order: all must be valid
		argument, ok := strings.CutPrefix(http.CanonicalHeaderKey(name), paramHeader)
		if !ok || argument == "" || !IsToken(name) {
			return fmt.Errorf("the call has a header %.40q, which does not begin with %s", name, paramHeader)
		}
	}
	return nil
}

// convertOutcome converts the outcome of a call for the caller.
func (l *Link) convertOutcome(p *permit, o outcome) Returned {
	limit := l.u.limits.ResultBytes
	switch {
	case o.fault == nil && o.failed != nil:
		reason := fmt.Sprintf("it answered with error %d %q", o.failed.Code, o.failed.Message)
		return Returned{
			RPCError: o.failed,
			Code:     CodeRPC,
			Effect:   EffectUnknown,
			Reason:   presentableText(reason, l.secrets),
		}
	case o.fault == nil && len(o.Result) <= limit:
		return Returned{Result: o.Result, Members: o.Members, Effect: EffectDone}
	case o.fault == nil:
		return Returned{Code: CodeResult, Effect: EffectDone,
			Reason: fmt.Sprintf("the result has %d bytes; %d are allowed", len(o.Result), limit)}
	}

	r := Returned{Effect: EffectNotSent, Code: o.fault.code, Reason: o.fault.reason}
	if p.touched.Load() {
		r.Effect = EffectUnknown
	}

	if o.fault.code == codeFrame {
		r.Code = CodeResult
		// The message can only be the answer to this call.
		if r.Effect == EffectUnknown && (o.large || o.fault.calls == 1) {
			r.Effect = EffectDone
		}
	}

	return r
}
