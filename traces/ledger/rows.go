package ledger

import (
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/fsm"
	"pgfsm/internal/canonical"
	"pgfsm/states"
)

// A Status is the state of a request as users see it.
type Status string

// The statuses. RunRow.State has the machine's state.
const (
	Proposed      Status = "proposed"      // not decided yet, or the planner asked a question
	Pending       Status = "pending"       // held for approvers
	Approved      Status = "approved"      // approved; the call was not made yet
	Allowed       Status = "allowed"       // a policy allowed it; the call has no result yet
	Denied        Status = "denied"        // a gate or an approver denied it; nothing was called
	Executed      Status = "executed"      // the call was made, and its result is recorded
	Failed        Status = "failed"        // an effect failed
	Expired       Status = "expired"       // no approver decided in time; nothing was called
	Indeterminate Status = "indeterminate" // the process ended during the call
	Delegated     Status = "delegated"     // the client makes the call itself, and has not reported it yet
	Reported      Status = "reported"      // the client says that it made the call
	Unreported    Status = "unreported"    // the client did not report the call in time
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
	CallDelegated     Type = "call.delegated" // the permit is handed out to the client that makes the call itself
	CallReported      Type = "call.reported"  // the client says that it made the call
	CallRewritten     Type = "call.rewritten" // the client says that the call ran with other arguments than the permitted ones
	CallUnreported    Type = "call.unreported"
	ReportLate        Type = "report.late"     // the client reported a call after its run had ended as unreported
	PromptCaptured    Type = "prompt.captured" // a client's hook told a prompt
	RunEnded          Type = "run.ended"
	OutcomeDelivered  Type = "outcome.delivered" // the requester gets the outcome of a held call
	MCPPassed         Type = "mcp.passed"        // the gateway relayed a message that is not a call
	BundleActivated   Type = "bundle.activated"  // a gateway starts with this bundle, or reloads it
	CommandStarted    Type = "command.started"   // a command records its first run with this bundle
	TokenCreated      Type = "token.created"
	TokenRevoked      Type = "token.revoked"
	IdentityBlocked   Type = "identity.blocked" // a subject of an identity provider was blocked
	IdentityUnblocked Type = "identity.unblocked"
	ConnectionMade    Type = "connection.made" // a person connected an account at a server
	ConnectionEnded   Type = "connection.ended"
	// An agent's token lacks a scope; at most one a minute for the same agent, endpoint and scope.
	AccessRefused   Type = "access.refused"
	KeyAdded        Type = "key.added"   // a verifier key was added to the log
	KeyRemoved      Type = "key.removed" // a key no longer signs
	LedgerPruned    Type = "ledger.pruned"
	LedgerClosed    Type = "ledger.closed"    // the last entry of a ledger; see [Ledger.CloseLog]
	LedgerContinued Type = "ledger.continued" // the entry after ledger.closed; see [Import]
)

// A Class says which entries a prune may remove the bodies of.
type Class string

// The classes.
const (
	ClassLog     Class = "log"     // never removed: bundles, tokens, blocks, keys and prunes
	ClassRun     Class = "run"     // of one run; removed with all others of the run
	ClassSession Class = "session" // of a client, and of no run
)

// An Entry is a leaf of the log: the events that one commit adds to one run, or one event of no
// run. Entries are only added. The log is a Merkle tree over them (RFC 6962, section 2).
type Entry struct {
	Index    int64          // from 0, without gaps
	RunID    string         // empty if the entry belongs to no run, or was pruned
	N        int            // how many earlier entries the run has
	Previous int64          // index of the run's previous entry; 0 if N is 0
	At       string         // RFC 3339, UTC; never before the time of the previous entry
	Prev     string         // leaf hash of the run's previous entry, in base64; empty if N is 0
	Type     Type           // the type of the event of an entry that belongs to no run; empty for others
	Body     jsontext.Value // canonical JSON; empty: the entry was pruned
	Header   jsontext.Value // of a pruned entry: its leaf; empty for others, see [Entry.Leaf]
}

// An Event is one thing that happened.
type Event struct {
	Index   int64 // the index of its entry
	RunID   string
	Type    Type
	At      string
	By      string
	Payload jsontext.Value // canonical JSON
}

// An End describes the end of the log.
type End struct {
	Size int64  // how many entries were ever added
	At   string // when the last entry was added; empty if there is none
	Type Type   // the type of the last entry, as [Entry.Type] has it
}

// A RunRow is the current state of one run: a projection of its events, stored for queries. Verify
// computes it again from the events and compares.
type RunRow struct {
	RunID      string
	At         string // when the run was requested
	Updated    string // when the last event happened
	Kind       string // ask, call or agent
	Actor      string
	Display    string // the actor's name as people read it; empty: the identity provider gave none
	OnBehalfOf string // the person for whom an agent of an identity provider acts; empty if there is none
	Client     string // the client id of an actor of an identity provider
	Task       string
	Env        string
	Server     string // Server, Tool and Args are as requested, unless the plan was validated
	Tool       string
	Args       string // canonical JSON, or [ArgsInEntry]; empty if there is no call
	// Digest of the arguments that approvals bind; empty until a plan was validated.
	Arguments  canonical.Digest
	Definition canonical.Digest
	Bundle     canonical.Digest
	Mode       string // the mode of the risk rules
	Score      int
	Policy     string // the policy that decided
	Status     Status
	State      fsm.State // the machine's last recorded state
	Code       string    // why the run was stopped; empty if it was not
	Reason     string
	Binding    canonical.Digest // the digest that votes must name; empty unless it was held
	Approvers  []string         // roles that may vote
	Quorum     int
	Agreed     int    // how many approvers have approved
	Expires    string // RFC 3339; empty unless it was held
	Owner      string // the process that owns the run; empty if none does
	Sent       string // when the call was sent, or its permit was handed out; empty if neither
	Ended      string // when the run ended; empty if it has not
	Steps      int    // how many steps are recorded
	// The trace's head once the run has ended; before, the hash of the step that held it; else
	// empty.
	Head      canonical.Digest
	First     int64  // index of the first entry
	Entry     int64  // index of the last entry
	Entries   int    // how many entries the run has
	Delivered string // when the outcome was delivered to the requester; empty if it was not
	Trace     string // the id of the trace of the agent's request; empty if there is none
	// The client's session in which the call was requested, as [states.Session.Key] writes it; empty if there is none.
	Session    string
	ClientCall string // the client's id of the call that was permitted, or of the one that asked first; empty if there is none
	CallTrace  string // the id of the trace of an approved call; empty if there is none

	OnBehalfOfDisplay string // the name of OnBehalfOf as people read it
}

// Validated reports whether the server and the tool existed and the arguments fitted; otherwise the
// request's call is unverified.
func (r *RunRow) Validated() bool { return r.Definition != "" }

// Delegates reports whether the client makes the call of the run itself, if pgfsm permits it.
func (r *RunRow) Delegates() bool { return states.Delegates(r.Kind) }

// UsesApproval reports whether Expires is the time until which the client may use the approval: the client makes the
// call itself, and enough people have agreed.
func (r *RunRow) UsesApproval() bool { return r.Delegates() && r.Binding != "" && r.Agreed >= r.Quorum }

// parked reports whether the run waits for a person or for a report, so that no process has it.
func (r *RunRow) parked() bool { return r.State == states.Pending || r.State == states.Delegated }

// A Blob is a large value that entries refer to. It is stored once.
type Blob struct {
	Digest canonical.Digest // digest of the kind and the text
	Kind   string           // BlobBundle or BlobValue
	Text   string
}

// Kinds of blobs. They are also the kinds of the digests.
const (
	BlobBundle = "bundle" // a policy.Content in canonical form
	BlobValue  = "blob"   // canonical JSON
)

// MaxInline is the largest value in bytes that a row contains itself.
const MaxInline = 4 << 10

// ArgsInEntry stands in a row for arguments over [MaxInline]. Only the run's first entry has them.
const ArgsInEntry = "@"

// A Token authenticates a caller. The secret is not stored.
type Token struct {
	Created string           `json:"created"`
	Expires string           `json:"expires"` // empty: never
	ID      string           `json:"id"`      // the public part of the token
	Name    string           `json:"name"`    // the person or service that the token stands for: the actor
	Revoked string           `json:"revoked"` // when the token was revoked; empty if it was not
	Role    string           `json:"role"`    // agent, approver, auditor or admin
	Secret  canonical.Digest `json:"secret"`  // digest of the secret
	Entry   int64            `json:"entry"`   // index of the token's last entry
}

// A Block says that a subject of an identity provider is blocked.
type Block struct {
	Name  string // the subject, as a [policy.SubjectName]
	Since string
	By    string // the caller who blocked the subject
	Entry int64  // index of the block's entry
}

// A Session is a browser in which a person is signed in, or a link with which a person can sign in
// once. It is not part of the record.
type Session struct {
	Secret   canonical.Digest // digest of the secret that the browser or the link has
	Kind     string           // SessionLink or SessionOpen
	Token    string           // id of the token; empty for a person of an identity provider
	Name     string           // Name, Identity and AuthTime are set only for a person of an identity provider
	Identity jsontext.Value   // JSON of a [policy.Identity]
	AuthTime string           // when the provider asked for the person's credentials; empty: unknown
	Created  string
	Used     string // when the person last used the session
	Expires  string
}

// Kinds of session.
const (
	SessionLink = "link"
	SessionOpen = "open"
)

// A Delivery is a message to a web hook that has not been delivered, or was given up. It is not
// part of the record.
type Delivery struct {
	Entry    int64  // index of the event's entry
	Hook     string // digest of the hook's URL, because configurations change
	Attempts int
	Next     string // not before this time; RFC 3339
	State    string // waiting, done or given_up
	Error    string // the error of the last attempt
}
