package web

import (
	"errors"
	"net/http"
	"strings"
)

// A Caller is who sends an HTTP request, as far as an [Authenticator] verified it.
type Caller struct {
	Name       string // is recorded as the actor
	Credential string // names what proved it, such as a token's id
	Role       string
}

// An Authenticator verifies who sends an HTTP request: agents to the gateway, people to the approvals API.
type Authenticator interface {
	// Authenticate returns the caller of a request. The error is [ErrNoCredentials] if the request has none that the authenticator
	// knows, and [ErrUnavailable] if they cannot be verified now. After every other error the credentials are invalid.
	Authenticate(*http.Request) (Caller, error)
}

// Errors of an [Authenticator].
var (
	ErrNoCredentials = errors.New("the request has no credentials")
	ErrUnavailable   = errors.New("credentials cannot be verified at the moment")
)

// BearerToken returns the token of a request's Authorization header. ok is false if there is none, or if its scheme is not Bearer.
func BearerToken(r *http.Request) (token string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimLeft(token, " "), strings.EqualFold(scheme, "Bearer")
}

// Middleware wraps a handler.
type Middleware = func(http.Handler) http.Handler
