package web

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"time"

	"pgfsm/policy"
)

// A Caller is the sender of an HTTP request, as far as an [Authenticator] verified it.
type Caller struct {
	Name string // the name that is recorded as the actor
	// The id of the ledger's token that proved it; empty for a token of an identity provider.
	Token    string
	Roles    []string         // the roles in the ledger
	Identity *policy.Identity // the identity provider's claims; nil for the ledger's tokens
	Expires  time.Time        // the expiry of the identity provider's token; zero for the ledger's tokens
}

// An Authenticator verifies the senders of HTTP requests: agents to the gateway, people to the
// approvals API.
type Authenticator interface {
	// Authenticate returns the caller of a request. The error is [ErrNoCredentials] if the request
	// has none that the authenticator knows, and [ErrUnavailable] if they cannot be verified now.
	// With a [*ScopeError] they are valid, but do not allow the request. After every other error
	// the credentials are invalid.
	Authenticate(*http.Request) (Caller, error)
}

// A CallAuthenticator is an [Authenticator] that knows tokens which it verified a moment ago.
type CallAuthenticator interface {
	Authenticator
	// AuthenticateCall is Authenticate for a tools/call. The credentials may have become invalid a
	// moment ago: the record of the call checks them again before the call is made.
	AuthenticateCall(*http.Request) (Caller, error)
}

// AuthenticateCall calls AuthenticateCall of an authenticator that has it, and otherwise Authenticate.
func AuthenticateCall(a Authenticator, r *http.Request) (Caller, error) {
	if c, ok := a.(CallAuthenticator); ok {
		return c.AuthenticateCall(r)
	}
	return a.Authenticate(r)
}

// Errors of an [Authenticator].
var (
	ErrNoCredentials = errors.New("the request has no credentials")
	ErrUnavailable   = errors.New("credentials cannot be verified at the moment")
)

// A RetryError is an [ErrUnavailable] that says when to try again.
type RetryError struct {
	After time.Duration
	Err   error
}

func (e *RetryError) Error() string { return e.Err.Error() }

// Seconds returns After in whole seconds, for the header Retry-After.
func (e *RetryError) Seconds() int { return int(math.Ceil(e.After.Seconds())) }

// Unwrap returns [ErrUnavailable] and the cause.
func (e *RetryError) Unwrap() []error { return []error{ErrUnavailable, e.Err} }

// A ScopeError means that the caller's token lacks scopes (RFC 6750 section 3.1,
// insufficient_scope).
type ScopeError struct {
	Caller  Caller
	Missing []string
}

func (e *ScopeError) Error() string {
	return "the token lacks the scope " + strings.Join(e.Missing, " ")
}

// BearerToken returns the token of a request's Authorization header. ok is false if there is none,
// or if its scheme is not Bearer.
func BearerToken(r *http.Request) (token string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimLeft(token, " "), strings.EqualFold(scheme, "Bearer")
}
