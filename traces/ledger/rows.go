package ledger

import (
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/fsm"
	"pgfsm/internal/canonical"
)

// A Status is the state of a request as users see it.
type Status string

// The statuses. Request.State has the state of the machine.
const (
	Proposed      Status = "proposed"      // not decided yet, or the planner asked a question
	Pending       Status = "pending"       // held for approvers
	Approved      Status = "approved"      // approved; the call was not made yet
	Allowed       Status = "allowed"       // a policy allowed it; the call is on its way
	Denied        Status = "denied"        // a gate or an approver denied it; nothing was called
	Executed      Status = "executed"      // the call was made, and its result is there
	Failed        Status = "failed"        // an effect failed
	Expired       Status = "expired"       // nobody decided in time; nothing was called
	Indeterminate Status = "indeterminate" // the process ended during the call
)

// A Type is the kind of an event.
type Type string

// The types of event.
const (
	LogCreated        Type = "log.created" // the first entry
	RequestCreated    Type = "request.created"
	CallReserved      Type = "call.reserved" // earlier calls were read, and later runs count this call
	RiskScored        Type = "risk.scored"
	DecisionMade      Type = "decision.made"
	ApprovalRequested Type = "approval.requested"
	ApprovalApproved  Type = "approval.approved"
	ApprovalDenied    Type = "approval.denied"
	ApprovalExpired   Type = "approval.expired"
	RunClaimed        Type = "run.claimed" // a process resumes a held run
	ProxySent         Type = "proxy.sent"  // the permit is consumed; pgfsm sends the call next
	ToolResult        Type = "tool.result"
	RunEnded          Type = "run.ended"
	OutcomeDelivered  Type = "outcome.delivered" // the requester gets the outcome of a held call
	MCPPassed         Type = "mcp.passed"        // a message besides calls passed the gateway
	BundleActivated   Type = "bundle.activated"  // a gateway starts with this bundle, or takes it in a reload
	TokenCreated      Type = "token.created"
	TokenRevoked      Type = "token.revoked"
	IdentityBlocked   Type = "identity.blocked"   // a subject of an identity provider
	IdentityUnblocked Type = "identity.unblocked" //
	AccessRefused     Type = "access.refused"     // an agent's token lacks a scope; at most one a minute for the same agent, endpoint and scope
	KeyAdded          Type = "key.added"          // a verifier key of the log
	KeyRemoved        Type = "key.removed"        // a key signs no more
	LedgerPruned      Type = "ledger.pruned"
	LedgerClosed      Type = "ledger.closed"    // the last entry of a log that was copied or lost entries; see [Copy]
	LedgerContinued   Type = "ledger.continued" // the entry after ledger.closed in the copy
)

// An Entry is a leaf of the log: the events that one commit adds to one run, or one event of no run. Entries are only added. The log is
// a Merkle tree over them (RFC 6962, section 2).
type Entry struct {
	Index  int64          // from 0, without gaps
	RunID  string         // empty for what concerns no run
	N      int            // how many entries the run has before this one
	At     string         // RFC 3339, UTC, whole seconds; never before that of the entry before
	By     string         // who caused it: an actor, a token's name, or a process
	Prev   string         // leaf hash of the run's entry before, in base64; empty for a run's first
	Type   Type           // of the last event
	Events jsontext.Value // a JSON list of events in canonical form, or a [Ref]
}

// An Event is one thing that happened.
type Event struct {
	Index   int64 // of its entry
	RunID   string
	Type    Type
	At      string
	By      string
	Payload jsontext.Value // canonical JSON
}

// An End is the end of the log.
type End struct {
	Size int64  // how many entries were ever added
	At   string // of the last one; empty if there is none
	Type Type   // of the last one
}

// A Request is the current state of one run: a projection of its events, stored for queries. Verify computes it again from the
// events and compares.
type Request struct {
	RunID      string
	At         string // of the request
	Updated    string // of the last event
	Kind       string // ask, call or agent
	Actor      string
	Display    string // the actor's name for people; empty: the identity provider gave none
	OnBehalfOf string // the person for whom an agent of an identity provider acts; empty if there is none
	Client     string // the client id of an actor of an identity provider
	Task       string
	Env        string
	Server     string           // this and the next two members are as requested, unless the plan was validated
	Tool       string           // as Server
	Args       string           // canonical JSON, or a [Ref]; empty if there is no call
	Arguments  canonical.Digest // of the arguments, as approvals bind it; empty until a plan was validated
	Definition canonical.Digest
	Bundle     canonical.Digest
	Mode       string // of risk
	Score      int
	Policy     string // that decided
	Status     Status
	State      fsm.State // of the machine, as far as it is recorded
	Code       string    // why it did not run, where it did not
	Reason     string
	Binding    canonical.Digest // the digest that votes must name; empty unless it was held
	Approvers  []string         // roles
	Quorum     int
	Agreed     int              // how many have approved
	Expires    string           // RFC 3339; empty unless it was held
	Owner      string           // the process that has the run; empty if none does
	Sent       string           // when the call was sent; empty if it was not
	Ended      string           // when the run ended; empty if it has not
	Steps      int              // how many are recorded
	Head       canonical.Digest // once the run has ended, of its trace; before, of the step that held it; empty if none did
	Entry      int64            // index of its last entry
	Entries    int              // how many it has
	Delivered  string           // when the outcome was delivered to the requester; empty if it was not
	Trace      string           // the id of the trace of the agent's request; empty if there is none
	CallTrace  string           // the id of the trace of an approved call; empty if there is none

	OnBehalfOfDisplay string // that person's name for people
}

// Validated reports whether the server and the tool existed and the arguments fitted; otherwise the request's call is unverified.
func (r *Request) Validated() bool { return r.Definition != "" }

// A Blob is a large value that rows refer to by a [Ref]. It is stored once.
type Blob struct {
	Digest canonical.Digest // of the kind and the text
	Kind   string           // BlobBundle or BlobValue
	Text   string
}

// Kinds of blob; they are the kinds of their digests.
const (
	BlobBundle = "bundle" // a policy.Content in canonical form
	BlobValue  = "blob"   // canonical JSON
)

// MaxInline is the size in bytes up to which a row contains a value.
const MaxInline = 4 << 10

// Ref is the text that a row contains instead of a blob's value: JSON never begins with an at sign.
func Ref(d canonical.Digest) string { return "@" + string(d) }

// A Token authenticates a caller. The secret is not stored.
type Token struct {
	Created string           `json:"created"`
	Expires string           `json:"expires"` // empty: never
	ID      string           `json:"id"`      // the public part of the token
	Name    string           `json:"name"`    // the person or service that it stands for: the actor
	Revoked string           `json:"revoked"` // when; empty if it was not
	Role    string           `json:"role"`    // agent, approver, auditor or admin
	Secret  canonical.Digest `json:"secret"`  // digest of the secret
	Entry   int64            `json:"entry"`   // index of its last one
}

// A Block says that a subject of an identity provider is blocked.
type Block struct {
	Name  string // of the subject: [policy.SubjectName]
	Since string
	By    string // who blocked it
	Entry int64  // index of its entry
}

// A Session is a browser in which a person is signed in, or a link with which that can be done once. It is no part of the record.
type Session struct {
	Secret   canonical.Digest // digest of what the browser or the link has
	Kind     string           // SessionLink or SessionOpen
	Token    string           // id of the token; empty for a person of an identity provider
	Name     string           // this and the next two members are a person's of an identity provider
	Identity jsontext.Value   // JSON of a [policy.Identity]
	AuthTime string           // when the provider asked for the person's credentials; empty: unknown
	Created  string
	Used     string // the last time that the person used it
	Expires  string
}

// Kinds of session.
const (
	SessionLink = "link"
	SessionOpen = "open"
)

// A Delivery is a message to a web hook that has not been delivered, or was given up. It is no part of the record.
type Delivery struct {
	Entry    int64  // index of the event's entry
	Hook     string // its URL's digest, for configurations change
	Attempts int
	Next     string // not before; RFC 3339
	State    string // waiting, done or given_up
	Error    string // of the last attempt
}
