package gateway

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"net/netip"
	"strings"

	"pgfsm/loopback"
	"pgfsm/mcp/wire"
)

// Codes of JSON-RPC errors that HTTP refusals carry in their bodies, in the range that is left to servers. What exactly was wrong
// is in the error's data, as a code that stays.
const (
	codeRefused   = -32000
	codeNoSession = -32001
)

// Codes in the data of refusals.
const (
	refusedHeader      = "header_repeated"
	refusedHost        = "host_refused"
	refusedOrigin      = "origin_refused"
	refusedToken       = "token_refused"
	refusedUnavailable = "authentication_unavailable"
	refusedLedger      = "ledger_unavailable"
	refusedPath        = "path_unknown"
	refusedMethod      = "method_refused"
	refusedType        = "content_type_refused"
	refusedEncoding    = "content_encoding_refused"
	refusedAccept      = "not_acceptable"
	refusedLarge       = "body_too_large"
	refusedSlow        = "body_too_slow"
	refusedBody        = "body_unreadable"
	refusedMessage     = "message_invalid"
	refusedMismatch    = "header_mismatch"
	refusedVersion     = "version_refused"
	refusedNoSession   = "session_unknown"
	refusedSessionless = "session_missing"
	refusedTwice       = "id_in_use"
	refusedBusy        = "busy"
	refusedDraining    = "draining"
	refusedStream      = "stream_taken"
	refusedEvent       = "stream_not_kept"
)

// A refusal is why something does not get as far as the dispatcher.
type refusal struct {
	status  int
	code    int64
	reason  string // code in the data
	message string
	data    []byte // in place of the reason
	allow   string // of a method that is refused: those that are not
}

func refuse(status int, reason, message string) *refusal {
	return &refusal{status: status, code: codeRefused, reason: reason, message: message}
}

// body is the JSON-RPC error that answers a message with an id, which may be nil.
func (f *refusal) body(id []byte) []byte {
	data := f.data
	if data == nil {
		data = append(append([]byte(`{"code":`), wire.Quote(f.reason)...), '}')
	}
	return wire.Failure(nil, id, wire.ErrorObject(f.code, f.message, data))
}

// refusalOf makes a refusal of an error of an admission or a session.
func refusalOf(err error) *refusal {
	switch {
	case errors.Is(err, errDraining):
		return refuse(http.StatusServiceUnavailable, refusedDraining, err.Error())
	case errors.Is(err, errTwice):
		f := refuse(http.StatusBadRequest, refusedTwice, err.Error())
		f.code = wire.InvalidRequest
		return f
	default:
		return refuse(http.StatusTooManyRequests, refusedBusy, "busy: "+errBusy.Error())
	}
}

// single are the headers that decide something. Which of two would count differs from one program to the next.
var single = []string{
	"Authorization", "Content-Encoding", "Content-Length", "Content-Type", "Host", "Last-Event-Id", "Origin", "Sec-Fetch-Site",
}

// guard refuses what does not come from where clients come from.
func (g *Gateway) guard(r *http.Request) *refusal {
	for _, values := range r.Header { // in any order: nearly always there is none
		if len(values) > 1 {
			if f := twice(r.Header); f != nil {
				return f
			}
			break
		}
	}
	// A page whose name was rebound to this machine still sends its own name.
	if !g.hosts[strings.ToLower(r.Host)] {
		return refuse(http.StatusForbidden, refusedHost, "the Host header names another service than this one; serve.hosts of the configuration adds a name")
	}
	if origin, sent := r.Header["Origin"]; sent && !g.same(origin[0]) {
		return refuse(http.StatusForbidden, refusedOrigin, "the request comes from a page; pages elsewhere may not ask here")
	}
	switch first(r.Header, "Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return nil
	default:
		return refuse(http.StatusForbidden, refusedOrigin, "the browser says that the request comes from another page")
	}
}

// twice refuses headers of which one that decides something came more than once.
func twice(h http.Header) *refusal {
	for _, name := range single {
		if len(h[name]) > 1 {
			return refuse(http.StatusBadRequest, refusedHeader, "the header "+name+" came more than once")
		}
	}
	for name, values := range h { // in any order: one refusal is as good as another
		if len(values) > 1 && strings.HasPrefix(name, "Mcp-") {
			return refuse(http.StatusBadRequest, refusedHeader, "a header of MCP came more than once")
		}
	}
	return nil
}

// first is the first value of a header by its name as net/http spells it; empty if there is none.
func first(h http.Header, name string) string {
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// same reports whether an origin is one of the names that are served.
func (g *Gateway) same(origin string) bool {
	for _, scheme := range []string{"http://", "https://"} {
		if host, ok := strings.CutPrefix(strings.ToLower(origin), scheme); ok {
			return g.hosts[host]
		}
	}
	return false
}

// Anonymous is the name of a client without a token.
const Anonymous = "anonymous"

// ErrUnavailable is what [Options.Authenticate] returns if it could not look whose a token is: nothing is known against it.
var ErrUnavailable = errors.New("whose the token is cannot be told at the moment")

// identify says who asks. The token is verified each time, and goes nowhere else.
func (g *Gateway) identify(r *http.Request) (Identity, *refusal) {
	values := r.Header["Authorization"]
	if len(values) == 0 {
		if !near(r) {
			return Identity{}, unauthorized("no token came, which only programs on this machine may do without: send Authorization: Bearer " +
				"and a token of pgfsm token create")
		}
		return Identity{Name: Anonymous}, nil
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return Identity{}, unauthorized("the Authorization header is of another scheme than Bearer")
	}
	return g.owner(r.Context(), strings.TrimLeft(token, " "))
}

// owner says whose a token is.
func (g *Gateway) owner(ctx context.Context, token string) (Identity, *refusal) {
	if token == "" || strings.ContainsAny(token, " ,\t") || g.options.Authenticate == nil {
		return Identity{}, unauthorized("the token is not valid")
	}
	who, err := g.options.Authenticate(ctx, token)
	switch {
	case errors.Is(err, ErrUnavailable):
		return Identity{}, refuse(http.StatusServiceUnavailable, refusedUnavailable, ErrUnavailable.Error())
	case err != nil || who.Name == "" || who.Name == Anonymous:
		return Identity{}, unauthorized("the token is not valid")
	}
	return who, nil
}

func unauthorized(message string) *refusal {
	return refuse(http.StatusUnauthorized, refusedToken, message)
}

// forwarded are the headers by which a proxy says that it asks for somebody else.
var forwarded = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"}

// near reports whether a program on this machine asks, for itself: over loopback, by a name of this machine, and not as a proxy.
func near(r *http.Request) bool {
	for _, name := range forwarded {
		if len(r.Header[name]) > 0 {
			return false
		}
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback() && local(r.Host)
}

// local reports whether the value of a Host header is a name of the machine itself, with or without a port.
func local(host string) bool {
	if at := strings.LastIndexByte(host, ':'); at >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:at]
	}
	return loopback.Host(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
}

// typed refuses the body of a POST that is not JSON, plain.
func typed(r *http.Request) *refusal {
	if value := first(r.Header, "Content-Type"); value != "application/json" { // nothing else is usual
		kind, params, err := mime.ParseMediaType(value)
		charset := params["charset"]
		if err != nil || kind != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
			return refuse(http.StatusUnsupportedMediaType, refusedType, "the Content-Type of a message is application/json, in UTF-8")
		}
	}
	if first(r.Header, "Content-Encoding") != "" {
		return refuse(http.StatusUnsupportedMediaType, refusedEncoding, "messages are not compressed here")
	}
	return nil
}

// streamFirst reports whether a client that takes both names the stream first: it is answered with one also where JSON would do.
// The SDKs' clients name JSON first.
func streamFirst(r *http.Request) bool {
	kind, _, _ := strings.Cut(first(r.Header, "Accept"), ",")
	return strings.TrimSpace(kind) == "text/event-stream"
}

// acceptable says whether a client takes an answer as JSON and as a stream. Who says nothing takes both.
func acceptable(r *http.Request) (plain, stream bool) {
	values := r.Header["Accept"]
	if len(values) == 0 {
		return true, true
	}
	for _, value := range values {
		switch value { // those that are usual
		case "application/json, text/event-stream", "text/event-stream, application/json", "*/*":
			return true, true
		}
		for part := range strings.SplitSeq(value, ",") {
			kind, params, err := mime.ParseMediaType(part)
			if err != nil || params["q"] == "0" {
				continue
			}
			plain = plain || kind == "*/*" || kind == "application/*" || kind == "application/json"
			stream = stream || kind == "*/*" || kind == "text/*" || kind == "text/event-stream"
		}
	}
	return plain, stream
}
