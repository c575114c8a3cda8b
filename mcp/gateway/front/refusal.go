package front

import (
	"errors"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// JSON-RPC error codes of refusals, in the range for servers. The error's data has a more precise
// code.
const (
	codeRefused   = -32000
	codeNoSession = -32001
)

// Codes in the data of refusals. docs/reference/gateway-protocol.md lists them.
const (
	refusedHeader      = "header_repeated"
	refusedHost        = "host_refused"
	refusedOrigin      = "origin_refused"
	refusedToken       = "token_refused"
	refusedScope       = "insufficient_scope"
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
	refusedLimited     = "rate_limited"
	refusedDraining    = "draining"
	refusedStream      = "stream_taken"
	refusedEvent       = "stream_not_kept"
)

// A refusal is the reason for which a request does not reach the dispatcher.
type refusal struct {
	status  int   // HTTP status
	code    int64 // JSON-RPC error code
	reason  string
	message string
	data    []byte // replaces the reason
	allow   string // value of the Allow header

	retryAfter int // in seconds; zero: one
}

func newRefusal(status int, reason, message string) *refusal {
	return &refusal{status: status, code: codeRefused, reason: reason, message: message}
}

// body returns the JSON-RPC error that answers a message with this id, which may be nil.
func (f *refusal) body(id []byte) []byte { return wire.Failure(nil, id, f.errorObject()) }

func (f *refusal) errorObject() jsontext.Value {
	data := f.data
	if data == nil {
		data = wire.Single("code", wire.Quote(f.reason))
	}
	return wire.ErrorObject(f.code, f.message, data)
}

// refusalOf converts an error of package session.
func refusalOf(err error) *refusal {
	switch {
	case errors.Is(err, session.ErrStopping):
		return newRefusal(http.StatusServiceUnavailable, refusedDraining, err.Error())
	case errors.Is(err, session.ErrDuplicateID):
		f := newRefusal(http.StatusBadRequest, refusedTwice, err.Error())
		f.code = wire.InvalidRequest
		return f
	default:
		return newRefusal(http.StatusTooManyRequests, refusedBusy, "busy: "+session.ErrBusy.Error())
	}
}

// notAllowed refuses an HTTP method. allowed lists the accepted methods.
func notAllowed(allowed string) *refusal {
	f := newRefusal(http.StatusMethodNotAllowed, refusedMethod,
		"this path does not take this method; it takes "+allowed)
	f.allow = allowed
	return f
}

// invalidMessage refuses a body with a JSON-RPC code.
func invalidMessage(code int64, message string) *refusal {
	return &refusal{
		status:  http.StatusBadRequest,
		code:    code,
		reason:  refusedMessage,
		message: message,
	}
}

// headerMismatch refuses a message whose headers and body differ.
func headerMismatch(message string) *refusal {
	return &refusal{
		status:  http.StatusBadRequest,
		code:    wire.HeaderMismatch,
		reason:  refusedMismatch,
		message: message,
	}
}

// HeaderMismatch returns the error object for a message whose headers and body differ.
func HeaderMismatch(message string) jsontext.Value { return headerMismatch(message).errorObject() }

// unsupportedVersion refuses a revision of MCP.
func unsupportedVersion(version string) *refusal {
	var data wire.Object
	data.Add("supported", wire.Texts(session.Revisions()))
	data.Add("requested", wire.Quote(version))
	return &refusal{
		status:  http.StatusBadRequest,
		code:    wire.UnsupportedVersion,
		message: "the gateway does not speak this revision of MCP",
		data:    data.Value(),
	}
}
