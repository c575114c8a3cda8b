package config

import (
	"slices"

	"pgfsm/policy"
)

// Identity has the settings of identity providers.
type Identity struct {
	Required bool     // every caller must have a token
	Scopes   []string // scopes that every agent's token must have
	Speakers []string // agents that may ask about calls for any subject of their own issuer
	Issuers  []Issuer
	May      May
}

// Issuer is an identity provider.
type Issuer struct {
	URL        string `json:"issuer"`
	Name       string // shown to people who sign in; empty: the URL
	Audiences  Audiences
	TokenTypes []string      // values of typ
	People     []string      // client ids whose tokens are people; all others are agents
	Subject    string        // JSON Pointer into a token
	Groups     string        // JSON Pointer into a token; empty: its groups are unknown
	Display    string        // JSON Pointer into a token; empty: its callers have no display names
	Claims     Table[string] // JSON Pointers into a token, under the names that conditions use
	Login      Login
	MaxAge     int64 `json:"jwks_max_age"` // maximum age of fetched provider keys, in milliseconds
}

// Audiences lists audiences that are accepted besides the URLs of endpoints.
type Audiences struct{ MCP, Admin []string }

// Login has the clients with which people sign in.
type Login struct {
	CLI     string // client id of pgfsm login
	Console string // client id of the console
	Scopes  []string
	// With references, until [Loaded.ResolveIdentity] resolves them; empty for a public client.
	ConsoleSecret string
}

// May lists who has a role of the ledger: names of actors, and groups after [policy.GroupPrefix].
type May struct{ Approve, Audit, Administer []string }

type identitySettings struct {
	Identity
	Same [][]string // each item lists the names of one person
}

// checkIssuer requires that people sign in with clients of people, and that no audience is accepted
// at both addresses.
func (c *configFile) checkIssuer(p path, issuer *Issuer) {
	for i, audience := range issuer.Audiences.Admin {
		if slices.Contains(issuer.Audiences.MCP, audience) {
			c.addFault(p.child("audiences", "admin").item(i), "use another audience for the admin address",
				"%s is an audience of both addresses, so that an agent could use a person's token", quote(audience))
		}
	}
	for i, audience := range issuer.Audiences.MCP {
		if audience == normalOrigin(c.Serve.AdminURL) {
			c.addFault(p.child("audiences", "mcp").item(i), "use another audience for the gateway",
				"%s is the audience of the admin address, so that an agent could use a person's token", quote(audience))
		}
	}
	for _, login := range []Pair{{"cli", issuer.Login.CLI}, {"console", issuer.Login.Console}} {
		if client := login.Value; client != "" && !slices.Contains(issuer.People, client) {
			c.addFault(p.child("login", login.Name), "add "+client+" to people",
				"%s is not one of people, so that its tokens would be those of an agent", quote(client))
		}
	}
}

// copyIdentity copies the settings of identity providers.
func (l *loader) copyIdentity() {
	l.out.Identity = l.Identity.Identity
	rules := &policy.IdentityRules{Same: l.Identity.Same}
	for _, issuer := range l.Identity.Issuers {
		rules.Claims = append(rules.Claims, issuer.Claims.names()...)
	}
	slices.Sort(rules.Claims)
	rules.Claims = slices.Compact(rules.Claims)
	if len(rules.Claims) > 0 || len(rules.Same) > 0 {
		l.out.Content.Identity = rules
	}
}
