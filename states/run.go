package states

import (
	"pgfsm/fsm"
	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// Kinds of request.
const (
	KindAsk        = policy.KindAsk
	KindCall       = policy.KindCall
	KindAgent      = policy.KindAgent
	KindHook       = policy.KindHook
	KindEvaluation = policy.KindEvaluation
)

// Kinds returns all kinds of request.
func Kinds() []string { return []string{KindAsk, KindCall, KindAgent, KindHook, KindEvaluation} }

// A Request starts a run. It is captured whole, apart from arguments that are refused for their
// size, and never changed.
type Request struct {
	// The connection whose credentials an agent's call uses; nil: it uses none of a person.
	Account *Account `json:"account,omitzero"`

	Actor string `json:"actor"` // the requester's verified name
	At    string `json:"at"`    // RFC 3339, UTC: the "now" that policies see
	// The claims of the actor's identity provider, as far as the bundle reads them.
	Identity *policy.Identity `json:"identity,omitzero"`
	Kind     string           `json:"kind"`
	// For a call: replaces the arguments, which the text lacks.
	Large *policy.LargeArguments `json:"large,omitzero"`
	// For an agent's call without a Session and a Task: the key of the session of MCP in which it was requested, see
	// [MCPSession], or of the one that its client named, see [NamedSession].
	MCPSession string `json:"mcp_session,omitzero"`
	// For an agent's call: the answers to the server's questions, a canonical JSON object.
	Round canonical.Text `json:"round,omitempty"`
	// The session of the client in which the call was requested, if a hook told it.
	Session *Session `json:"session,omitzero"`
	// The id of the task that the run belongs to, if grants are counted over one.
	Task  string         `json:"task,omitzero"`
	Text  canonical.Text `json:"text"`           // the question, or the plan's bytes
	Trace *TraceContext  `json:"trace,omitzero"` // for an agent's call, if pgfsm exports spans
}

// An Account is a connection of the person for whom a call is made. Its members are in canonical order.
type Account struct {
	Connection string   `json:"connection"` // its id
	Issuer     string   `json:"issuer,omitzero"`
	Label      string   `json:"label,omitzero"` // as the person or the issuer names the account
	Scopes     []string `json:"scopes,omitempty"`
}

// Principal returns the person whose connection the call uses; empty if it uses none.
func (r *Request) Principal() string {
	if r.Account == nil {
		return ""
	}
	onBehalfOf := ""
	if r.Identity != nil {
		onBehalfOf = r.Identity.OnBehalfOf
	}
	return policy.Principal(r.Actor, onBehalfOf, true)
}

// roundDigest is the digest of the answers to questions of the server; empty without answers.
func (r *Request) roundDigest() canonical.Digest {
	if len(r.Round) == 0 {
		return ""
	}
	return canonical.Sum("round", r.Round)
}

// digest names the request.
func (r *Request) digest() canonical.Digest {
	return canonical.Sum("request", canonical.MustSorted(r))
}

// A Run is one request on its way through the machine. One goroutine owns it; only
// [Machine.Advance] moves it.
type Run struct {
	id      string
	request Request
	asked   canonical.Digest // the digest of the request
	bundle  *policy.Bundle
	sent    *policy.SentCall // nil: the plan is read from the request's text

	state    fsm.State
	trail    []fsm.State
	consumed bool // the permit has been handed out

	facts Facts

	usual [usualStates]fsm.State // the memory of the trail
}

// usualStates is the maximum number of states of a run with the current table.
const usualStates = 16

// NewRun starts a run in the machine's first state. The id is a UUIDv7 that the caller drew.
// Arguments that the bundle refuses for their size leave the request.
func NewRun(id string, request Request, bundle *policy.Bundle) *Run {
	if request.Kind != KindAsk && request.Large == nil {
		request.Text, request.Large = bundle.CutArguments(request.Text)
	}
	return newRun(id, request, bundle)
}

// NewSentRun is [NewRun] for a call that the bundle has read. It sets the text of the request.
func NewSentRun(id string, request Request, call *policy.SentCall, bundle *policy.Bundle) *Run {
	request.Text, request.Large = call.Text, call.Large
	r := newRun(id, request, bundle)
	r.sent = call
	return r
}

func newRun(id string, request Request, bundle *policy.Bundle) *Run {
	r := &Run{id: id, request: request, asked: request.digest(), bundle: bundle, state: Received}
	r.trail = append(r.usual[:0], Received)
	return r
}

// NewHeld returns a held run of which only the binding is known. It can only end.
func NewHeld(id string, request Request, binding canonical.Digest) *Run {
	r := newRun(id, request, &policy.Bundle{})
	r.state, r.facts.Held = Pending, &HeldFact{Binding: binding}
	return r
}

// ID returns the run's id.
func (r *Run) ID() string { return r.id }

// Request returns the request that started the run.
func (r *Run) Request() Request { return r.request }

// Bundle returns the operator's bundle at the start of the run.
func (r *Run) Bundle() *policy.Bundle { return r.bundle }

// State returns the state: the name of what the run has established so far.
func (r *Run) State() fsm.State { return r.state }

// Trail returns the states the run went through, oldest first.
func (r *Run) Trail() []fsm.State { return append([]fsm.State(nil), r.trail...) }

// Facts returns the facts of the run.
func (r *Run) Facts() Facts { return r.facts }

// Plan returns the plan, or nil.
func (r *Run) Plan() *policy.Plan {
	if r.facts.Planned == nil {
		return nil
	}
	return r.facts.Planned.plan
}

// readCall reads the request of a call as a plan.
func (r *Run) readCall() (*policy.Plan, policy.Verdict) {
	if r.sent != nil {
		return r.sent.Read(r.bundle.Limits())
	}
	return policy.ReadCall(r.request.Text, r.bundle.Limits())
}

// Catalog returns the live catalog as the run found it, or nil.
func (r *Run) Catalog() *policy.Catalog {
	if r.facts.Discovered == nil {
		return nil
	}
	return r.facts.Discovered.catalog
}

// questionText returns the text of a question, and "" for a call.
func (r *Run) questionText() string {
	if r.request.Kind == KindAsk {
		return string(r.request.Text)
	}
	return ""
}

// Raw returns the exact bytes of the tool's result, or nil. They must not be changed.
func (r *Run) Raw() []byte {
	if r.facts.Executed == nil {
		return nil
	}
	return r.facts.Executed.raw
}

// RawMembers returns the members of the tool's result; nil if it was not read strictly.
func (r *Run) RawMembers() []canonical.Member {
	if r.facts.Executed == nil {
		return nil
	}
	return r.facts.Executed.members
}

// Structured returns the typed content in canonical form, or nil. It must not be changed.
func (r *Run) Structured() []byte {
	if r.facts.Typed == nil {
		return nil
	}
	return r.facts.Typed.structured
}
