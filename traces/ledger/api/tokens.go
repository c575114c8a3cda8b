package api

import (
	"errors"
	"fmt"
	"net/http"

	"pgfsm/traces/ledger"
	"pgfsm/web"
)

// Tokens authenticates callers by the ledger's tokens, which they send as bearer tokens.
type Tokens struct {
	Ledger *ledger.Ledger
	Needs  ledger.Action // the caller's role must allow it; empty: every role may call
}

// Authenticate is [web.Authenticator.Authenticate].
func (t Tokens) Authenticate(r *http.Request) (web.Caller, error) {
	token, ok := web.BearerToken(r)
	if !ok {
		return web.Caller{}, web.ErrNoCredentials
	}
	c, err := t.Ledger.Authenticate(r.Context(), token)
	if err == nil && t.Needs != "" {
		err = c.Allow(t.Needs)
	}
	var refused *ledger.Refusal
	switch {
	case err == nil:
		return web.Caller{Name: c.Name, Token: c.TokenID, Roles: c.Roles}, nil
	case errors.As(err, &refused):
		return web.Caller{}, err
	}
	return web.Caller{}, fmt.Errorf("%w: %w", web.ErrUnavailable, err)
}

// Unblocked refuses callers whom the ledger has blocked, and those who act for a person whom it has blocked.
type Unblocked struct {
	web.Authenticator
	Ledger *ledger.Ledger
}

// Authenticate is [web.Authenticator.Authenticate].
func (u Unblocked) Authenticate(r *http.Request) (web.Caller, error) {
	c, err := u.Authenticator.Authenticate(r)
	if err != nil {
		return c, err
	}
	switch blocked, err := u.Ledger.Blocked(r.Context(), c.Name, CallerOf(c).OnBehalfOf()); {
	case err != nil:
		return web.Caller{}, fmt.Errorf("%w: %w", web.ErrUnavailable, err)
	case blocked:
		return web.Caller{}, &ledger.Refusal{Code: ledger.RefusedBlocked, Message: "an admin has blocked " + c.Name + " here, or the person for whom it acts"}
	}
	return c, nil
}
