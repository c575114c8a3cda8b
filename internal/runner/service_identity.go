package runner

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"pgfsm/internal/config"
	"pgfsm/internal/identity"
	"pgfsm/internal/identity/login"
	"pgfsm/internal/visible"
	"pgfsm/internal/web"
	"pgfsm/mcp/gateway"
	"pgfsm/mcp/gateway/front"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
)

// Identity holds the identity providers whose tokens a service accepts besides the ledger's.
type Identity struct {
	Providers *identity.Providers
	Issuers   []string
	Scopes    []string // scopes that every agent's token must have
	Speakers  []string // agents that may ask about calls for any subject of their own issuer
	May       config.May
	SignIn    []SignInClient // providers of the console's sign-in
}

// rolesOf returns the ledger's roles of a person.
func (i *Identity) rolesOf(id *policy.Identity, name string) (roles []string) {
	for _, grant := range []struct {
		role string
		who  []string
	}{{ledger.RoleApprover, i.May.Approve}, {ledger.RoleAuditor, i.May.Audit}, {ledger.RoleAdmin, i.May.Administer}} {
		if isListed(grant.who, id, name) {
			roles = append(roles, grant.role)
		}
	}
	return roles
}

// isListed reports whether a list of actors and groups has an actor.
func isListed(list []string, id *policy.Identity, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		group, isGroup := strings.CutPrefix(entry, policy.GroupPrefix)
		return isGroup && id.InGroup(group) || entry == name
	})
}

// speaks reports whether an agent may ask about calls for every subject of its own issuer.
func (i *Identity) speaks(id *policy.Identity, name string) bool {
	return i != nil && id != nil && id.Kind == policy.ActorAgent && isListed(i.Speakers, id, name)
}

// Person returns the caller that a token for the admin address identifies. For a ledger token, the
// error is [web.ErrNoCredentials].
func (i *Identity) Person(ctx context.Context, resource, token string) (ledger.Caller, error) {
	r := &http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}}
	c, err := i.Providers.People(resource, i.rolesOf).Authenticate(r.WithContext(ctx))
	return api.CallerOf(c), err
}

// either verifies credentials by the first authenticator that knows them.
type either []web.Authenticator

func (e either) Authenticate(r *http.Request) (web.Caller, error) {
	return e.authenticateBy(web.Authenticator.Authenticate, r)
}

func (e either) AuthenticateCall(r *http.Request) (web.Caller, error) {
	return e.authenticateBy(web.AuthenticateCall, r)
}

func (e either) authenticateBy(verify func(web.Authenticator, *http.Request) (web.Caller, error),
	r *http.Request) (web.Caller, error) {
	for _, authenticator := range e {
		if c, err := verify(authenticator, r); !errors.Is(err, web.ErrNoCredentials) {
			return c, err
		}
	}
	return web.Caller{}, web.ErrNoCredentials
}

// agentsURL returns the scheme and host at which agents reach the service over HTTP.
func (s *Service) agentsURL() string { return cmp.Or(s.options.PublicURL, web.Origin(s.options.MCP)) }

// setAgentAuthenticator verifies the clients of the gateway.
func (s *Service) setAgentAuthenticator(o *gateway.Config, i *Identity) {
	var authenticators, askers either
	if i != nil && s.options.MCP != nil {
		url := s.agentsURL()
		names := make([]string, len(o.Servers))
		for n, server := range o.Servers {
			names[n] = server.Name
		}
		agents := i.Providers.Agents(front.Resources(url, names), i.Scopes)
		if l := s.runner.options.Ledger; l != nil {
			agents = api.Unblocked{Authenticator: agents, Ledger: l}
		}
		authenticators, askers = append(authenticators, agents), append(askers, agents)
		o.Front.Metadata = &front.Metadata{PublicURL: url, Issuers: i.Issuers, Scopes: i.Scopes}
	}
	if l := s.runner.options.Ledger; l != nil {
		authenticators = append(authenticators, api.Tokens{Ledger: l, Needs: ledger.ActCall})
		o.Front.Askers = logged{append(askers, api.Tokens{Ledger: l, Needs: ledger.ActTell}), s}
	}
	if len(authenticators) > 0 {
		o.Front.Clients = logged{authenticators, s}
	}
}

// peopleAuthenticator returns the authenticator for the admin address.
func (s *Service) peopleAuthenticator(url string) web.Authenticator {
	i := s.runner.Configured().Identity
	if i == nil {
		return nil
	}
	return either{i.Providers.People(cmp.Or(url, web.Origin(s.options.Admin)), s.currentRoles),
		api.Tokens{Ledger: s.runner.options.Ledger}}
}

// currentRoles returns a person's ledger roles by the current identity.may.
func (s *Service) currentRoles(id *policy.Identity, name string) []string {
	return s.runner.Configured().Identity.rolesOf(id, name)
}

// logged logs why credentials are refused or cannot be verified, because the answers to clients
// have no reason.
type logged struct {
	web.Authenticator
	s *Service
}

func (l logged) Authenticate(r *http.Request) (web.Caller, error) {
	c, err := l.Authenticator.Authenticate(r)
	l.logRefusal(err)
	return c, err
}

func (l logged) AuthenticateCall(r *http.Request) (web.Caller, error) {
	c, err := web.AuthenticateCall(l.Authenticator, r)
	l.logRefusal(err)
	return c, err
}

func (l logged) logRefusal(err error) {
	switch {
	// The log has an entry about scopes.
	case err == nil, errors.Is(err, web.ErrNoCredentials), errors.As(err, new(*web.ScopeError)):
	case errors.Is(err, web.ErrUnavailable):
		l.s.lookup.Do(func() { l.s.runner.log.Warn("a token cannot be verified", "error", visible.Error(err)) })
	default:
		l.s.refused.Do(func() {
			l.s.runner.log.Info("a token was refused at the gateway", "reason",
				visible.Error(err))
		})
	}
}

// refusedScope records that a client's token lacks scopes.
func (s *Service) refusedScope(ctx context.Context, endpoint string, lacking *web.ScopeError) {
	err := s.runner.options.Ledger.RecordRefusedAccess(ctx, lacking.Caller.Name, endpoint, strings.Join(lacking.Missing, " "))
	if err != nil {
		s.lookup.Do(func() {
			s.runner.log.WarnContext(ctx, "a refused request is not recorded", "error", visible.Error(err))
		})
	}
}

// A SignInClient is a client of an identity provider with which people sign in at the console.
type SignInClient struct {
	login.Client
	Label string // the provider's name for people
}

// A consoleProvider gives people who sign in at the console their current roles. It implements
// [api.Provider].
type consoleProvider struct {
	SignInClient
	service *Service
}

// IssuerURL implements [api.Provider].
func (p *consoleProvider) IssuerURL() string { return p.Issuer }

// Name implements [api.Provider].
func (p *consoleProvider) Name() string { return p.Label }

// Roles implements [api.Provider].
func (p *consoleProvider) Roles(id *policy.Identity, name string) []string {
	return p.service.currentRoles(id, name)
}

// SignIn implements [api.Provider].
func (p *consoleProvider) SignIn(ctx context.Context, attempt *login.SignIn, q url.Values) (caller ledger.Caller,
	authenticated time.Time, err error) {
	raw, err := p.Client.SignIn(ctx, attempt, q)
	if err != nil {
		return caller, authenticated, err
	}
	signedIn, authenticated, err := p.Providers.IDToken(ctx, p.Issuer, p.ID, raw, attempt.Nonce())
	signedIn.Roles = p.Roles(signedIn.Identity, signedIn.Name)
	return api.CallerOf(signedIn), authenticated, err
}
