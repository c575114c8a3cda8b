package states

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/redact"
)

// A Command is a request for an effect, named in the imperative.
type Command interface {
	isCommand()
}

// ListTools requests the current tools of every configured server.
type ListTools struct {
	Do      string   `json:"do"`
	Servers []string `json:"servers"`

	// The bundle that judged an approved run; the event says if another bundle is active now.
	Judged *policy.Bundle `json:"-"`
}

// Complete requests a completion: the planner's plan or the summarizer's summary. It names the
// inputs, not the prompt, which package llm builds: so a new prompt does not break an old trace.
type Complete struct {
	Do string `json:"do"`
	// The digest of the catalog for a plan, of the typed payload for a summary.
	Input   canonical.Digest `json:"input"`
	Planner string           `json:"planner"`
	// The version of the prompt that is made of the inputs; empty without a model.
	Prompt  string `json:"prompt"`
	Purpose string `json:"purpose"` // "plan" or "summary"

	Request string         `json:"-"` // the header has it
	Tools   []*policy.Tool `json:"-"` // the effective allowlist; the ToolsListed event has it
	Typed   []byte         `json:"-"` // the ToolReturned event has it
}

// Purposes of a completion.
const (
	PurposePlan    = "plan"
	PurposeSummary = "summary"
)

// ReadHistory requests the earlier calls, and counts the run's own call from then on.
type ReadHistory struct {
	Do      string                `json:"do"`
	Origins bool                  `json:"origins,omitzero"` // also find where the arguments come from
	Queries []policy.HistoryQuery `json:"queries"`
	Task    bool                  `json:"task"` // also count the calls of the run's task, by tool
}

// AwaitDecision requests the approvers' decision about exactly the bound call.
type AwaitDecision struct {
	Binding canonical.Digest `json:"binding"`
	Do      string           `json:"do"`
}

// AwaitReport requests the client's report about the call that it makes itself. Only the stage delegated
// gives it.
type AwaitReport struct {
	Do     string           `json:"do"`
	Permit canonical.Digest `json:"permit"`
}

// CallTool requests the one tools/call. Only the stage dispatched gives it.
type CallTool struct {
	Arguments canonical.Digest `json:"arguments"`
	Do        string           `json:"do"`
	Permit    canonical.Digest `json:"permit"`
	Round     canonical.Digest `json:"round,omitempty"`
	Server    string           `json:"server"`
	Tool      string           `json:"tool"`
	Trace     *TraceContext    `json:"trace,omitzero"` // goes into _meta

	Beside []byte           `json:"-"` // the answers to questions of the server (round); the header has them
	Bytes  canonical.Object `json:"-"` // the permitted fact has them
	Run    string           `json:"-"` // the header has it
}

func (*ListTools) isCommand()     {}
func (*Complete) isCommand()      {}
func (*ReadHistory) isCommand()   {}
func (*AwaitDecision) isCommand() {}
func (*CallTool) isCommand()      {}
func (*AwaitReport) isCommand()   {}

// An Event is the outcome of a command, named in the past tense.
type Event interface {
	// eventName returns the member with the event's name, and the name.
	eventName() (member *string, name string)
}

// ToolsListed contains every server's answer, in the operator's order of servers. For a cached
// listing, it contains only the call's server, with the definitions of the call's tool. For an
// approved run, it contains the active bundle if that is not the run's: the call is judged again by
// both.
type ToolsListed struct {
	Bundle   *ActiveBundle    `json:"bundle,omitzero"`
	Happened string           `json:"happened"`
	Cached   *Cached          `json:"kept,omitzero"`
	Servers  []policy.Listing `json:"servers"`

	encoded jsontext.Value   // the canonical form, if the event is shared
	digest  canonical.Digest // the digest of the servers, likewise
}

// ActiveBundle is the operator's bundle at the time of an approved call, as it applies to the run;
// see [policy.Bundle.Active].
type ActiveBundle struct {
	Content jsontext.Value   `json:"content"`
	Digest  canonical.Digest `json:"digest"`
}

// Cached has the digest and the age of a cached listing.
type Cached struct {
	Age     int              `json:"age_s"`   // whole seconds, rounded up
	Catalog canonical.Digest `json:"catalog"` // the digest of the server's whole answer
}

// Completed contains the output of a planner or summarizer and, if a model was asked, the exact
// bytes of the exchanges.
type Completed struct {
	Content   canonical.Text `json:"content"`
	Exchanges []Exchange     `json:"exchanges"`
	Happened  string         `json:"happened"`
	// The model's text instead of an answer, if it refused.
	Refusal canonical.Text `json:"refusal,omitempty"`
}

// Exchange is one request to a model's endpoint and its response, as far as it was read. A status
// of 0 means that there was no response.
type Exchange struct {
	Received canonical.Text `json:"received"`
	Sent     canonical.Text `json:"sent"`
	Status   int            `json:"status"`
}

// HistoryRead contains the earlier calls: those that were sent, and those that were running or
// held.
type HistoryRead struct {
	Calls    []policy.TaskCalls     `json:"calls"` // the calls of the run's task, by server and tool
	Happened string                 `json:"happened"`
	Origins  *Origins               `json:"origins,omitzero"`
	Values   []policy.HistoryAnswer `json:"values"` // one for each query, in order
}

// Decided contains the votes about a held call, or none if its time is over. The gate decides what
// follows.
type Decided struct {
	At       string           `json:"at"` // RFC 3339, UTC: the "now" of the decision
	Binding  canonical.Digest `json:"binding"`
	Call     string           `json:"call,omitzero"` // the client's id of the call that asked again
	Happened string           `json:"happened"`
	// A call of the request's session ran with other arguments than the permitted ones, since the hold or before.
	Rewritten bool `json:"rewritten,omitzero"`
	// The context of the approved call, if pgfsm exports spans.
	Trace *TraceContext `json:"trace,omitzero"`
	// The votes in order; none if no approver decided in time.
	Votes []policy.Vote `json:"votes"`
}

// ToolReturned holds the result of the one tools/call: the exact bytes, but for masked secrets and what rules
// removed.
type ToolReturned struct {
	Happened string         `json:"happened"`
	Redacted []redact.Hit   `json:"redacted,omitempty"` // what was removed before the machine saw the result
	Result   canonical.Text `json:"result"`

	members []canonical.Member // nil if the result was not read strictly yet
}

// NewToolReturned is the event of a result whose members were read strictly; nil if they were not.
func NewToolReturned(result []byte, members []canonical.Member) *ToolReturned {
	return &ToolReturned{Result: result, members: members}
}

// CallReported is what the client says about the call that it made itself.
type CallReported struct {
	// The digest of the arguments with which the call ran; empty: the client does not say.
	Arguments canonical.Digest `json:"arguments,omitzero"`
	At        string           `json:"at"`              // RFC 3339, UTC
	Bytes     int              `json:"bytes,omitzero"`  // the size of the result
	Failed    bool             `json:"failed,omitzero"` // the call failed
	Happened  string           `json:"happened"`
	// The arguments with which the call ran, canonical, if they are others than the permitted ones.
	Ran    jsontext.Value   `json:"ran,omitzero"`
	Result canonical.Digest `json:"result,omitzero"` // the digest of the result; empty: the client does not say
}

// ReportLapsed means that no report came in time.
type ReportLapsed struct {
	At       string `json:"at"` // RFC 3339, UTC
	Happened string `json:"happened"`
	Reason   string `json:"reason"`
}

// EffectFailed is a failed effect. Effect says whether the call may have happened.
type EffectFailed struct {
	Code   policy.Code `json:"code"`
	Effect Effect      `json:"effect"`
	// The exchanges with a model's endpoint, as far as they went.
	Exchanges []Exchange   `json:"exchanges,omitempty"`
	Happened  string       `json:"happened"`
	Reason    string       `json:"reason"`
	Redacted  []redact.Hit `json:"redacted,omitempty"` // what was removed from the server's error
}

// Interrupted is an event without a command: the caller cancelled the run, its time ran out, or its
// process died.
type Interrupted struct {
	// Cancelled, deadline_exceeded, interrupted, tool_definition_changed, approval_expired,
	// approval_mismatch, bundle_changed, build_changed or too_many_held.
	Code     policy.Code `json:"code"`
	Happened string      `json:"happened"`
	Reason   string      `json:"reason"`
}

func (e *ToolsListed) eventName() (*string, string)  { return &e.Happened, toolsListed }
func (e *Completed) eventName() (*string, string)    { return &e.Happened, completed }
func (e *HistoryRead) eventName() (*string, string)  { return &e.Happened, historyRead }
func (e *Decided) eventName() (*string, string)      { return &e.Happened, decided }
func (e *ToolReturned) eventName() (*string, string) { return &e.Happened, toolReturned }
func (e *CallReported) eventName() (*string, string) { return &e.Happened, callReported }
func (e *ReportLapsed) eventName() (*string, string) { return &e.Happened, reportLapsed }
func (e *EffectFailed) eventName() (*string, string) { return &e.Happened, effectFailed }
func (e *Interrupted) eventName() (*string, string)  { return &e.Happened, interrupted }

// Effect says whether the call may have happened.
type Effect string

// The three effects. The empty Effect is that of a run without a call.
const (
	NotSent       Effect = "not_sent"
	EffectUnknown Effect = "unknown"
	EffectDone    Effect = "done"
)

// The words that name events and commands in a trace.
const (
	doListTools     = "list_tools"
	doComplete      = "complete"
	doReadHistory   = "read_history"
	doAwaitDecision = "await_decision"
	doCallTool      = "call_tool"
	doAwaitReport   = "await_report"

	toolsListed  = "tools_listed"
	completed    = "completed"
	historyRead  = "history_read"
	decided      = "decided"
	toolReturned = "tool_returned"
	callReported = "call_reported"
	reportLapsed = "report_lapsed"
	effectFailed = "effect_failed"
	interrupted  = "interrupted"
)

// setHappened writes the event's name into it, unless the event is shared and complete, so that no
// code can forget or confuse the name.
func setHappened(ev Event) Event {
	if listed, ok := ev.(*ToolsListed); ok && listed.encoded != nil {
		return ev
	}
	member, name := ev.eventName()
	*member = name
	return computeDerived(ev)
}

// DecodeShared is [DecodeEvent] for an event that many runs share. Derived values are computed
// once.
func DecodeShared(raw jsontext.Value) (Event, error) {
	ev, err := DecodeEvent(raw)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(canonical.MustSorted(computeDerived(ev)), raw) {
		return nil, errors.New("the event is not in canonical form")
	}
	return ev, nil
}

// computeDerived computes the large derived values. It must not be called for an event that is
// already shared.
func computeDerived(ev Event) Event {
	if listed, ok := ev.(*ToolsListed); ok && listed.encoded == nil {
		listed.encoded = canonical.MustSorted(listed)
		listed.digest = listed.catalogDigest()
	}
	return ev
}

// Catalog names what the servers sent: every answer, byte for byte, in order.
func (e *ToolsListed) Catalog() canonical.Digest {
	if e.digest != "" {
		return e.digest
	}
	return e.catalogDigest()
}

// catalogDigest omits the age of the listing and the bundle: the same definitions are the same
// catalog.
func (e *ToolsListed) catalogDigest() canonical.Digest {
	if e.Cached == nil && e.Bundle == nil && e.encoded != nil {
		return canonical.Sum("catalog", e.encoded)
	}
	return canonical.Sum("catalog", canonical.MustSorted(&ToolsListed{Happened: toolsListed, Servers: e.Servers}))
}

// Shared returns the event of a listing that many runs use. Derived values are computed once.
func Shared(listed *ToolsListed) *ToolsListed { return setHappened(listed).(*ToolsListed) }

// CachedPart is the event of a listing that was cached for age seconds, with the tools of part
// only. The whole listing must be [Shared].
func CachedPart(whole *ToolsListed, part policy.Listing, age int) *ToolsListed {
	return Shared(&ToolsListed{Cached: &Cached{Age: age, Catalog: whole.Catalog()}, Servers: []policy.Listing{part}})
}

// DecodeEvent reads an event as a trace holds it. An unknown event, member or value is an error;
// null is no event.
func DecodeEvent(raw jsontext.Value) (Event, error) {
	if raw.Kind() == 'n' {
		return nil, nil
	}
	var kind struct {
		Happened string `json:"happened"`
	}
	if err := json.Unmarshal(raw, &kind); err != nil {
		return nil, err
	}

	var ev Event
	switch kind.Happened {
	case toolsListed:
		ev = new(ToolsListed)
	case completed:
		ev = new(Completed)
	case historyRead:
		ev = new(HistoryRead)
	case decided:
		ev = new(Decided)
	case toolReturned:
		ev = new(ToolReturned)
	case callReported:
		ev = new(CallReported)
	case reportLapsed:
		ev = new(ReportLapsed)
	case effectFailed:
		ev = new(EffectFailed)
	case interrupted:
		ev = new(Interrupted)
	default:
		return nil, fmt.Errorf("unknown event %q", kind.Happened)
	}

	if err := canonical.Unmarshal(raw, ev); err != nil {
		return nil, err
	}

	return ev, checkEvent(ev)
}

// Interruption makes the event of a run that is interrupted.
func Interruption(code policy.Code, reason string) Event {
	return setHappened(&Interrupted{Code: code, Reason: reason})
}
