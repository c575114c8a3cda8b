package setup

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"golang.org/x/oauth2"

	"pgfsm/config"
	"pgfsm/identity"
	"pgfsm/identity/login"
	"pgfsm/runner"
	"pgfsm/safefile"
)

// providerTimeout bounds a request to an identity provider.
const providerTimeout = 30 * time.Second

// Identity returns the identity providers of a configuration, with their secrets; nil if there are none. It connects to none.
func Identity(o Options, loaded *config.Loaded, log *slog.Logger) (*runner.Identity, error) {
	issuers, err := loaded.ResolveIdentity(o.Getenv, safefile.ReadTrusted)
	if err != nil || len(issuers) == 0 {
		return nil, err
	}
	to := &runner.Identity{Scopes: loaded.Identity.Scopes, May: runner.May(loaded.Identity.May)}
	options := identity.Options{Client: providerClient(), Log: log}
	for _, from := range issuers {
		issuer := identity.Issuer{
			URL: from.URL, Audiences: identity.Audiences(from.Audiences), TokenTypes: from.TokenTypes, People: from.People, Groups: from.Groups,
			MaxAge: time.Duration(from.MaxAge) * time.Millisecond,
		}
		for _, c := range from.Claims {
			issuer.Claims = append(issuer.Claims, identity.ClaimPath(c))
		}
		options.Issuers, to.Issuers = append(options.Issuers, issuer), append(to.Issuers, from.URL)
		if id := from.Login.Console; id != "" {
			to.SignIn = append(to.SignIn, &runner.SignIn{Client: loginClient(to, &from, id, from.Login.ConsoleSecret), Identity: to})
		}
	}
	if to.Providers, err = identity.New(options); err != nil {
		return nil, fmt.Errorf("identity.issuers: %w", err)
	}
	return to, nil
}

// Login returns the client with which people sign in at a terminal. The issuer may be empty if only one has such a client.
func Login(o Options, loaded *config.Loaded, issuer string) (*login.Client, error) {
	to, err := Identity(o, loaded, nil)
	if err != nil {
		return nil, err
	}
	var all []config.Issuer
	for _, i := range loaded.Identity.Issuers {
		if i.Login.CLI != "" && (issuer == "" || i.URL == issuer) {
			all = append(all, i)
		}
	}
	switch {
	case len(all) == 0 && issuer != "":
		return nil, fmt.Errorf("identity.issuers has no issuer %q with login.cli", issuer)
	case len(all) == 0:
		return nil, fmt.Errorf("the configuration has no client for pgfsm login: write identity.issuers with login.cli")
	case len(all) > 1:
		return nil, fmt.Errorf("several issuers have login.cli: name one with --issuer, such as %s", all[0].URL)
	}
	c := loginClient(to, &all[0], all[0].Login.CLI, "")
	if len(all[0].Audiences.Admin) == 0 { // a provider without RFC 8707 may refuse the parameter
		c.Resource = loaded.Serve.AdminOrigin()
	}
	return &c, nil
}

func loginClient(of *runner.Identity, from *config.Issuer, id, secret string) login.Client {
	issuer := from.URL
	return login.Client{ID: id, Secret: secret, Issuer: issuer, Scopes: slices.Clone(from.Login.Scopes), HTTP: providerClient(),
		Endpoints: func(ctx context.Context) (login.Endpoints, error) {
			at, err := of.Providers.Provider(ctx, issuer)
			return login.Endpoints{Endpoint: oauth2.Endpoint{
				AuthURL: at.Authorization, TokenURL: at.Token, DeviceAuthURL: at.DeviceAuthorization,
			}, NamesIss: at.NamesIssuer}, err
		},
	}
}

// providerClient follows no redirects: they could take a code or a secret to another host.
func providerClient() *http.Client {
	return &http.Client{Timeout: providerTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
