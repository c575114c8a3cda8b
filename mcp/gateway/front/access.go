package front

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"pgfsm/internal/web"
	"pgfsm/mcp/gateway/session"
	"pgfsm/policy"
)

// checkOrigin refuses repeated headers, foreign hosts, and requests from web pages of other
// origins.
func (f *settings) checkOrigin(r *http.Request) *refusal {
	err := f.guard.Check(r)
	switch {
	case errors.As(err, new(web.RepeatedHeader)):
		return newRefusal(http.StatusBadRequest, refusedHeader, err.Error())
	case errors.Is(err, web.ErrHost):
		return newRefusal(http.StatusForbidden, refusedHost,
			err.Error()+"; serve.hosts of the configuration adds a name")
	case err != nil:
		return newRefusal(http.StatusForbidden, refusedOrigin, err.Error())
	}

	for name, values := range r.Header { // in any order: either refusal will do
		if len(values) > 1 && strings.HasPrefix(name, "Mcp-") {
			return newRefusal(http.StatusBadRequest, refusedHeader, "a header of MCP came more than once")
		}
	}
	return nil
}

// authenticate returns the client of a request. Each request is authenticated; its credentials go
// nowhere else. Only a request without an Authorization header can be anonymous: invalid
// credentials never count as absent.
func (x *exchange) authenticate(r *http.Request) (session.Identity, *policy.Identity, *refusal) {
	return x.authenticateBy(web.Authenticator.Authenticate, r)
}

// confirmClient authenticates the client of a message that is no tools/call, if the exchange began
// with [web.AuthenticateCall]. Nothing else checks the credentials of such a message.
func (x *exchange) confirmClient(q *session.Request) *refusal {
	if !x.callsOnly || q.Request() && q.Method == methodCall {
		return nil
	}
	client, _, refused := x.authenticate(x.r)
	if refused == nil && client != x.from {
		return unauthorized("the token is not valid")
	}
	return refused
}

func (x *exchange) authenticateBy(verify func(web.Authenticator, *http.Request) (web.Caller, error),
	r *http.Request) (session.Identity, *policy.Identity, *refusal) {
	noClient := session.Identity{}
	client, err := web.Caller{}, web.ErrNoCredentials
	if x.settings.Clients != nil {
		client, err = verify(x.settings.Clients, r)
	}

	_, sent := r.Header["Authorization"]
	var later *web.RetryError
	var lacking *web.ScopeError

	switch {
	case errors.Is(err, web.ErrNoCredentials) && !sent && x.settings.Required:
		return noClient, nil, unauthorized("the request has no token: send Authorization: Bearer and a token")
	case errors.Is(err, web.ErrNoCredentials) && !sent:
		if !web.FromThisMachine(r) {
			return noClient, nil, unauthorized("requests without a token are accepted only from this machine without TLS: send Authorization: Bearer " +
				"and a token of pgfsm token create")
		}
		return session.Identity{Name: session.Anonymous}, nil, nil
	case errors.Is(err, web.ErrUnavailable):
		refused := newRefusal(http.StatusServiceUnavailable, refusedUnavailable, web.ErrUnavailable.Error())
		if errors.As(err, &later) {
			refused.retryAfter = later.Seconds()
		}
		return noClient, nil, refused
	case errors.As(err, &lacking):
		if x.front.hooks.RefusedScope != nil {
			x.front.hooks.RefusedScope(r.Context(), x.settings.endpointPath(r), lacking)
		}
		return noClient, nil, newRefusal(http.StatusForbidden, refusedScope,
			"the token lacks a scope that this endpoint needs")
	case err != nil || client.Name == "" || client.Name == session.Anonymous ||
		client.Token == "" && !policy.HasSubject(client.Name):
		return noClient, nil, unauthorized("the token is not valid")
	}

	identity := session.Identity{Name: client.Name, Token: client.Token}
	if i := client.Identity; i != nil {
		identity.Client, identity.OnBehalfOf = i.Client, i.OnBehalfOf
	}

	identity.Principal = policy.Principal(identity.Name, identity.OnBehalfOf, slices.Contains(client.Roles, session.RolePerson))
	return identity, client.Identity, nil
}

func unauthorized(message string) *refusal {
	return newRefusal(http.StatusUnauthorized, refusedToken, message)
}
