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
	"pgfsm/traces/ledger"
)

// Identity returns the identity providers of a configuration; nil if there are none. It reads no
// secrets and connects to none of them.
func Identity(loaded *config.Loaded, log *slog.Logger) *runner.Identity {
	if len(loaded.Identity.Issuers) == 0 {
		return nil
	}

	providers := &runner.Identity{
		Scopes:   loaded.Identity.Scopes,
		Speakers: loaded.Identity.Speakers,
		May:      loaded.Identity.May,
	}
	options := identity.Options{Log: log}

	for _, entry := range loaded.Identity.Issuers {
		issuer := identity.Issuer{
			URL:        entry.URL,
			Audiences:  identity.Audiences(entry.Audiences),
			TokenTypes: entry.TokenTypes,
			People:     entry.People,
			Groups:     entry.Groups,
			Subject:    entry.Subject,
			Display:    entry.Display,
			MaxAge:     time.Duration(entry.MaxAge) * time.Millisecond,
		}
		for _, c := range entry.Claims {
			issuer.Claims = append(issuer.Claims, identity.ClaimPath{Name: c.Name, Path: c.Value})
		}
		options.Issuers, providers.Issuers = append(options.Issuers, issuer), append(providers.Issuers, entry.URL)
	}

	providers.Providers = identity.New(options)
	return providers
}

// ServedIdentity returns the same as [Identity], with the client secrets that signing in at a
// service's console needs.
func ServedIdentity(o Options, loaded *config.Loaded, log *slog.Logger) (*runner.Identity, error) {
	providers := Identity(loaded, log)
	if providers == nil {
		return nil, nil
	}
	issuers, err := loaded.ResolveIdentity(o.Getenv, safefile.ReadTrusted)
	if err != nil {
		return nil, err
	}
	for _, issuer := range issuers {
		if id := issuer.Login.Console; id != "" {
			providers.SignIn = append(providers.SignIn, runner.SignInClient{Client: loginClient(providers, &issuer, id,
				issuer.Login.ConsoleSecret), Label: cmp.Or(issuer.Name, issuer.URL)})
		}
	}
	return providers, nil
}

// Login returns the client with which people sign in at a terminal. The issuer may be empty if only
// one has such a client.
func Login(loaded *config.Loaded, issuer string) (*login.Client, error) {
	var clients []config.Issuer
	for _, i := range loaded.Identity.Issuers {
		if i.Login.CLI != "" && (issuer == "" || i.URL == issuer) {
			clients = append(clients, i)
		}
	}
	switch {
	case len(clients) == 0 && issuer != "":
		return nil, fmt.Errorf("identity.issuers has no issuer %q with login.cli", issuer)
	case len(clients) == 0:
		return nil, fmt.Errorf("the configuration has no client for pgfsm login: write identity.issuers with login.cli")
	case len(clients) > 1:
		return nil, fmt.Errorf("several issuers have login.cli: name one with --issuer, such as %s", clients[0].URL)
	}
	c := loginClient(Identity(loaded, nil), &clients[0], clients[0].Login.CLI, "")
	if len(clients[0].Audiences.Admin) == 0 { // a provider without RFC 8707 may refuse the parameter
		c.Resource = loaded.Serve.AdminOrigin()
	}
	return &c, nil
}

func loginClient(providers *runner.Identity, issuer *config.Issuer, id, secret string) login.Client {
	return login.Client{
		ID:        id,
		Secret:    secret,
		Issuer:    issuer.URL,
		Providers: providers.Providers,
		Scopes:    issuer.Login.Scopes,
	}
}

// LedgerSettings returns what the ledger records of a configuration.
func LedgerSettings(loaded *config.Loaded) ledger.Settings {
	settings := ledger.Settings{ClaimWithin: loaded.Serve.ClaimWithin, Retention: loaded.Retention}
	for i := range loaded.Identity.Issuers {
		settings.Issuers = append(settings.Issuers, loaded.Identity.Issuers[i].URL)
	}
	if len(settings.Issuers) > 0 {
		settings.May = new(ledger.May(loaded.Identity.May))
		settings.Speakers = loaded.Identity.Speakers
	}
	return settings
}
