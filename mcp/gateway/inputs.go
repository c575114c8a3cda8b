package gateway

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// Codes of results that a client does not get.
const (
	CodeInputRefused  = "input_refused"  // the server asks for input that the client may not give, or cannot
	CodeResultRefused = "result_refused" // the server answered with a kind of result that nobody asked for
)

// mayReceive says why a result of a server does not go to the client; an empty code if it does. What asks for input goes to who
// can give it, if the operator exposes both that servers ask and what they ask for.
func (q *request) mayReceive(server *Server, f *resultInfo) (code, why string) {
	if f.kind != "complete" && f.kind != "input_required" {
		return CodeResultRefused, "it answered with a kind of result that nobody asked for"
	}
	switch {
	case !f.asks():
		return "", ""
	case !server.Expose.Has(ExposeInputRequired):
		return CodeInputRefused, "it asks for input, and the operator does not expose input_required"
	}
	can := q.capabilities()
	for _, requests := range f.requests {
		readable := wire.Each(requests, func(p wire.Piece) {
			method, params := readQuestion(p.Value)
			row := methodOf(fromServer, method)
			if row == nil || row.notification || row.by != byRelay || !server.Expose.Has(row.needs) {
				code, why = CodeInputRefused, "it asks for input of a kind that the operator does not expose"
				return
			}
			if no := can.cannotAnswer(method, params); no != "" {
				code, why = CodeInputRefused, "it asks for input: "+no
			}
		})
		if !readable {
			return CodeInputRefused, "it asks for input in a way that cannot be read"
		}
	}
	if code == "" && f.ambiguous {
		return CodeInputRefused, "it asks for input in a way that can be read as something else"
	}
	return code, why
}

// asksFor is what a question in a result is: a request.
func readQuestion(question []byte) (method string, params jsontext.Value) {
	wire.Each(question, func(p wire.Piece) { // what cannot be read asks for nothing that there is
		switch p.Name {
		case "method":
			method, _ = wire.Text(p.Value)
		case "params":
			params = p.Value
		}
	})
	return method, params
}

// inputRequest is a question in a result that is made here.
func inputRequest(method string, params jsontext.Value) jsontext.Value {
	if params == nil { // which some clients cannot do without
		params = jsontext.Value(`{}`)
	}
	var b object
	b.add("method", wire.Quote(method))
	b.add("params", params)
	return b.done()
}

// inputRequired is the result that asks a stateless client something, and that has it come back with a state.
func inputRequired(requests jsontext.Value, state string) jsontext.Value {
	var b object
	b.add("resultType", []byte(`"input_required"`))
	b.add("inputRequests", requests)
	b.add("requestState", wire.Quote(state))
	return b.done()
}

// inputRefused is the error of a request that was passed on, and whose result does not go to the client.
func inputRefused(server *Server, code, why string) jsontext.Value {
	data := append([]byte(`{"code":`), wire.Quote(code)...)
	return wire.ErrorObject(wire.InternalError, "server "+server.Name+": "+why, append(data, '}'))
}

// showsURL is the error by which a server has a client show URLs to people, and then ask again (MCP 2025-11-25, elicitation).
const showsURL = -32042

// failBack answers with the error of a server, but for one that is an elicitation and may not be.
func (q *request) failBack(server *Server, failed jsontext.Value) []byte {
	shows := false
	wire.Each(failed, func(p wire.Piece) { // that it is an object was seen when it was received
		code, err := strconv.ParseFloat(string(p.Value), 64)
		shows = shows || p.Name == "code" && err == nil && code == showsURL
	})
	if can := q.capabilities(); !shows || server.Expose.Has(ExposeElicitation) && can.showsURLs() {
		return q.fail(StripOwn(failed))
	}
	return q.fail(inputRefused(server, CodeInputRefused,
		"it has people open a URL, and the operator does not expose elicitation, or the client does not declare it"))
}

// refuses says why the client cannot be asked; empty if it can.
func (a clientCapabilities) cannotAnswer(method string, params jsontext.Value) string {
	switch method {
	case "sampling/createMessage":
		if !a.sampling {
			return "the client does not declare sampling"
		}
		if !a.samplingTools && hasMember(params, "tools") {
			return "the client does not declare sampling with tools"
		}
	case "elicitation/create":
		mode := textMember(params, "mode")
		switch {
		case !a.elicitation:
			return "the client does not declare elicitation"
		case mode == "url" && !a.url:
			return "the client does not declare elicitation of mode url"
		case mode != "url" && a.url && !a.form:
			return "the client does not declare elicitation of mode form"
		case hasReference(params):
			return "its schema refers to other schemas, and clients that follow it may not come back"
		}
	case "roots/list":
		if !a.roots {
			return "the client does not declare roots"
		}
	}
	return ""
}

// has reports whether an object of a server has a member that is not null.
func hasMember(doc []byte, member string) (found bool) {
	wire.Each(doc, func(p wire.Piece) { found = found || p.Name == member && string(p.Value) != "null" }) // what cannot be read has none
	return found
}

// refers reports whether there is a reference of JSON Schema anywhere in an elicitation. The protocol has none there: its schemas
// are flat. Names are compared as they are decoded.
func hasReference(params jsontext.Value) bool {
	if len(params) == 0 {
		return false
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(params), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return false // the end: that it is JSON was seen before
		}
		if kind, n := dec.StackIndex(dec.StackDepth()); kind == '{' && n%2 == 1 && token.Kind() == '"' {
			switch token.String() {
			case "$ref", "$dynamicRef", "$recursiveRef":
				return true
			}
		}
	}
}

// input looks at what a client sends in answer to a server that asked for input, and returns the state as that server knows it.
func (g *Gateway) checkInput(q *request, server *Server, what string, p callParams) (state, failed jsontext.Value) {
	switch {
	case p.responses == nil && p.state == nil:
		return nil, nil
	case !server.Expose.Has(ExposeInputRequired) && p.state != nil:
		return nil, invalid(wire.InvalidParams, errForeignState+", and the operator does not expose input_required of server "+server.Name)
	case !server.Expose.Has(ExposeInputRequired):
		return nil, invalid(wire.InvalidParams, "the operator does not expose input_required of server "+server.Name)
	case !q.stateless():
		return nil, invalid(wire.InvalidParams, "revision "+q.Protocol+" has no inputResponses and no requestState")
	case p.state == nil:
		return nil, nil
	}
	text, err := wire.Text(p.state)
	if err != nil {
		return nil, invalid(wire.InvalidParams, `"requestState" is not a string`)
	}
	native, ok := g.states.open(stateServer, text, q.From, server.Name, what)
	if !ok {
		return nil, invalid(wire.InvalidParams, errForeignState)
	}
	return wire.Quote(native), nil
}

// brings is the state of a kind that a stateless client brings back, as it was before it was sealed, if the client was given it for this.
func (q *request) ownState(whose string, server *Server, what string, p callParams) (native string, ok bool) {
	if q.session != nil || p.state == nil {
		return "", false
	}
	text, err := wire.Text(p.state)
	if err != nil {
		return "", false
	}
	return q.gateway.states.open(whose, text, q.From, server.Name, what)
}

const errForeignState = "the requestState is not one that you were given for this, or the gateway has begun anew since; ask again without it"

// unsealed is [Gateway.input] for the params of a request that is passed on.
func (g *Gateway) openState(q *request, server *Server, what string, params jsontext.Value) (_, failed jsontext.Value) {
	p := callParams{responses: nonNull(wire.Member(params, "inputResponses")), state: nonNull(wire.Member(params, "requestState"))}
	state, failed := g.checkInput(q, server, what, p)
	if failed != nil || state == nil {
		return params, failed
	}
	native, err := wire.Set(params, "requestState", state)
	if err != nil {
		return nil, invalid(wire.InvalidParams, "the params cannot be read")
	}
	return native, nil
}

// sealed are the edits that bind the state of a result to the client that gets it.
func (g *Gateway) sealState(q *request, server *Server, what string, f *resultInfo) (edits []edit) {
	if !f.asks() {
		return nil
	}
	for _, p := range f.state {
		if native, err := wire.Text(p.Value); err == nil {
			edits = append(edits, edit{p.At, len(p.Value), wire.Quote(g.states.seal(stateServer, native, q.From, server.Name, what))})
		}
	}
	return edits
}

// seals bind what a server wants back to the client that it was given to, so that nobody can go on with the request of another.
// The key lives as long as the process: what was asked before it began has to be asked again.
type stateSealer struct{ key [32]byte }

func (s *stateSealer) init() { rand.Read(s.key[:]) }

// sealBytes is the length of a seal: what of the code is kept.
const sealBytes = 16

// Whose a sealed state is.
const (
	stateServer = "server" // the upstream server's own
	statePending = "errand" // that of a request which goes on meanwhile; see errand
	stateURL  = "shown"  // that of a call which waits for people; see calling.shows
)

func (s *stateSealer) mac(whose, native string, who Identity, server, what string) string {
	mac := hmac.New(sha256.New, s.key[:])
	for _, part := range []string{whose, who.Name, who.Token, server, what} {
		var size [8]byte
		for i := range size {
			size[i] = byte(len(part) >> (8 * i))
		}
		mac.Write(size[:])
		mac.Write([]byte(part))
	}
	mac.Write([]byte(native))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:sealBytes])
}

// seal is the state as the client gets it.
func (s *stateSealer) seal(whose, native string, who Identity, server, what string) string {
	return s.mac(whose, native, who, server, what) + "." + native
}

// open is the state as it was sealed, if this client got it for this.
func (s *stateSealer) open(whose, sealed string, who Identity, server, what string) (native string, ok bool) {
	code, native, ok := strings.Cut(sealed, ".")
	return native, ok && hmac.Equal([]byte(code), []byte(s.mac(whose, native, who, server, what)))
}
