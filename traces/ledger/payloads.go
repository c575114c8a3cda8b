package ledger

import (
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/fsm"
	"pgfsm/internal/canonical"
	"pgfsm/states"
	"pgfsm/traces"
)

// A payload is the content of an event of one type.
type payload interface {
	eventType() Type
	setType(Type)
	aboutNoRun() bool
	// applyTo changes the request that the event is about. An error means that the event is
	// impossible in the request's state.
	applyTo(*RunRow, *Event) error
}

// typed has the member that every payload has. encodePayload sets it.
type typed struct {
	Type Type `json:"type"`
}

func (t *typed) setType(kind Type) { t.Type = kind }
func (*typed) aboutNoRun() bool    { return false }

// noRun replaces typed in payloads that are about no run.
type noRun struct{ typed }

func (*noRun) applyTo(*RunRow, *Event) error { return nil }
func (*noRun) aboutNoRun() bool              { return true }

// encodePayload returns a payload in canonical form.
func encodePayload(p payload) ([]byte, error) {
	p.setType(p.eventType())
	b, err := canonical.Sorted(p)
	if err != nil {
		return nil, err
	}
	return canonical.JSON(b) // embedded members are not in canonical order
}

// recording is a payload that contains a part of the run's record.
type recording interface{ runRecord() *record }

func (r *record) runRecord() *record { return r }

// A logCreated payload names the log. It also names the former log, if that lost entries.
type logCreated struct {
	noRun
	Former *former `json:"former,omitzero"`
	Origin string  `json:"origin"`
}

// A requestCreated payload has the run's header, and the planned call, if there is one. The process
// that made the entry owns the run.
type requestCreated struct {
	typed
	Build   string           `json:"build"` // the version of the program
	Bundle  canonical.Digest `json:"bundle"`
	Call    *plannedCall     `json:"call"` // null: no call was planned, or its tool does not exist
	Env     string           `json:"env"`
	Format  string           `json:"format"` // the format of the trace
	Machine canonical.Digest `json:"machine"`
	Request states.Request   `json:"request"`
}

type plannedCall struct {
	Args       jsontext.Value   `json:"args"` // canonical JSON
	Definition canonical.Digest `json:"definition"`
	Server     string           `json:"server"`
	Tool       string           `json:"tool"`
}

type callReserved struct {
	typed
	record
}

type riskScored struct {
	typed
	Mode  string   `json:"mode"`
	Rules []string `json:"rules,omitempty"` // the rules that matched
	Score int      `json:"score"`
}

type decisionMade struct {
	typed
	Bundle    canonical.Digest `json:"bundle,omitzero"` // the bundle that decided, if it is not the run's own
	Code      string           `json:"code,omitzero"`
	Condition string           `json:"condition,omitzero"`
	Gate      string           `json:"gate"`
	Outcome   string           `json:"outcome"`
	Policy    string           `json:"policy"`
	Reason    string           `json:"reason"`
}

// A record is the part of a run's record that an event adds: the steps since the last such event,
// and their inputs from outside. The run's trace is derived from all steps and inputs.
type record struct {
	Inputs []input       `json:"inputs"`
	Steps  []fsm.Trigger `json:"steps"`
}

// An input holds the parts of a step that the machine cannot compute again.
type input struct {
	// absent: the time of the step before, or of the request for the first step.
	At string `json:"at,omitzero"`
	// Absent if the step has none; may be a [Ref], as a JSON string.
	Event jsontext.Value `json:"event,omitzero"`
	Step  int            `json:"step"` // from 0, within the event
}

// recordOf converts steps to a record.
func recordOf(steps []traces.Input) (r record) {
	r.Inputs = []input{}
	for i, step := range steps {
		r.Steps = append(r.Steps, step.Trigger)
		if step.At != "" || step.Event != nil {
			r.Inputs = append(r.Inputs, input{step.At, step.Event, i})
		}
	}
	return r
}

// resolveInputs returns the steps with their events. It reads events that are stored by reference
// with resolve.
func (r *record) resolveInputs(resolve func(ref string) (jsontext.Value, error)) ([]traces.Input, error) {
	steps := make([]traces.Input, len(r.Steps))
	for i, trigger := range r.Steps {
		steps[i].Trigger = trigger
	}
	for _, stored := range r.Inputs {
		step := &steps[stored.Step]
		step.At, step.Event = stored.At, stored.Event
		if ref := eventRef(stored.Event); ref != "" {
			value, err := resolve(ref)
			if err != nil {
				return nil, err
			}
			step.Event = value
		}
	}
	return steps, nil
}

type approvalRequested struct {
	typed
	record
	Approvers []string         `json:"approvers"`
	Binding   canonical.Digest `json:"binding"`
	Expires   string           `json:"expires"`
	Last      canonical.Digest `json:"last"` // hash of the last step in the run's trace
	Quorum    int              `json:"quorum"`
}

// An approvalVote payload is one vote; the event names the voter.
type approvalVote struct {
	typed
	Binding canonical.Digest `json:"binding"`
	Decides bool             `json:"decides"`           // this vote decides the request
	Display string           `json:"display,omitempty"` // the voter's name as people read it
	// The voter's groups that the roles of the run's bundle name.
	Groups []string `json:"groups,omitempty"`
	Key    string   `json:"key"` // the caller's Idempotency-Key, if there was one
	Reason string   `json:"reason"`
	// The id of the voter's token; empty for a person of an identity provider.
	Token string `json:"token"`

	approve bool
}

type approvalExpired struct {
	typed
	Binding canonical.Digest `json:"binding"`
	Expires string           `json:"expires"`
}

// A runClaimed payload says that the process that made the entry resumes a held run.
type runClaimed struct {
	typed
}

type proxySent struct {
	typed
	record
	Permit canonical.Digest `json:"permit"`
	Trace  string           `json:"trace,omitzero"` // the id of the trace of an approved call
}

type toolResult struct {
	typed
	Bytes int `json:"bytes"`
}

type runEnded struct {
	typed
	record
	Head    canonical.Digest `json:"head"` // the head of the trace
	Outcome states.Outcome   `json:"outcome"`
}

// An outcomeDelivered payload says how the requester got the outcome of a held run.
type outcomeDelivered struct {
	typed
	How string `json:"how"` // one of [DeliveryWays]
}

// An mcpPassed payload is one relayed message that is not a call; the event names the actor.
type mcpPassed struct {
	noRun
	Direction  string           `json:"direction"`
	Method     string           `json:"method"`
	OnBehalfOf string           `json:"on_behalf_of,omitzero"`
	Params     canonical.Digest `json:"params"` // digest of the params; empty: there were none
	Server     string           `json:"server"`
	Token      string           `json:"token"` // the id of the client's token; empty without one
}

type bundleActivated struct {
	noRun
	// The caller who asked for a reload; empty: no caller did.
	Actor   string           `json:"actor,omitempty"`
	Build   string           `json:"build"` // the version of the program
	Bundle  canonical.Digest `json:"bundle"`
	Cause   Cause            `json:"cause"`
	Changed []string         `json:"changed,omitempty"` // changed keys of the configuration, sorted
	// The bundle that the gateway used before; empty at the start.
	Previous canonical.Digest `json:"previous,omitempty"`
}

type tokenCreated struct {
	noRun
	Expires string           `json:"expires"`
	ID      string           `json:"id"`
	Name    string           `json:"name"`
	Role    string           `json:"role"`
	Secret  canonical.Digest `json:"secret"`
}

type tokenRevoked struct {
	noRun
	ID string `json:"id"`
}

type identityBlocked struct {
	noRun
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
}

type identityUnblocked struct {
	noRun
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
}

// An accessRefused payload is a request that the gateway refused because the agent's token lacks
// scopes; the event names the agent.
type accessRefused struct {
	noRun
	Endpoint string `json:"endpoint"` // the path of the endpoint
	Scope    string `json:"scope"`    // the scope that the token lacks
}

type keyAdded struct {
	noRun
	Key string `json:"key"`
}

type keyRemoved struct {
	noRun
	Key string `json:"key"`
}

// A ledgerPruned payload says which entries were removed; their hashes are still in the tree. It
// carries the number of calls of each task over.
type ledgerPruned struct {
	noRun
	Before  string     `json:"before"`
	Entries []Range    `json:"entries"` // ordered
	Runs    int        `json:"runs"`
	Tasks   []taskCall `json:"tasks,omitempty"` // ordered; each task and tool once
}

// A ledgerClosed payload ends a log. The log has no later entry, except in the copy that Target
// names.
type ledgerClosed struct {
	noRun
	Target string `json:"target"`
}

// A ledgerContinued payload follows the entry that closed the source of a copy.
type ledgerContinued struct{ noRun }

func (*logCreated) eventType() Type        { return LogCreated }
func (*requestCreated) eventType() Type    { return RequestCreated }
func (*callReserved) eventType() Type      { return CallReserved }
func (*riskScored) eventType() Type        { return RiskScored }
func (*decisionMade) eventType() Type      { return DecisionMade }
func (*approvalRequested) eventType() Type { return ApprovalRequested }
func (*approvalExpired) eventType() Type   { return ApprovalExpired }
func (*runClaimed) eventType() Type        { return RunClaimed }
func (*proxySent) eventType() Type         { return ProxySent }
func (*toolResult) eventType() Type        { return ToolResult }
func (*runEnded) eventType() Type          { return RunEnded }
func (*outcomeDelivered) eventType() Type  { return OutcomeDelivered }
func (*mcpPassed) eventType() Type         { return MCPPassed }
func (*bundleActivated) eventType() Type   { return BundleActivated }
func (*tokenCreated) eventType() Type      { return TokenCreated }
func (*tokenRevoked) eventType() Type      { return TokenRevoked }
func (*identityBlocked) eventType() Type   { return IdentityBlocked }
func (*identityUnblocked) eventType() Type { return IdentityUnblocked }
func (*accessRefused) eventType() Type     { return AccessRefused }
func (*keyAdded) eventType() Type          { return KeyAdded }
func (*keyRemoved) eventType() Type        { return KeyRemoved }
func (*ledgerPruned) eventType() Type      { return LedgerPruned }
func (*ledgerClosed) eventType() Type      { return LedgerClosed }
func (*ledgerContinued) eventType() Type   { return LedgerContinued }

func (v *approvalVote) eventType() Type {
	if v.approve {
		return ApprovalApproved
	}
	return ApprovalDenied
}

// payloads lists an empty payload of each type.
var payloads = []payload{
	new(logCreated), new(requestCreated), new(callReserved), new(riskScored), new(decisionMade), new(approvalRequested),
	&approvalVote{approve: true}, new(approvalVote), new(approvalExpired),
	new(runClaimed), new(proxySent), new(toolResult), new(runEnded), new(outcomeDelivered), new(mcpPassed), new(bundleActivated),
	new(tokenCreated), new(tokenRevoked),
	new(identityBlocked), new(identityUnblocked), new(accessRefused), new(keyAdded), new(keyRemoved), new(ledgerPruned),
	new(ledgerClosed), new(ledgerContinued),
}

// Types returns all types of event.
func Types() (all []Type) {
	for _, p := range payloads {
		all = append(all, p.eventType())
	}
	return all
}

// Rare reports whether events of the type are about no run and few. [Reader.EntriesOfType] finds
// only such events.
func (t Type) Rare() bool {
	p, err := newPayload(t)
	return err == nil && p.aboutNoRun() && t != MCPPassed
}

// newPayload returns an empty payload of a type.
func newPayload(t Type) (payload, error) {
	for _, empty := range payloads {
		if empty.eventType() == t {
			p := reflect.New(reflect.TypeOf(empty).Elem())
			p.Elem().Set(reflect.ValueOf(empty).Elem())
			return p.Interface().(payload), nil
		}
	}
	return nil, fmt.Errorf("unknown type of event %q", t)
}
