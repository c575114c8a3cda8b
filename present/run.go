// Package present holds the one form in which the CLI, the API, web hooks and the console show runs, calls, approvals and tools.
package present

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/visible"
	"pgfsm/traces/ledger"
)

// SchemaVersion is the version of every document that this package defines.
const SchemaVersion = 1

// A Call is the tool call of a run, as it was judged and as approvers decide about it. Once a run is held, its call does not
// change any more. Every member but OnBehalfOf is always present; a member that does not apply is empty.
type Call struct {
	Run        string           `json:"run"`
	Actor      string           `json:"actor"`
	OnBehalfOf string           `json:"on_behalf_of,omitzero"` // the person for whom an agent acts; absent for others
	Task       string           `json:"task"`
	Env        string           `json:"env"`
	Server     string           `json:"server"`
	Tool       string           `json:"tool"`
	Arguments  canonical.Digest `json:"arguments"`
	Definition canonical.Digest `json:"definition"`
	Bundle     canonical.Digest `json:"bundle"`
	RiskMode   string           `json:"risk_mode"`
	RiskScore  int              `json:"risk_score"`
	Policy     string           `json:"policy"`
	Binding    canonical.Digest `json:"binding"`
	Approvers  []string         `json:"approvers"`
	Quorum     int              `json:"quorum"`
	Expires    string           `json:"expires"`
}

// NewCall returns the call of a request.
func NewCall(q *ledger.Request) Call {
	return Call{
		Run: q.RunID, Actor: q.Actor, OnBehalfOf: q.OnBehalfOf, Task: q.Task, Env: q.Env, Server: q.Server, Tool: q.Tool, Arguments: q.Arguments,
		Definition: q.Definition, Bundle: q.Bundle, RiskMode: q.Mode, RiskScore: q.Score, Policy: q.Policy, Binding: q.Binding,
		Approvers: append([]string{}, q.Approvers...), Quorum: q.Quorum, Expires: q.Expires,
	}
}

// A Run is the current state of a run. Every member but Args and Unverified is always present; a member that does not apply is empty.
type Run struct {
	Call
	Args      jsontext.Value   `json:"args,omitzero"` // as they would be sent; absent from pages and from runs without a call
	Kind      string           `json:"kind"`
	Status    ledger.Status    `json:"status"`
	State     string           `json:"state"`
	Code      string           `json:"code"`
	Reason    string           `json:"reason"`
	Agreed    int              `json:"agreed"`
	At        string           `json:"at"`
	Updated   string           `json:"updated"`
	Sent      string           `json:"sent"`
	Ended     string           `json:"ended"`
	Owner     string           `json:"owner"`
	Steps     int              `json:"steps"`
	Head      canonical.Digest `json:"head"`
	Trace     string           `json:"trace_id"`      // of the agent's request
	CallTrace string           `json:"call_trace_id"` // of an approved call

	Unverified bool `json:"unverified,omitzero"` // the call was refused before anything checked that server, tool and arguments fit
}

// NewRun returns a run without its arguments.
func NewRun(q *ledger.Request) Run {
	return Run{
		Call: NewCall(q), Kind: q.Kind, Status: q.Status, State: string(q.State), Code: q.Code, Reason: q.Reason, Agreed: q.Agreed,
		At: q.At, Updated: q.Updated, Sent: q.Sent, Ended: q.Ended, Owner: q.Owner, Steps: q.Steps, Head: q.Head, Trace: q.Trace, CallTrace: q.CallTrace,
		Unverified: q.Server+q.Tool != "" && !q.Validated(),
	}
}

// RunWithArgs returns a run with its arguments.
func RunWithArgs(r ledger.Reader, q *ledger.Request) (run Run, err error) {
	run = NewRun(q)
	run.Args, err = q.Call(r)
	return run, err
}

// Overdue reports whether a pending run has expired at a time, also if nobody has recorded that yet.
func (r *Run) Overdue(now string) bool {
	return r.Status == ledger.Pending && !policy.Before(now, r.Expires)
}

// maxWords bounds in bytes what Standing shows of the approvers.
const maxWords = 200

// Standing describes the status of a run in a few words: of a pending run also how many people agreed, who may, and until when.
func (r *Run) Standing(now string) string {
	if r.Status != ledger.Pending {
		return string(r.Status)
	}
	until := "until " + r.Expires
	if r.Overdue(now) {
		until = "expired " + r.Expires
	}
	by := ""
	if len(r.Approvers) > 0 {
		by = " by " + visible.Clip(r.approvers(), maxWords)
	}
	return fmt.Sprintf("pending, %d of %d%s, %s", r.Agreed, r.Quorum, by, until)
}

func (r *Run) approvers() string { return strings.Join(r.Approvers, " or ") }

// A Row is one line of what people read. Neither the name nor the value is escaped.
type Row struct{ Name, Value string }

// filled returns the rows that have a value.
func filled(rows []Row) (out []Row) {
	for _, row := range rows {
		if row.Value != "" {
			out = append(out, row)
		}
	}
	return out
}

func (r *Run) risk() string {
	if r.RiskMode == "" {
		return ""
	}
	return fmt.Sprintf("%s, score %d", r.RiskMode, r.RiskScore)
}
