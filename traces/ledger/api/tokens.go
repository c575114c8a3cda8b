package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"pgfsm/internal/web"
	"pgfsm/traces/ledger"
)

// Tokens authenticates callers by the ledger's tokens, which they send as bearer tokens.
type Tokens struct {
	Ledger *ledger.Ledger
	Needs  ledger.Action // action that the caller's role must allow; empty: every role may call
}

// Authenticate implements [web.Authenticator.Authenticate].
func (t Tokens) Authenticate(r *http.Request) (web.Caller, error) {
	return t.authenticateBy(t.Ledger.Authenticate, r)
}

// AuthenticateCall implements [web.CallAuthenticator.AuthenticateCall].
func (t Tokens) AuthenticateCall(r *http.Request) (web.Caller, error) {
	return t.authenticateBy(t.Ledger.AuthenticateCall, r)
}

func (t Tokens) authenticateBy(find func(context.Context, string) (ledger.Caller, error),
	r *http.Request) (web.Caller, error) {
	token, ok := web.BearerToken(r)
	if !ok {
		return web.Caller{}, web.ErrNoCredentials
	}
	c, err := find(r.Context(), token)
	if err != nil {
		return web.Caller{}, explainUnavailable(err)
	}
	if t.Needs != "" {
		if err := c.Allow(t.Needs); err != nil {
			return web.Caller{}, explainUnavailable(err)
		}
	}
	return web.Caller{Name: c.Name, Token: c.TokenID, Roles: c.Roles}, nil
}

// Unblocked rejects callers whom the ledger has blocked, and callers who act for a blocked person.
type Unblocked struct {
	web.Authenticator
	Ledger *ledger.Ledger
}

// Authenticate implements [web.Authenticator.Authenticate].
func (u Unblocked) Authenticate(r *http.Request) (web.Caller, error) {
	c, err := u.Authenticator.Authenticate(r)
	if err != nil {
		return c, err
	}
	if err := u.Ledger.ReadCommitted(r.Context(), CallerOf(c).CheckNotBlocked); err != nil {
		return web.Caller{}, explainUnavailable(err)
	}
	return c, nil
}

// explainUnavailable returns a refusal of the ledger unchanged. Any other error means that credentials
// cannot be verified now.
func explainUnavailable(err error) error {
	if errors.As(err, new(*ledger.Refusal)) {
		return err
	}
	return fmt.Errorf("%w: %w", web.ErrUnavailable, err)
}
