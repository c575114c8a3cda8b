package present

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/risk"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// An Approval holds everything that an approval of a held call binds to. It comes from executing the run's record again.
type Approval struct {
	SchemaVersion int                 `json:"schema_version"`
	Request       Run                 `json:"request"`
	Asked         canonical.Text      `json:"asked"`
	Bound         states.Binding      `json:"bound"` // request.binding is its digest
	Definition    jsontext.Value      `json:"definition"`
	Risk          []risk.Contribution `json:"risk"`
	Condition     string              `json:"condition"` // the policy's condition that matched
	Reason        string              `json:"reason"`    // reason for holding the call
	Votes         []policy.Vote       `json:"votes"`
}

// NewApproval returns the bound content of a held call.
func NewApproval(b *ledger.Bound) Approval {
	a := Approval{
		SchemaVersion: SchemaVersion, Request: NewRun(&b.Request), Asked: b.Asked, Bound: b.Held.Bound, Definition: b.Definition,
		Risk: append([]risk.Contribution{}, b.Assessed.Risk...), Condition: b.Assessed.Condition, Reason: b.Held.Reason,
		Votes: append([]policy.Vote{}, b.Votes...),
	}
	a.Request.Args = b.Args
	return a
}

// Rows describes the approval for people, without arguments, definition, risk rules and votes.
func (a *Approval) Rows(now string) []Row {
	r := &a.Request
	matched := r.Policy
	if a.Condition != "" {
		matched += " (" + a.Condition + ")"
	}
	signIn := ""
	if ms := a.Bound.Fresh; ms != 0 {
		signIn = fmt.Sprintf("votes count only in the console, within %s after signing in", time.Duration(ms)*time.Millisecond)
	}
	ended := r.Reason
	if ended == a.Reason {
		ended = ""
	}
	return filled([]Row{
		{"Run", r.Run}, {"Status", r.StatusText(now)}, {"Requested", r.At}, {"Requester", r.Requester()}, {"On behalf of", r.Person()}, askedRow(string(a.Asked)), {"Task", r.Task},
		{"Environment", r.Env}, {"Server", r.Server}, {"Tool", r.Tool}, {"Risk", r.risk()}, {"Policy", matched}, {"Sign-in", signIn},
		{"Held because", a.Reason}, {"Code", r.Code}, {"Reason", ended},
	})
}

// askedRow returns the row with the actor's question or the JSON of its request.
func askedRow(text string) Row {
	if v := jsontext.Value(text); v.IsValid() && v.Kind() == '{' {
		return Row{"Request", text}
	}
	return Row{"Question", text}
}

// RiskRule describes the contribution of one risk rule for people.
func RiskRule(c *risk.Contribution) string {
	s := fmt.Sprintf("%s: %s, score %d: %s", c.Rule, c.Mode, c.Score, c.Reason)
	if c.Failed != "" {
		s += " (could not be evaluated: " + c.Failed + ")"
	}
	return s
}
