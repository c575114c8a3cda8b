package config

import (
	"regexp"
	"slices"
	"strings"

	"pgfsm/policy"
)

// Bounds and defaults of identity providers. Times are in milliseconds.
const (
	MaxIssuers        = 8
	MaxIssuerBytes    = 512 // with #SUBJECT still a name that conditions can use
	MaxIdentityNames  = 64  // of one list below identity, but for may and same
	MaxScopeBytes     = 256 // of one scope
	MaxPointerBytes   = 256
	MaxClaims         = 32
	MaxIssuerName     = 64
	DefaultJWKSMaxAge = 60 * 60_000
	MinJWKSMaxAge     = 10 * 60_000
	MaxJWKSMaxAge     = 7 * 24 * 60 * 60_000
)

// Identity has the settings of identity providers.
type Identity struct {
	Required bool     // nobody is anonymous
	Scopes   []string // that every agent's token must have
	Issuers  []Issuer
	May      May
}

// Issuer is an identity provider.
type Issuer struct {
	URL        string
	Name       string // for people who sign in; empty: the URL
	Audiences  Audiences
	TokenTypes []string    // values of typ
	People     []string    // client ids whose tokens are people; all others are agents
	Subject    string      // JSON Pointer into a token
	Groups     string      // JSON Pointer into a token; empty: its groups are unknown
	Display    string      // JSON Pointer into a token; empty: its callers have no display names
	Claims     []ClaimPath // in the order of the file
	Login      Login
	MaxAge     int64 // how long the provider's keys may be used after they were fetched
}

// Audiences are accepted beside the URLs of endpoints.
type Audiences struct{ MCP, Admin []string }

// ClaimPath is a JSON Pointer into a token, under the name that conditions use.
type ClaimPath struct{ Name, Path string }

// Login has the clients with which people sign in.
type Login struct {
	CLI           string // client id of pgfsm login
	Console       string // client id of the console
	Scopes        []string
	ConsoleSecret string // as written, until [Loaded.ResolveIdentity] gives it; empty for a public client
}

// May lists who has a role of the ledger: names of actors, and groups after [policy.GroupPrefix].
type May struct{ Approve, Audit, Administer []string }

var (
	issuerURL    = &shape{form: text, max: MaxIssuerBytes, match: urlPattern, what: "an http or https URL", check: checkIssuer}
	scopePattern = regexp.MustCompile(`^[!#-\[\]-~]+$`)
	claimPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	jsonPointer  = &shape{form: text, max: MaxPointerBytes, match: regexp.MustCompile(`^(/([^~/]|~[01])*)+$`),
		what: "a JSON Pointer, such as /groups or /realm_access/roles"}
	scope       = &shape{form: text, max: MaxScopeBytes, match: scopePattern, what: "a scope (RFC 6749 section 3.3)"}
	clientID    = &shape{form: text, max: MaxNameOfClient, check: checkShown}
	actors      = &shape{form: list, max: MaxActors, unique: ".", what: "actor", each: &shape{form: text, max: MaxActorBytes, check: checkShown}}
	claimName   = &shape{form: text, match: claimPattern, max: MaxNameBytes, what: "a name: letters, digits and _"}
	identityIDs = func(what string, each *shape) *shape {
		return &shape{form: list, max: MaxIdentityNames, unique: ".", what: what, each: each}
	}
)

// MaxNameOfClient bounds a client id or an audience in bytes.
const MaxNameOfClient = 256

var issuerShape = &shape{form: object, cross: crossIssuer, keys: []key{
	{name: "issuer", shape: issuerURL, required: true, example: "https://login.example.com/realms/corp",
		doc: "The provider's issuer URL, exactly as in its tokens. pgfsm finds its keys by OpenID Connect Discovery."},
	{name: "name", shape: &shape{form: text, max: MaxIssuerName, check: checkShown}, example: "Example Corp",
		doc: "The provider's name for people: the console shows it where people sign in. Without this key, it shows the issuer's URL."},
	{name: "audiences", shape: &shape{form: object, keys: []key{
		{name: "mcp", shape: identityIDs("audience", clientID), example: "[mcp-gateway]", doc: "Audiences of tokens for the gateway, beside the URLs of its endpoints."},
		{name: "admin", shape: identityIDs("audience", clientID), example: "[pgfsm-admin]", doc: "Audiences of tokens for the admin address, beside `admin_url`."},
	}}, doc: "Accepted audiences, for providers that cannot issue tokens for a URL (RFC 8707)."},
	{name: "token_types", shape: &shape{form: list, min: 1, max: MaxIdentityNames, unique: ".", what: "type", each: clientID}, initial: "[at+jwt, JWT]",
		doc: "The values of `typ` in the headers of the provider's access tokens. Letter case does not matter."},
	{name: "people", shape: identityIDs("client", clientID), example: "[pgfsm-cli, pgfsm-console]",
		doc: "The client ids whose tokens are those of people. The tokens of all other clients are those of agents."},
	{name: "subject", shape: jsonPointer, initial: "/sub", example: "/oid",
		doc: "The place of the subject in a token: a string that names the same agent or person in all tokens of the provider. `/oid` for Entra ID, whose `sub` differs between applications."},
	{name: "groups", shape: jsonPointer, example: "/realm_access/roles",
		doc: "The place of the groups in a token: a list of strings. Without this key, the groups of its callers are unknown."},
	{name: "display", shape: jsonPointer, example: "/email",
		doc: "The place of the display name in a token: a string, such as the e-mail address. pgfsm records it with requests and votes, and shows it beside the subject. It never decides anything."},
	{name: "claims", shape: &shape{form: table, max: MaxClaims, what: "claim", each: jsonPointer, name: claimName},
		example: "{department: /department}", doc: "Further claims, by the name that they have in conditions after `actor.claims.`: each the place of a string in a token."},
	{name: "jwks_max_age", shape: &shape{form: duration, min: MinJWKSMaxAge, max: MaxJWKSMaxAge}, initial: writeDuration(DefaultJWKSMaxAge),
		doc: "How long pgfsm accepts tokens while the provider cannot be reached. pgfsm fetches the provider's keys every five minutes."},
	{name: "login", shape: &shape{form: object, keys: []key{
		{name: "cli", shape: clientID, example: "pgfsm-cli", doc: "The client id of `pgfsm login`: a public client."},
		{name: "console", shape: clientID, example: "pgfsm-console", doc: "The client id of the console."},
		{name: "console_secret", shape: &shape{form: text, secret: true, what: "a secret", check: checkReferences}, example: `"${env:CONSOLE}"`,
			doc: "The client secret of the console; without it, the console is a public client. May contain references, and is a secret. Only `serve` and `approvals serve` read it."},
		{name: "scopes", shape: &shape{form: list, min: 1, max: MaxIdentityNames, unique: ".", what: "scope", each: scope}, initial: "[openid]",
			doc: "The scopes that both clients ask for. Some providers choose the audience of a token by a scope."},
	}}, doc: "The clients with which people sign in. Each must be one of `people`."},
}}

var identityShape = &shape{form: object, keys: []key{
	{name: "required", shape: &shape{form: boolean}, initial: "false", doc: "Whether the gateway refuses requests without a token, also from this machine."},
	{name: "scopes", shape: identityIDs("scope", scope),
		example: "[mcp:tools]", doc: "The scopes that the token of every agent of a provider must have. Clients learn them from the gateway."},
	{name: "issuers", shape: &shape{form: list, max: MaxIssuers, unique: "issuer", what: "issuer", each: issuerShape},
		doc: "The identity providers whose tokens pgfsm accepts.", example: `[{issuer: "https://login.example.com", people: [pgfsm-cli]}]`},
	{name: "may", shape: &shape{form: object, keys: []key{
		{name: "approve", shape: actors, example: `["group:owners"]`, doc: "Who may approve and deny held calls."},
		{name: "audit", shape: actors, example: `["group:audit"]`, doc: "Who may see the results of calls and the entries of the log."},
		{name: "administer", shape: actors, example: `["group:platform"]`,
			doc: "Who may create and revoke tokens, block identities and prune the ledger. Who may administer cannot approve or deny calls."},
	}}, doc: "What people of the identity providers may do: lists of actors (`ISSUER#SUBJECT`) and of groups (`group:NAME`)."},
	{name: "same", shape: &shape{form: list, max: MaxActors, what: "person",
		each: &shape{form: list, min: 2, max: MaxIdentityNames, unique: ".", what: "name", each: &shape{form: text, max: MaxActorBytes, check: checkShown}}},
		example: `[[bob, "https://login.example.com#8f1c"]]`,
		doc:     "Names of one person each: of a token, of a user of the operating system, or of a provider's subject. Nobody can approve their own call under another of these names."},
}}

// checkIssuer checks the form of an issuer (OpenID Connect Discovery 1.0 section 2).
func checkIssuer(s string) fault {
	f := checkHookURL(s)
	if f == (fault{}) && strings.Contains(s, "?") {
		return fault{"has a query", "write the issuer exactly as in the provider's tokens"}
	}
	return f
}

// crossIssuer requires that people sign in with clients of people, and that no audience is one of both addresses.
func crossIssuer(j *judge, n *node, path string) {
	for _, item := range n.get("audiences").list("admin") {
		if slices.Contains(n.get("audiences").texts("mcp"), item.text) {
			j.src.fault(item.at, join(path, "audiences.admin"), "use another audience for the admin address",
				"%s is an audience of both addresses, so that an agent could use a person's token", quote(item.text))
		}
	}
	login := n.get("login")
	for _, name := range []string{"cli", "console"} {
		if m := login.member(name); m != nil && m.value.text != "" && !slices.Contains(n.texts("people"), m.value.text) {
			j.src.fault(m.value.at, join(path, "login."+name), "add "+m.value.text+" to people",
				"%s is not one of people, so that its tokens would be those of an agent", quote(m.value.text))
		}
	}
	if m := login.member("console_secret"); m != nil && login.get("console") == nil {
		j.src.fault(m.at, join(path, "login.console_secret"), "add console: with the client id", "%s has a secret for the console and no client id", join(path, "login"))
	}
}

// identity reads the settings of identity providers.
func (l *loader) identity() {
	n, out, c := l.file.root.get("identity"), &l.out.Identity, &l.out.Content
	out.Required, out.Scopes = n.get("required").text == "true", n.texts("scopes")
	may := n.get("may")
	out.May = May{Approve: may.texts("approve"), Audit: may.texts("audit"), Administer: may.texts("administer")}
	rules := &policy.IdentityRules{}
	for _, same := range n.list("same") {
		var names []string
		for _, name := range same.items {
			names = append(names, name.text)
		}
		rules.Same = append(rules.Same, names)
	}
	for _, from := range n.list("issuers") {
		login, to := from.get("login"), Issuer{
			URL: from.str("issuer"), Name: from.str("name"), TokenTypes: from.texts("token_types"), People: from.texts("people"), Groups: from.str("groups"),
			Subject:   from.str("subject"),
			Display:   from.str("display"),
			MaxAge:    from.millis("jwks_max_age"),
			Audiences: Audiences{MCP: from.get("audiences").texts("mcp"), Admin: from.get("audiences").texts("admin")},
		}
		to.Login = Login{CLI: login.str("cli"), Console: login.str("console"), ConsoleSecret: login.str("console_secret"), Scopes: login.texts("scopes")}
		l.literal(l.file.src, login.get("console_secret"), "console_secret", "${env:NAME}")
		for _, item := range from.get("audiences").list("mcp") {
			if item.text == l.out.Serve.AdminURL {
				l.file.src.fault(item.at, "identity.issuers.audiences.mcp", "use another audience for the gateway",
					"%s is the audience of the admin address, so that an agent could use a person's token", quote(item.text))
			}
		}
		for _, m := range from.fields("claims") {
			to.Claims = append(to.Claims, ClaimPath{m.key, m.value.text})
			if !slices.Contains(rules.Claims, m.key) {
				rules.Claims = append(rules.Claims, m.key)
			}
		}
		out.Issuers = append(out.Issuers, to)
	}
	slices.Sort(rules.Claims)
	if len(rules.Claims) > 0 || len(rules.Same) > 0 {
		c.Identity = rules
	}
}

// ResolveIdentity returns the identity providers with the references in their secrets resolved. The errors are those of [Loaded.Resolve].
func (l *Loaded) ResolveIdentity(getenv func(string) (string, bool), readFile Open) ([]Issuer, error) {
	r := &resolver{getenv: getenv, readFile: readFile, secrets: make(map[string]bool)}
	r.enter(l.file)
	out := slices.Clone(l.Identity.Issuers)
	for i, n := range l.file.root.get("identity").list("issuers") {
		if at := n.get("login").get("console_secret"); at != nil {
			out[i].Login.ConsoleSecret = r.value(at, "identity.issuers["+number(int64(i))+"].login.console_secret")
		}
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return out, nil
}
