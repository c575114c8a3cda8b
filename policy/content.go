package policy

import (
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy/condition"
	"pgfsm/policy/origin"
	"pgfsm/policy/redact"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// ContentFormat identifies the format of [Content]. A trace whose bundle has another format is
// refused.
const ContentFormat = "pgfsm.bundle/v1"

// Content is the operator's whole configuration of runs, without secrets. A trace contains it, so
// that its run can be judged again years later. Every list has the operator's order. Files are
// included, not named.
type Content struct {
	Format    string         `json:"format"`
	Env       string         `json:"env"`
	Servers   []Server       `json:"servers"`
	Allowlist []Allowance    `json:"allowlist"`
	Pins      []Pin          `json:"pins,omitempty"`
	Grants    []Grant        `json:"grants,omitempty"`
	Input     Input          `json:"input"`
	Planner   Planner        `json:"planner"`
	Risk      *risk.Content  `json:"risk,omitzero"`
	Policy    *rules.Content `json:"policy,omitzero"`
	Labels    *origin.Labels `json:"labels,omitzero"`
	Roles     []Role         `json:"roles,omitempty"`
	Identity  *IdentityRules `json:"identity,omitzero"`
	// The operator's schemas, which replace the inputSchema of servers.
	Schemas []ToolSchema `json:"schemas,omitempty"`
	Outputs []ToolSchema `json:"outputs"` // the types of structured content
	// What is removed from results before the machine sees them.
	Redact  []redact.Rule `json:"redact,omitempty"`
	Summary string        `json:"summary"`
	Limits  Limits        `json:"limits"`
}

// Server describes the connection to an upstream. The values of headers and environment variables
// are secrets and are left out.
type Server struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"` // "stdio", "sse", "http", or "client" for a coding agent
	URL     string   `json:"url"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Headers []string `json:"headers"` // names
	Env     []string `json:"env"`     // names

	// Which clients share one: "session" or "one"; empty: the clients of an identity.
	Sessions string `json:"sessions,omitzero"`

	ClientCredentials *ClientCredentials `json:"client_credentials,omitzero"`
	Person            *PersonCredentials `json:"person,omitzero"`

	// The limit for connecting and for listing the tools.
	ConnectTimeout int64 `json:"connect_timeout_ms,omitzero"`
	// The limit for a call, from sending it or from its last progress.
	Timeout      int64 `json:"timeout_ms"`
	TimeoutTotal int64 `json:"timeout_total_ms,omitzero"` // the limit for a whole call
}

// ClientCredentials say how pgfsm gets access tokens for a server (RFC 6749, section 4.4). The
// client's secret and private key are left out; Alg, Issuer and KeyID are of the assertions that
// the key signs (RFC 7523).
type ClientCredentials struct {
	Alg      string   `json:"alg,omitzero"`
	Audience string   `json:"audience,omitzero"`
	ClientID string   `json:"client_id"`
	Issuer   string   `json:"issuer,omitzero"`
	KeyID    string   `json:"key_id,omitzero"`
	Resource string   `json:"resource,omitzero"` // RFC 8707
	Scopes   []string `json:"scopes,omitempty"`
	TokenURL string   `json:"token_url"`
}

// PersonCredentials say how each person's own credentials are sent to a server.
type PersonCredentials struct {
	OAuth  *PersonOAuth  `json:"oauth,omitzero"`
	Secret *PersonSecret `json:"secret,omitzero"`
}

// PersonOAuth says at which authorization server people connect, and as which client. The client's secret and private
// key are left out.
type PersonOAuth struct {
	Account   string         `json:"account,omitzero"`
	Alg       string         `json:"alg,omitzero"`
	ClientID  string         `json:"client_id"`
	Endpoints OAuthEndpoints `json:"endpoints,omitzero"`
	Issuer    string         `json:"issuer"`
	KeyID     string         `json:"key_id,omitzero"`
	Resource  string         `json:"resource,omitzero"` // RFC 8707
	Scopes    []string       `json:"scopes,omitempty"`
}

// OAuthEndpoints are the endpoints of an authorization server without metadata.
type OAuthEndpoints struct {
	Authorization string `json:"authorization"`
	Revocation    string `json:"revocation,omitzero"`
	Token         string `json:"token"`
}

// PersonSecret says in which header a pasted token is sent, and after which text.
type PersonSecret struct {
	Header string `json:"header"`
	Prefix string `json:"prefix"`
}

// Allowance lists the tools of one server that may be called at all.
type Allowance struct {
	Group  string   `json:"group,omitempty"` // the actor's group; empty: everybody
	Server string   `json:"server"`
	Tools  []string `json:"tools"`
}

// Role lists the actors of a role, for the conditions of policies and for approvers. An actor after
// [GroupPrefix] is a group.
type Role struct {
	Actors []string `json:"actors"`
	Role   string   `json:"role"`
}

// Pin binds an allowlisted tool to one definition: if the server sends another definition, the tool
// cannot be called.
type Pin struct {
	// The digest of the whole tool object as sent, without _meta.
	Definition canonical.Digest `json:"definition"`
	Server     string           `json:"server"`
	Tool       string           `json:"tool"`
}

// PinOf returns the pin of a tool; empty if it has none.
func PinOf(pins []Pin, server, tool string) canonical.Digest {
	for _, p := range pins {
		if p.Server == server && p.Tool == tool {
			return p.Definition
		}
	}
	return ""
}

// Planner configures how a request becomes a plan.
type Planner struct {
	Mode   string  `json:"mode"` // "auto", "router" or "llm"
	Routes []Route `json:"routes"`
	LLM    *LLM    `json:"llm,omitzero"`
}

// LLM configures the planner's model. Its key is a secret and is left out.
type LLM struct {
	BaseURL   string `json:"base_url"`
	Model     string `json:"model"`
	Timeout   int64  `json:"timeout_ms"`
	MaxTokens int    `json:"max_tokens"`
	Prompt    string `json:"prompt"` // the version of the prompts
}

// PromptVersion is the version of the planner's prompts; empty if there is no model.
func (p *Planner) PromptVersion() string {
	if p.LLM == nil || p.Mode == PlannerRouter {
		return ""
	}
	return p.LLM.Prompt
}

// Route turns a request that matches Pattern (RE2) into a call. ${1}, ${name} in a string value of
// Args stand for the pattern's groups.
type Route struct {
	ID      string         `json:"id"`
	Pattern string         `json:"pattern"`
	Server  string         `json:"server"`
	Tool    string         `json:"tool"`
	Args    jsontext.Value `json:"args"`
}

// ToolSchema is a JSON Schema that the operator wrote for a tool.
type ToolSchema struct {
	Server string         `json:"server"`
	Tool   string         `json:"tool"`
	Schema jsontext.Value `json:"schema"`
}

// Summary modes.
const (
	SummaryAsked  = "asked"  // when the request contains "summarize" or "summarise", in any case
	SummaryAlways = "always" // for every typed result
	SummaryNever  = "never"
)

// Planner modes.
const (
	PlannerAuto   = "auto"   // the operator's routes, and the model where none matches
	PlannerRouter = "router" // only the operator's routes
	PlannerLLM    = "llm"    // the model for every request
)

// Limits bound what a run may cost. None may be zero: zero never means unlimited.
type Limits struct {
	PlanBytes      int   `json:"plan_bytes"`      // the longest planner output
	ArgumentsBytes int   `json:"arguments_bytes"` // the longest arguments of a call that is its own plan
	JSONDepth      int   `json:"json_depth"`
	ResultBytes    int   `json:"result_bytes"`
	RunTimeout     int64 `json:"run_timeout_ms"`
}

// Defaults and bounds of [Limits] and [Input]. A setting outside its bounds is a configuration
// error.
const (
	DefaultPlanBytes      = 64 << 10
	DefaultArgumentsBytes = MaxArgumentsBytes
	DefaultJSONDepth      = 64
	DefaultResultBytes    = 16 << 20
	DefaultRunTimeout     = int64(120_000) // 2 minutes
	DefaultInputBytes     = 16 << 10

	DefaultConnectTimeout = int64(10_000)  // 10 seconds
	DefaultTimeout        = int64(60_000)  // 1 minute
	DefaultTimeoutTotal   = int64(600_000) // 10 minutes

	MaxPlanBytes      = 1 << 20
	MaxArgumentsBytes = condition.MaxArgs
	MaxJSONDepth      = 256
	MaxResultBytes    = 64 << 20
	MaxRunTimeout     = int64(3_600_000) // 1 hour
	MaxInputBytes     = 1 << 20
	DefaultLLMTimeout = int64(60_000) // 1 minute
	DefaultMaxTokens  = 512
	MaxTokens         = 1 << 17
	MaxServers        = 64
	MaxRoutes         = 256
)

// DefaultLimits returns the limits of a configuration that sets none.
func DefaultLimits() Limits {
	return Limits{
		PlanBytes:      DefaultPlanBytes,
		ArgumentsBytes: DefaultArgumentsBytes,
		JSONDepth:      DefaultJSONDepth,
		ResultBytes:    DefaultResultBytes,
		RunTimeout:     DefaultRunTimeout,
	}
}

// IdentityRules hold the settings of identity providers that decisions about calls depend on.
type IdentityRules struct {
	Claims []string   `json:"claims,omitempty"` // sorted names of claims, for conditions
	Same   [][]string `json:"same,omitempty"`   // names of one person each
}
