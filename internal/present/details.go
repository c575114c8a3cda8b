package present

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/policy/risk"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// Details is one run with its arguments, votes and result.
type Details struct {
	SchemaVersion int `json:"schema_version"`
	Request       Run `json:"request"`
	// Arguments for people: indented, with invisible and look-alike characters escaped.
	Display    string         `json:"display"`
	Origins    []Origin       `json:"origins,omitempty"` // where the arguments come from
	RiskRules  []string       `json:"risk_rules"`
	Votes      []policy.Vote  `json:"votes"`
	Result     jsontext.Value `json:"result"`      // the result in the agent's form; null without one
	ResultNote string         `json:"result_note"` // the reason that a call that was made shows no result
	build      string         // version of pgfsm that began the run
	prompt     string         // the prompt of the client's session before the call
}

// NewDetails returns the details of a run, without its result.
func NewDetails(r ledger.Reader, q *ledger.RunRow) (d Details, err error) {
	d = Details{SchemaVersion: SchemaVersion, Result: jsontext.Value("null")}
	if d.Request, err = RunWithArgs(r, q); err != nil {
		return d, err
	}
	if d.Request.Args != nil {
		if d.Display, err = Display(d.Request.Args); err != nil {
			return d, err
		}
	}
	origins, err := ledger.OriginsOf(r, q.RunID)
	if err != nil {
		return d, err
	}
	if d.Origins, err = readOrigins(r, origins); err != nil {
		return d, err
	}
	if d.RiskRules, err = RiskRules(r, q.RunID); err != nil {
		return d, err
	}
	first, err := firstEvent(r, q.First)
	if err != nil {
		return d, err
	}
	if d.build, err = findBuild(r, &first); err != nil {
		return d, err
	}
	if d.prompt, err = findPrompt(r, &first); err != nil {
		return d, err
	}
	votes, err := ledger.Votes(r, q.RunID)
	d.Votes = append([]policy.Vote{}, votes...)
	return d, err
}

// findBuild returns the version of pgfsm that began a run. The run's first event refers to the entry
// that has it.
func findBuild(r ledger.Reader, first *ledger.Event) (string, error) {
	index, err := strconv.ParseInt(valueAt(first.Payload, "/gen"), 10, 64)
	if err != nil {
		return "", fmt.Errorf("entry %d: %w: the run's first event refers to no entry", first.Index, ledger.ErrChanged)
	}
	generation, err := firstEvent(r, index)
	return valueAt(generation.Payload, "/build"), err
}

// maxPromptShown bounds a prompt among the facts of a run, in bytes. The log has the whole one.
const maxPromptShown = 1000

// findPrompt describes the prompt to which a run's first event refers; empty if it refers to none, or if the
// prompt was pruned.
func findPrompt(r ledger.Reader, first *ledger.Event) (string, error) {
	index, err := strconv.ParseInt(valueAt(first.Payload, "/request/session/prompt"), 10, 64)
	if err != nil {
		return "", nil
	}
	e, err := firstEvent(r, index)
	if errors.Is(err, ledger.ErrNotFound) || err == nil && e.Type != ledger.PromptCaptured {
		return "", nil
	}
	text := valueAt(e.Payload, "/text")
	return fmt.Sprintf("%s (entry %d, by %s)", text[:min(len(text), maxPromptShown)], index, cmp.Or(valueAt(e.Payload, "/source"), "the client")), err
}

// firstEvent returns the first event of an entry.
func firstEvent(r ledger.Reader, index int64) (ledger.Event, error) {
	for e, err := range ledger.Events(r, index) {
		if err != nil || e.Index == index {
			return e, err
		}
		break
	}
	return ledger.Event{}, fmt.Errorf("entry %d: %w", index, ledger.ErrNotFound)
}

// RiskRules returns the names of the matching risk rules from the run's assessment, which is
// recorded once.
func RiskRules(r ledger.Reader, run string) ([]string, error) {
	rules := []string{}
	for e, err := range ledger.EventsOf(r, run) {
		if err != nil {
			return nil, err
		}
		if e.Type != ledger.RiskScored {
			continue
		}
		if value := valueAt(e.Payload, "/rules"); value != "" {
			if err := canonical.Unmarshal([]byte(value), &rules); err != nil {
				return nil, fmt.Errorf("entry %d: %w", e.Index, err)
			}
		}
		return rules, nil
	}
	return rules, nil
}

// Display indents arguments for people and escapes every character that does not show as itself.
func Display(args jsontext.Value) (string, error) {
	text := args.Clone()
	if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
		return "", err
	}
	return visible.Lines(string(text)), nil
}

// Rows describes the run for people, without its arguments and result, and without members that do
// not apply. The events provide the question and the policy's condition.
func (d *Details) Rows(events []Event, now string) []Row {
	r := &d.Request
	question, condition := "", ""

	for i := range events {
		switch payload := events[i].Payload; events[i].Type {
		case ledger.RequestCreated:
			// Otherwise tool and arguments are the whole request.
			if r.Kind == states.KindAsk || r.Args == nil {
				question = valueAt(payload, "/request/text")
			}
		case ledger.DecisionMade:
			condition = cmp.Or(valueAt(payload, "/condition"), condition)
		}
	}

	tool := r.Tool
	if r.Server != "" {
		tool = r.Server + " " + r.Tool
	}

	if r.Unverified {
		tool += " (unverified: the call was refused before anything checked that this tool exists)"
	}

	score := r.riskText()
	if len(d.RiskRules) > 0 {
		score += ", by " + strings.Join(d.RiskRules, ", ")
	}

	decided := r.Policy
	if condition != "" {
		decided += " (" + condition + ")"
	}

	votes := ""
	if r.Binding != "" {
		votes = fmt.Sprintf("%d of %d", r.Agreed, r.Quorum)
		if len(r.Approvers) > 0 {
			votes += ", by " + r.approverText()
		}
	}

	return filledRows([]Row{
		{"Run", r.Run}, {"Status", r.StatusText(now)}, {"State", r.State}, {"Requested", r.At},
		{"Updated", r.Updated}, {"Actor", r.Requester()}, {"On behalf of", r.Person()},
		askedRow(question), {"Task", r.Task}, {"Environment", r.Env}, {"Tool", tool}, {"Definition", string(r.Definition)},
		{"Risk", score}, {"Policy", decided}, {"Code", r.Code}, {"Reason", r.Reason}, {"Binding", string(r.Binding)},
		{"Approvals", votes},
		{"Expires", r.Expires}, {"Process", r.Owner}, {r.sentName(), r.Sent}, {"Ended", r.Ended}, {"Build", d.build},
		{"Bundle", string(r.Bundle)}, {"Head", string(r.Head)}, {"Trace id", r.Trace}, {"Call's trace id", r.CallTrace},
		{"Client's session", r.Session}, {"Prompt", d.prompt}, {"Client's call", r.ClientCall},
	})
}

// sentName says what the time means at which a call left pgfsm.
func (r *Run) sentName() string {
	if r.ByClient() {
		return "Permit handed out"
	}
	return "Call sent"
}

// An Approval holds everything that an approval of a held call binds to. It comes from executing
// the run's record again.
type Approval struct {
	SchemaVersion int                 `json:"schema_version"`
	Request       Run                 `json:"request"`
	Asked         canonical.Text      `json:"asked"`
	Bound         states.Binding      `json:"bound"`               // request.binding is its digest
	Connected     string              `json:"connected,omitempty"` // when the person connected bound.account; empty if it has ended
	Definition    jsontext.Value      `json:"definition"`
	Risk          []risk.Contribution `json:"risk"`
	Condition     string              `json:"condition"`         // the policy's condition that matched
	Origins       []Origin            `json:"origins,omitempty"` // where the arguments come from
	Reason        string              `json:"reason"`            // reason for holding the call
	Votes         []policy.Vote       `json:"votes"`
}

// NewApproval returns the bound content of a held call.
func NewApproval(b *ledger.Bound) Approval {
	a := Approval{
		SchemaVersion: SchemaVersion,
		Request:       NewRun(&b.Row),
		Asked:         b.Asked,
		Bound:         b.Held.Bound,
		Connected:     b.Connected,
		Definition:    b.Definition,
		Risk:          append([]risk.Contribution{}, b.Assessed.Risk...),
		Condition:     b.Assessed.Condition,
		Reason:        b.Held.Reason,
		Votes:         append([]policy.Vote{}, b.Votes...),
	}
	a.Request.Args = b.Args
	return a
}

// Rows describes for people who asked for the call, and where it is. [HeldCall.BoundRows] has what an
// approval binds.
func (a *Approval) Rows(now string) []Row {
	r := &a.Request
	ended := r.Reason
	if ended == a.Reason {
		ended = ""
	}
	return filledRows([]Row{
		{"Requester", r.Requester()}, {"On behalf of", r.Person()}, {"Requested", r.At}, {"Task", r.Task},
		a.Question(), {"Status", r.StatusText(now)}, {"Held because", a.Reason},
		{"Code", r.Code}, {"Reason", ended},
	})
}

// Question returns the row with what the actor asked.
func (a *Approval) Question() Row { return askedRow(string(a.Asked)) }

// askedRow returns the row with the actor's question or the JSON of its request.
func askedRow(text string) Row {
	if v := jsontext.Value(text); v.IsValid() && v.Kind() == '{' {
		return Row{"Request", text}
	}
	return Row{"Question", text}
}
