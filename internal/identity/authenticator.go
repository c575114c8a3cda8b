package identity

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/web"
	"pgfsm/policy"
)

// ledgerPrefix begins the tokens of the ledger, which another authenticator verifies.
const ledgerPrefix = "pgfsm_"

// Agents authenticates requests to the gateway. resources returns the URLs of the endpoints that a
// request may be for; a token must have one of them, or one of the configured audiences of the
// gateway, in aud. A token without one of the scopes is a [*web.ScopeError].
//
// A token of a person is accepted too if its audience is the endpoint, and the caller's kind says
// that it is a person: what decides at the gateway are policies, which can read the kind.
func (p *Providers) Agents(resources func(*http.Request) []string, scopes []string) web.Authenticator {
	return authenticator(func(r *http.Request) (web.Caller, error) {
		t, err := p.verifyAccess(r)
		if err != nil {
			return web.Caller{}, err
		}
		if !t.isFor(resources(r), t.provider.Audiences.MCP) {
			return web.Caller{}, errAudience
		}
		granted := t.claims.grantedScopes()
		if missing := slices.DeleteFunc(slices.Clone(scopes),
			func(s string) bool { return slices.Contains(granted, s) }); len(missing) > 0 {
			return web.Caller{}, &web.ScopeError{Caller: t.caller, Missing: missing}
		}
		return t.caller, nil
	})
}

// People authenticates requests to the admin address, whose URL is resource. may returns the
// caller's roles of the ledger.
//
// Only clients of people get in, and no agent that acts for a person. So a mistake in the audiences
// does not let agents vote.
func (p *Providers) People(resource string, may func(id *policy.Identity, name string) []string) web.Authenticator {
	return authenticator(func(r *http.Request) (web.Caller, error) {
		t, err := p.verifyAccess(r)
		if err != nil {
			return web.Caller{}, err
		}
		if !t.isFor([]string{resource}, t.provider.Audiences.Admin) {
			return web.Caller{}, errAudience
		}
		if t.caller.Identity.Kind != policy.ActorPerson {
			return web.Caller{}, errAgent
		}
		caller := t.caller
		caller.Roles = may(caller.Identity, caller.Name)
		return caller, nil
	})
}

type authenticator func(*http.Request) (web.Caller, error)

// Authenticate is [web.Authenticator.Authenticate].
func (a authenticator) Authenticate(r *http.Request) (web.Caller, error) { return a(r) }

// isFor reports whether the token's audience has one of those that are accepted.
func (t *token) isFor(accepted ...[]string) bool {
	return slices.ContainsFunc(slices.Concat(accepted...),
		func(aud string) bool { return aud != "" && slices.Contains(t.claims.Audience, aud) })
}

// verifyAccess verifies the request's access token as far as it does not depend on the endpoint.
func (p *Providers) verifyAccess(r *http.Request) (*token, error) {
	raw, ok := web.BearerToken(r)
	if !ok || strings.HasPrefix(raw, ledgerPrefix) {
		return nil, web.ErrNoCredentials
	}
	t, err := p.verifyToken(r.Context(), raw)
	if err != nil {
		return nil, err
	}
	if err := t.isAccess(); err != nil {
		return nil, err
	}
	return t, t.identifyCaller()
}

// verifyToken returns a token whose signature and times are good. Tokens that fail without a key
// cause no fetch.
func (p *Providers) verifyToken(ctx context.Context, raw string) (*token, error) {
	u, err := parseToken(raw)
	if err != nil {
		return nil, err
	}
	provider := p.byIssuer[u.claims.Issuer]
	if provider == nil {
		return nil, errIssuer
	}
	if err := u.claims.checkTimes(p.now()); err != nil {
		return nil, err
	}
	if u.header.KeyID == "" {
		return nil, errKey
	}
	_, k, err := provider.lookUpKey(ctx, u.header.KeyID)
	if err != nil {
		return nil, err
	}
	return u.verifySignature(provider, k)
}

// IDToken verifies the id token with which a client of people was answered (OpenID Connect Core 1.0
// section 3.1.3.7). The nonce is that of the client's authorization request. signedIn is when the
// provider authenticated the person; zero: the token does not say.
func (p *Providers) IDToken(ctx context.Context, issuer, clientID, raw, nonce string) (who web.Caller,
	signedIn time.Time, err error) {
	t, err := p.verifyToken(ctx, raw)
	if err != nil {
		return who, signedIn, err
	}

	// The nonce is text, or it is missing.
	c := &t.claims
	claimed := ""
	if c.Nonce != nil && json.Unmarshal(c.Nonce, &claimed) != nil {
		return who, signedIn, errClaims
	}

	switch {
	case t.typ != "jwt", c.Issuer != issuer, c.Type != nil && *c.Type != "ID", c.Use != nil &&
		*c.Use != "id", c.Events != nil,
		claimed != nonce, c.Authorized != nil && *c.Authorized != clientID, !slices.Contains(c.Audience, clientID),
		len(c.Audience) > 1 && c.Authorized == nil, !slices.Contains(t.provider.People, clientID):
		return who, signedIn, errIDToken
	}

	// Whose token it is follows from the audience: not all providers name the client in another
	// claim, and some name it in several.
	c.Authorized, c.ClientID, c.OktaClient, c.EntraV1 = &clientID, nil, nil, nil
	if err := t.identifyCaller(); err != nil {
		return who, signedIn, err
	}

	if c.AuthTime != nil {
		signedIn = timeOf(c.AuthTime)
	}

	return t.caller, signedIn, nil
}
