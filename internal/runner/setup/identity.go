package setup

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"pgfsm/internal/config"
	"pgfsm/internal/identity"
	"pgfsm/internal/identity/login"
	"pgfsm/internal/runner"
	"pgfsm/internal/safefile"
)

// Identity returns the identity providers of a configuration; nil if there are none. It reads no
// secrets and connects to none of them.
func Identity(loaded *config.Loaded, log *slog.Logger) *runner.Identity {
	if len(loaded.Identity.Issuers) == 0 {
		return nil
	}

	to := &runner.Identity{Scopes: loaded.Identity.Scopes, May: loaded.Identity.May}
	options := identity.Options{Log: log}

	for _, from := range loaded.Identity.Issuers {
		issuer := identity.Issuer{
			URL:        from.URL,
			Audiences:  identity.Audiences(from.Audiences),
			TokenTypes: from.TokenTypes,
			People:     from.People,
			Groups:     from.Groups,
			Subject:    from.Subject,
			Display:    from.Display,
			MaxAge:     time.Duration(from.MaxAge) * time.Millisecond,
		}
		for _, c := range from.Claims {
			issuer.Claims = append(issuer.Claims, identity.ClaimPath{Name: c.Name, Path: c.Value})
		}
		options.Issuers, to.Issuers = append(options.Issuers, issuer), append(to.Issuers, from.URL)
	}

	to.Providers = identity.New(options)
	return to
}

// ServedIdentity returns the same as [Identity], with the client secrets that signing in at a
// service's console needs.
func ServedIdentity(o Options, loaded *config.Loaded, log *slog.Logger) (*runner.Identity, error) {
	to := Identity(loaded, log)
	if to == nil {
		return nil, nil
	}
	issuers, err := loaded.ResolveIdentity(o.Getenv, safefile.ReadTrusted)
	if err != nil {
		return nil, err
	}
	for _, from := range issuers {
		if id := from.Login.Console; id != "" {
			to.SignIn = append(to.SignIn, runner.SignInClient{Client: loginClient(to, &from, id,
				from.Login.ConsoleSecret), Label: cmp.Or(from.Name, from.URL)})
		}
	}
	return to, nil
}

// Login returns the client with which people sign in at a terminal. The issuer may be empty if only
// one has such a client.
func Login(loaded *config.Loaded, issuer string) (*login.Client, error) {
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
	c := loginClient(Identity(loaded, nil), &all[0], all[0].Login.CLI, "")
	if len(all[0].Audiences.Admin) == 0 { // a provider without RFC 8707 may refuse the parameter
		c.Resource = loaded.Serve.AdminOrigin()
	}
	return &c, nil
}

func loginClient(of *runner.Identity, from *config.Issuer, id, secret string) login.Client {
	return login.Client{
		ID:        id,
		Secret:    secret,
		Issuer:    from.URL,
		Providers: of.Providers,
		Scopes:    from.Login.Scopes,
	}
}
