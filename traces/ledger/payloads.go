package ledger

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/fsm"
	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/redact"
	"pgfsm/states"
	"pgfsm/traces"
)

// A payload is the content of an event of one type.
type payload interface {
	eventType() Type
	setType(Type)
	class() Class
	// applyTo changes the request that the event is about. An error means that the event is
	// impossible in the request's state.
	applyTo(*RunRow, *Event) error
}

// typed has the member that every payload has. encodePayload sets it.
type typed struct {
	Type Type `json:"type"`
}

func (t *typed) setType(kind Type) { t.Type = kind }
func (*typed) class() Class        { return ClassRun }

// noRun replaces typed in payloads that are about no run.
type noRun struct{ typed }

// ofSession replaces noRun in payloads that a prune may remove.
type ofSession struct{ noRun }

func (*noRun) applyTo(*RunRow, *Event) error { return nil }
func (*noRun) class() Class                  { return ClassLog }
func (*ofSession) class() Class              { return ClassSession }

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

// A logCreated payload names the log.
type logCreated struct {
	noRun
	Origin string `json:"origin"`
}

// A requestCreated payload has the run's request, and the planned call, if there is one. The process
// that made the entry owns the run.
type requestCreated struct {
	typed
	Call *plannedCall `json:"call"` // null: no call was planned, or its tool does not exist
	Gen  int64        `json:"gen"`  // index of the entry of the process and its bundle
	// The text is empty if it is the canonical form of the call.
	Request states.Request `json:"request"`
	// The id of the requester's token. Empty for a user of the operating system, a subject of an identity
	// provider, whose token the request names, and an agent without a token.
	Token string `json:"token,omitzero"`

	generation *generation // set when the entry is written, and by [generations.resolve]
}

// shorten leaves the text of the request out if the call says the same.
func (p *requestCreated) shorten() {
	if c := p.Call; c != nil && bytes.Equal(p.Request.Text, policy.CallPlan(c.Server, c.Tool, c.Args)) {
		p.Request.Text = nil
	}
}

// wholeRequest returns the request with its text.
func (p *requestCreated) wholeRequest() states.Request {
	request := p.Request
	if c := p.Call; len(request.Text) == 0 && c != nil {
		request.Text = policy.CallPlan(c.Server, c.Tool, c.Args)
	}
	return request
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
	// How many milliseconds each step happened after the step before, or after the request for the
	// run's first step; without zeros at the end.
	After  []int64       `json:"after_ms,omitempty"`
	Inputs []input       `json:"inputs"`
	Steps  []fsm.Trigger `json:"steps"`
}

// addStep adds a step that happened some milliseconds after the one before, and its event, if it
// has one.
func (r *record) addStep(trigger fsm.Trigger, after int64, event *input) {
	if after > 0 {
		r.After = append(r.After, make([]int64, len(r.Steps)-len(r.After))...)
		r.After = append(r.After, after)
	}
	if event != nil {
		event.Step = len(r.Steps)
		r.Inputs = append(r.Inputs, *event)
	}
	r.Steps = append(r.Steps, trigger)
}

// An input is the event of a step, which the machine cannot compute again.
type input struct {
	Event jsontext.Value `json:"event"` // may be a [Ref], as a JSON string
	// The age of a kept listing that is stored by reference: it differs where the rest is the same.
	Age  int `json:"age_s,omitzero"`
	Step int `json:"step"` // from 0, within the event
}

// minShared is the size in bytes from which a listing of tools is stored as a blob.
const minShared = 256

// shareListing replaces an event with a listing by a reference to a blob, which it returns. Many
// runs have the same listing of tools, so it is stored once, with the age 0.
func (in *input) shareListing() Blob {
	shared, age := withAge(in.Event, 0)
	blob := Blob{Digest: canonical.Sum(BlobValue, shared), Kind: BlobValue, Text: string(shared)}
	in.Event, in.Age = canonical.AppendText(nil, Ref(blob.Digest)), age
	return blob
}

// checkForm checks that the event of an input is in a blob if it is a large listing, with its age apart. read
// returns the text of a blob.
func (in *input) checkForm(read func(canonical.Digest) (string, error)) error {
	digest := eventRef(in.Event)
	if digest == "" {
		var event struct {
			Happened string `json:"happened"`
		}
		if err := json.Unmarshal(in.Event, &event); err != nil {
			return ruleSteps.Wrap(canonical.Explain(err))
		}
		if event.Happened == "" {
			return ruleSteps.Broken("the event of step %d does not say what happened", in.Step)
		}
		if event.Happened == "tools_listed" && len(in.Event) > minShared {
			return ruleSteps.Broken("the listing of step %d has %d bytes, and is in no blob", in.Step, len(in.Event))
		}
		return nil
	}

	text, err := read(digest)
	if err != nil {
		return err
	}
	isKept := strings.HasPrefix(text, keptListing)
	_, age := withAge([]byte(text), 0)
	if age != 0 || in.Age > 0 && !isKept || len(text)+len(strconv.Itoa(in.Age))-1 <= minShared {
		return ruleSteps.Broken("the blob of step %d is small, has an age, or is no listing that was kept", in.Step)
	}
	return nil
}

// resolve returns the event of an input. read returns the text of a blob.
func (in *input) resolve(read func(canonical.Digest) (string, error)) (jsontext.Value, error) {
	digest := eventRef(in.Event)
	if digest == "" {
		return in.Event, nil
	}
	text, err := read(digest)
	if err != nil || in.Age == 0 {
		return jsontext.Value(text), err
	}
	whole, _ := withAge([]byte(text), in.Age)
	return whole, nil
}

// keptListing begins the canonical form of a kept listing, up to its age.
const keptListing = `{"happened":"tools_listed","kept":{"age_s":`

// withAge returns an event with a listing that was kept for this many seconds, and the age that the
// event had. Any other event stays as it is.
func withAge(event jsontext.Value, age int) (whole jsontext.Value, had int) {
	rest, isKept := bytes.CutPrefix(event, []byte(keptListing))
	digits, _, _ := bytes.Cut(rest, []byte{','})
	had, err := strconv.Atoi(string(digits))
	if !isKept || err != nil {
		return event, 0
	}
	whole = append(make([]byte, 0, len(event)+8), keptListing...)
	whole = strconv.AppendInt(whole, int64(age), 10)
	return append(whole, rest[len(digits):]...), had
}

// resolveInputs returns the steps with their events. at is the time of the step before; it becomes
// that of the last step. read returns the text of a blob.
func (r *record) resolveInputs(at *string, read func(canonical.Digest) (string, error)) ([]traces.Input, error) {
	steps := make([]traces.Input, len(r.Steps))
	for i, trigger := range r.Steps {
		steps[i].Trigger = trigger
		if i >= len(r.After) || r.After[i] == 0 {
			continue
		}
		previous, err := time.Parse(timeForm, *at)
		if err != nil {
			return nil, err
		}
		*at = previous.Add(time.Duration(r.After[i]) * time.Millisecond).Format(timeForm)
		steps[i].At = *at
	}
	for i := range r.Inputs {
		stored := &r.Inputs[i]
		event, err := stored.resolve(read)
		if err != nil {
			return nil, err
		}
		steps[stored.Step].Event = event
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
	// The token of a person of an identity provider.
	Credential *policy.Credential `json:"credential,omitempty"`
	Decides    bool               `json:"decides"`           // this vote decides the request
	Display    string             `json:"display,omitempty"` // the voter's name as people read it
	Expires    string             `json:"expires,omitempty"` // of a vote that decides: see [Settings.approvalExpires]
	// The voter's groups on which the vote depends: see [votingGroups].
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
	Bytes    int          `json:"bytes"`
	Redacted []redact.Hit `json:"redacted,omitempty"` // what was removed from it before
}

// A callDelegated payload says that the permit was handed out to the client that makes the call itself. No
// process owns the run from then on.
type callDelegated struct {
	typed
	record
	Call   string           `json:"call,omitzero"` // the client's id of the call
	Permit canonical.Digest `json:"permit"`
}

// A callReported payload is what the client says about the call that it made itself.
type callReported struct {
	typed
	Arguments canonical.Digest `json:"arguments,omitzero"`
	Failed    bool             `json:"failed,omitzero"`
	Result    canonical.Digest `json:"result,omitzero"`
}

type callRewritten struct {
	typed
	Args      jsontext.Value   `json:"args,omitzero"` // with which the call ran
	Arguments canonical.Digest `json:"arguments"`     // the digest of Args
}

type callUnreported struct {
	typed
	Reason string `json:"reason"`
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
	ofSession
	Direction  string           `json:"direction"`
	Method     string           `json:"method"`
	OnBehalfOf string           `json:"on_behalf_of,omitzero"`
	Params     canonical.Digest `json:"params"` // digest of the params; empty: there were none
	Server     string           `json:"server"`
	Token      string           `json:"token"` // the id of the client's token; empty without one
}

// A reportLate payload is a report about a run that had ended as unreported; the event names who reported.
type reportLate struct {
	ofSession
	Args      jsontext.Value   `json:"args,omitzero"` // with which the call ran, if they are others than the permitted ones
	Arguments canonical.Digest `json:"arguments,omitzero"`
	Failed    bool             `json:"failed,omitzero"`
	Result    canonical.Digest `json:"result,omitzero"`
	Run       string           `json:"run"`
	Token     string           `json:"token,omitzero"` // the id of the token of the hook
}

// A promptCaptured payload is a prompt of a client's session; the event names the actor.
type promptCaptured struct {
	ofSession
	Cut     bool   `json:"cut,omitzero"` // the text was longer
	Prompt  string `json:"prompt,omitzero"`
	Session string `json:"session"`
	Source  string `json:"source,omitzero"` // who wrote the prompt, as the client says
	Text    string `json:"text"`
	Token   string `json:"token,omitzero"` // the id of the token of the hook
}

// A commandStarted payload says that a command, such as pgfsm run, records its first run with a
// bundle.
type commandStarted struct {
	noRun
	generation
}

// A bundleActivated payload says that a gateway begins to use a bundle.
type bundleActivated struct {
	noRun
	generation
	// The caller who asked for a reload; empty: no caller did.
	Actor   string   `json:"actor,omitempty"`
	Cause   Cause    `json:"cause"`
	Changed []string `json:"changed,omitempty"` // changed keys of the configuration, sorted
	// The bundle that the gateway used before; empty at the start.
	Previous canonical.Digest `json:"previous,omitempty"`
	Proved   []string         `json:"proved,omitempty"` // the claims that were proved for the bundle
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

// A connectionMade payload says that a person connected an account at a server, in place of an earlier one.
type connectionMade struct {
	noRun
	Account  string   `json:"account,omitzero"` // the person's label
	Client   string   `json:"client,omitzero"`
	ID       string   `json:"id"`
	Issuer   string   `json:"issuer,omitzero"`
	Kind     string   `json:"kind"`
	Person   string   `json:"person"`
	Resource string   `json:"resource"`
	Scopes   []string `json:"scopes,omitempty"`
	Server   string   `json:"server"`
	Token    string   `json:"token,omitzero"` // the id of the person's token; empty for a person of an identity provider
}

type connectionEnded struct {
	noRun
	ID     string `json:"id"`
	Person string `json:"person"`
	Reason string `json:"reason"`
	Server string `json:"server"`
}

// An accessRefused payload is a request that the gateway refused because the agent's token lacks
// scopes, or a call that it refused because its person has no connection to the server; the event names the agent.
type accessRefused struct {
	ofSession
	Endpoint string `json:"endpoint,omitzero"` // the path of the endpoint
	Scope    string `json:"scope,omitzero"`    // the scope that the token lacks
	Server   string `json:"server,omitzero"`   // the server to which there is no connection
	Token    string `json:"token,omitzero"`    // with a server: the id of the agent's token
}

type keyAdded struct {
	noRun
	Key string `json:"key"`
}

type keyRemoved struct {
	noRun
	Key string `json:"key"`
}

// A ledgerPruned payload says which bodies were removed; their headers are still there. It carries
// the number of calls of each task over.
type ledgerPruned struct {
	noRun
	Before  string    `json:"before,omitempty"` // empty for an erasure
	Entries []Range   `json:"entries"`          // in order
	Kind    PruneKind `json:"kind"`
	Order   string    `json:"order,omitempty"` // a signed [PruneOrder]; empty if the log has no key
	// Why the order erases; empty for another prune.
	Reason ErasureReason `json:"reason,omitempty"`
	Runs   int           `json:"runs"`
	Tasks  []taskCall    `json:"tasks,omitempty"` // in order; each task and tool once
}

// A ledgerClosed payload ends a log. The log has no later entry, except in the ledger that Target
// names.
type ledgerClosed struct {
	noRun
	Target string `json:"target"`
}

// A ledgerContinued payload follows the entry that closed the old ledger of the log.
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
func (*callDelegated) eventType() Type     { return CallDelegated }
func (*callReported) eventType() Type      { return CallReported }
func (*callRewritten) eventType() Type     { return CallRewritten }
func (*callUnreported) eventType() Type    { return CallUnreported }
func (*reportLate) eventType() Type        { return ReportLate }
func (*promptCaptured) eventType() Type    { return PromptCaptured }
func (*runEnded) eventType() Type          { return RunEnded }
func (*outcomeDelivered) eventType() Type  { return OutcomeDelivered }
func (*mcpPassed) eventType() Type         { return MCPPassed }
func (*bundleActivated) eventType() Type   { return BundleActivated }
func (*commandStarted) eventType() Type    { return CommandStarted }
func (*tokenCreated) eventType() Type      { return TokenCreated }
func (*tokenRevoked) eventType() Type      { return TokenRevoked }
func (*identityBlocked) eventType() Type   { return IdentityBlocked }
func (*identityUnblocked) eventType() Type { return IdentityUnblocked }
func (*connectionMade) eventType() Type    { return ConnectionMade }
func (*connectionEnded) eventType() Type   { return ConnectionEnded }
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
	new(runClaimed), new(proxySent), new(toolResult), new(callDelegated), new(callReported), new(callRewritten),
	new(callUnreported), new(reportLate), new(promptCaptured), new(runEnded), new(outcomeDelivered), new(mcpPassed), new(bundleActivated), new(commandStarted),
	new(tokenCreated), new(tokenRevoked),
	new(identityBlocked), new(identityUnblocked), new(connectionMade), new(connectionEnded), new(accessRefused), new(keyAdded), new(keyRemoved), new(ledgerPruned),
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
	return err == nil && p.class() != ClassRun && t != MCPPassed
}

// classOf returns the class of an entry whose events have these types; empty for an unknown type.
func classOf(types []Type) Class {
	if len(types) == 0 {
		return ""
	}
	p, err := newPayload(types[0])
	if err != nil {
		return ""
	}
	return p.class()
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
