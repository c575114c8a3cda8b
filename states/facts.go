package states

import (
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/evidence"
	"pgfsm/policy/redact"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// A Fact is the result of one step, with the digests of its inputs. Guards see it on the run, and
// the trace records it. The members of every fact are in canonical order.
type Fact interface {
	addTo(*Facts)
}

// Facts holds all facts of a run so far. A fact is nil if the run has not reached its state.
type Facts struct {
	Screened   *ScreenedFact
	Discovered *DiscoveredFact
	Planned    *PlannedFact
	Validated  *ValidatedFact
	Authorized *AuthorizedFact
	Assessed   *AssessedFact
	Held       *HeldFact
	Approved   *ApprovedFact
	Permitted  *PermittedFact
	Dispatched *DispatchedFact
	Executed   *ExecutedFact
	Typed      *TypedFact
	Summarized *SummarizedFact
	Answered   *AnsweredFact
	Delegated  *DelegatedFact
	Reported   *ReportedFact
	Unreported *UnreportedFact
	Asked      *AskedFact
	Stopped    *StoppedFact
}

// ConsumedPermit returns the permit with which the call was sent or handed out; empty if neither.
func (f Facts) ConsumedPermit() canonical.Digest {
	switch {
	case f.Dispatched != nil:
		return f.Dispatched.Permit
	case f.Delegated != nil:
		return f.Delegated.Permit
	}
	return ""
}

// ScreenedFact: the input policy judged the request.
type ScreenedFact struct {
	Bundle  canonical.Digest `json:"bundle"`
	Request canonical.Digest `json:"request"`
	Verdict policy.Verdict   `json:"verdict"`
}

// DiscoveredFact: the live catalog.
type DiscoveredFact struct {
	Catalog   canonical.Digest `json:"catalog"`
	Effective []ToolRef        `json:"effective"`
	Servers   []ServerStatus   `json:"servers"`

	catalog *policy.Catalog
}

// ToolRef names a tool by definition.
type ToolRef struct {
	Definition canonical.Digest `json:"definition"`
	Server     string           `json:"server"`
	Tool       string           `json:"tool"`
}

// ServerStatus reports the answer of one server.
type ServerStatus struct {
	Code     policy.Code `json:"code"`
	Protocol string      `json:"protocol"`
	Reason   string      `json:"reason"`
	Server   string      `json:"server"`
	Status   string      `json:"status"`
	Tools    int         `json:"tools"`
}

// PlannedFact: one strict JSON plan.
type PlannedFact struct {
	Catalog canonical.Digest `json:"catalog"`
	Digest  canonical.Digest `json:"digest"`
	Plan    jsontext.Value   `json:"plan"` // canonical
	Verdict policy.Verdict   `json:"verdict"`

	plan *policy.Plan
}

// ValidatedFact: the plan fits the live catalog.
type ValidatedFact struct {
	Arguments  canonical.Digest `json:"arguments"`
	Definition canonical.Digest `json:"definition"`
	Dialect    string           `json:"dialect"`
	Plan       canonical.Digest `json:"plan"`
	// The operator's, in place of the tool's inputSchema.
	Schema  canonical.Digest `json:"schema,omitempty"`
	Server  string           `json:"server"`
	Tool    string           `json:"tool"`
	Verdict policy.Verdict   `json:"verdict"`

	tool *policy.Tool
}

// AuthorizedFact: the allowlist names the tool.
type AuthorizedFact struct {
	Arguments  canonical.Digest `json:"arguments"`
	Bundle     canonical.Digest `json:"bundle"`
	Definition canonical.Digest `json:"definition"`
	// The digest of the earlier calls that were read, if any.
	History canonical.Digest `json:"history,omitempty"`
	Plan    canonical.Digest `json:"plan"`
	Verdict policy.Verdict   `json:"verdict"`

	history *HistoryRead
}

// AssessedFact: risk rules and policies judged the call.
type AssessedFact struct {
	Approvers  []string               `json:"approvers,omitempty"`
	Arguments  canonical.Digest       `json:"arguments"`
	Bundle     canonical.Digest       `json:"bundle"`
	Condition  string                 `json:"condition,omitempty"`
	Definition canonical.Digest       `json:"definition"`
	Expires    string                 `json:"expires"`
	Fresh      int64                  `json:"fresh_ms,omitzero"`
	Mode       string                 `json:"mode"`
	Plan       canonical.Digest       `json:"plan"`
	Policy     string                 `json:"policy,omitempty"`
	Quorum     int                    `json:"quorum,omitzero"`
	Risk       []risk.Contribution    `json:"risk,omitempty"`
	Score      int                    `json:"score"`
	Shadow     []rules.ShadowDecision `json:"shadow,omitempty"`
	Verdict    policy.Verdict         `json:"verdict"`
}

// HeldFact: the request that approvers decide about.
type HeldFact struct {
	Binding canonical.Digest `json:"binding"`
	Bound   Binding          `json:"bound"`
	Reason  string           `json:"reason"`
}

// ApprovedFact: approvers approved the call.
type ApprovedFact struct {
	At      string           `json:"at"`
	Binding canonical.Digest `json:"binding"`
	By      []string         `json:"by"`
	Verdict policy.Verdict   `json:"verdict"`

	votes     []policy.Vote
	trace     *TraceContext
	call      string // the client's id of the call that asked again
	rewritten bool   // as in [Decided]
}

// PermittedFact: the single-use right to make one call with exactly these bytes.
type PermittedFact struct {
	Arguments jsontext.Value `json:"arguments"` // canonical: the bytes that are sent
	Assessed  policy.Verdict `json:"assessed"`  // the verdict the permit rests on, as of this step
	// Only for an approved call: the digest of the judgement by the active bundle.
	Binding canonical.Digest `json:"binding,omitempty"`
	// The bundle of the last judgement; the run goes on under it.
	Bundle     canonical.Digest `json:"bundle"`
	Definition canonical.Digest `json:"definition"`
	Permit     canonical.Digest `json:"permit"`
	Plan       canonical.Digest `json:"plan"`
	// The digest of the answers to the server's questions.
	Round  canonical.Digest `json:"round,omitempty"`
	Server string           `json:"server"`
	Tool   string           `json:"tool"`
	Trace  *TraceContext    `json:"trace,omitzero"` // the call carries it

	bundle *policy.Bundle
	tool   *policy.Tool
}

// DispatchedFact: the permit is consumed.
type DispatchedFact struct {
	Permit canonical.Digest `json:"permit"`
}

// ExecutedFact: the raw result of the one call.
type ExecutedFact struct {
	Bytes  int              `json:"bytes"`
	Permit canonical.Digest `json:"permit"`
	Result canonical.Digest `json:"result"`

	raw      []byte
	members  []canonical.Member // see ToolReturned
	redacted []redact.Hit       // likewise
	digest   canonical.Digest   // of raw
}

// Redacted says what was removed from the result before the machine saw it.
func (f *ExecutedFact) Redacted() []redact.Hit { return f.redacted }

// TypedFact: structured content of the registered output type.
type TypedFact struct {
	Definition canonical.Digest `json:"definition"`
	Result     canonical.Digest `json:"result"`
	Structured canonical.Digest `json:"structured"`
	Verdict    policy.Verdict   `json:"verdict"`

	structured []byte
}

// SummarizedFact: a summary locked to evidence.
type SummarizedFact struct {
	Items      []evidence.Located `json:"items"`
	Structured canonical.Digest   `json:"structured"`
	Verdict    policy.Verdict     `json:"verdict"`
}

// AnsweredFact: the caller gets the result; Note says why it is untyped or has no summary.
type AnsweredFact struct {
	Note   string           `json:"note"`
	Result canonical.Digest `json:"result"`
}

// DelegatedFact: the permit is handed out to the client that makes the call itself.
type DelegatedFact struct {
	Call   string           `json:"call,omitzero"` // the client's id of the call
	Permit canonical.Digest `json:"permit"`
}

// ReportedFact: what the client says about the call that it made.
type ReportedFact struct {
	// The digest of the arguments with which the call ran; empty: the client does not say.
	Arguments canonical.Digest `json:"arguments,omitzero"`
	Failed    bool             `json:"failed,omitzero"`
	Permit    canonical.Digest `json:"permit"`
	Ran       jsontext.Value   `json:"ran,omitzero"` // the arguments with which a rewritten call ran
	Result    canonical.Digest `json:"result,omitzero"`
	// The call ran with other arguments than the permitted ones.
	Rewritten bool `json:"rewritten,omitzero"`
}

// UnreportedFact: why there is no report.
type UnreportedFact struct {
	Permit canonical.Digest `json:"permit"`
	Reason string           `json:"reason"`
}

// AskedFact: the planner's question.
type AskedFact struct {
	Answer string           `json:"answer"`
	Plan   canonical.Digest `json:"plan"`
}

// StoppedFact: why a run ended as blocked or failed, and whether its call may have happened.
type StoppedFact struct {
	// The assessment, if risk rules or policies denied the call.
	Assessment *AssessedFact `json:"assessment,omitzero"`
	// The bundle that blocked an approved call, if it is not the run's.
	Bundle  canonical.Digest `json:"bundle,omitempty"`
	Effect  Effect           `json:"effect"`
	Verdict policy.Verdict   `json:"verdict"`
}

func (f *ScreenedFact) addTo(facts *Facts)   { facts.Screened = f }
func (f *DiscoveredFact) addTo(facts *Facts) { facts.Discovered = f }
func (f *PlannedFact) addTo(facts *Facts)    { facts.Planned = f }
func (f *ValidatedFact) addTo(facts *Facts)  { facts.Validated = f }
func (f *AuthorizedFact) addTo(facts *Facts) { facts.Authorized = f }
func (f *AssessedFact) addTo(facts *Facts)   { facts.Assessed = f }
func (f *HeldFact) addTo(facts *Facts)       { facts.Held = f }
func (f *ApprovedFact) addTo(facts *Facts)   { facts.Approved = f }
func (f *PermittedFact) addTo(facts *Facts)  { facts.Permitted = f }
func (f *DispatchedFact) addTo(facts *Facts) { facts.Dispatched = f }
func (f *ExecutedFact) addTo(facts *Facts)   { facts.Executed = f }
func (f *TypedFact) addTo(facts *Facts)      { facts.Typed = f }
func (f *SummarizedFact) addTo(facts *Facts) { facts.Summarized = f }
func (f *AnsweredFact) addTo(facts *Facts)   { facts.Answered = f }
func (f *DelegatedFact) addTo(facts *Facts)  { facts.Delegated = f }
func (f *ReportedFact) addTo(facts *Facts)   { facts.Reported = f }
func (f *UnreportedFact) addTo(facts *Facts) { facts.Unreported = f }
func (f *AskedFact) addTo(facts *Facts)      { facts.Asked = f }
func (f *StoppedFact) addTo(facts *Facts)    { facts.Stopped = f }
