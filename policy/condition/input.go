package condition

import "pgfsm/policy/origin"

// An Input is everything that a condition may use: one call. Nothing is looked up while a condition
// is evaluated, so the same Input gives the same answer at any time and on any machine.
type Input struct {
	Server, Tool string
	Env          string // the environment in the operator's configuration
	Actor        Actor  // the caller's verified identity
	// One JSON object in canonical form (see package canonical), at most [MaxArgs] bytes.
	Args        []byte
	Annotations Annotations // the annotations that the tool declares
	Pinned      bool        // whether the tool's definition is pinned
	Now         string      // RFC 3339, as recorded for the run
	Risk        Risk        // the result of the risk rules
	Session     *Session    // the client's session; nil: none is known
	Origins     *Origins    // where the arguments come from; nil: no session is known
	History     []Answer    // the answers about earlier calls; a query without an answer is an error
}

// A Session says in which session of a client a call was requested, as the client says.
type Session struct {
	ID, Client string
	Calls      int  // how many calls of the session were permitted before
	Rewritten  bool // a call of the session ran with other arguments than the permitted ones
}

// Origins say where the arguments of a call come from, and what may be in its session.
type Origins struct {
	Leaves             []origin.Leaf
	Untrusted, Private bool // see [origin.Rules.Untrusted] and [origin.Rules.Private]
}

// An Actor is the verified caller. Using something of it that is unknown is an error.
type Actor struct {
	ID           string
	Roles        []string
	RolesUnknown bool      // Roles may lack some
	Kind         string    // agent or person; empty: unknown, and so are Client and OnBehalfOf
	Client       string    // empty if there is none
	OnBehalfOf   string    // likewise
	Groups       *[]string // nil: unknown
	Claims       []Claim   // a claim that is not here is unknown
}

// A Claim is a value that an identity provider gives, under the name that the configuration gives
// it.
type Claim struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Annotations are MCP's hints about a tool. A hint that is not given (nil) counts as MCP 2025-06-18
// says: not read-only, destructive, not idempotent, open world. They are the server's own words
// about itself.
type Annotations struct{ ReadOnly, Destructive, Idempotent, OpenWorld *bool }

// Risk is the result of the risk rules for this call.
type Risk struct {
	Score int
	Mode  string
	Rules []string // the ids of the rules that matched, in order
}

// hintOr returns h, or MCP's default if it is not given.
func hintOr(h *bool, otherwise bool) bool {
	if h == nil {
		return otherwise
	}
	return *h
}
