package config

// Identity has the settings of identity providers. What of them judges calls is in [policy.Content], too.
type Identity struct {
	Required bool     // nobody is anonymous
	Scopes   []string // that every agent's token must have
	Issuers  []Issuer
	May      May
	Same     [][]string // names of one person each
}

// Issuer is an identity provider.
type Issuer struct {
	URL        string
	Audiences  Audiences
	TokenTypes []string // values of typ, in lower case
	People     []string // client ids whose tokens are people; all others are agents
	Groups     string   // JSON Pointer into a token; empty: its groups are unknown
	Claims     []ClaimPath
	Login      Login
	MaxAge     int64 // how long the provider's keys may be used after they were fetched, in milliseconds
}

// Audiences are accepted beside the URLs of endpoints.
type Audiences struct{ MCP, Admin []string }

// ClaimPath is a JSON Pointer into a token, under the name that conditions use.
type ClaimPath struct{ Name, Path string }

// Login has the clients with which people sign in.
type Login struct {
	CLI           string // client id of pgfsm login
	Console       string // client id of the console
	ConsoleSecret string // as written, with references; empty for a public client
}

// May says who has the ledger's roles: each is an actor's name or a group after "group:".
type May struct{ Approve, Audit, Administer []string }
