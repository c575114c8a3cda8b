// Package present holds the one form in which the CLI, the API, web hooks and the console show
// runs, calls, approvals and tools.
package present

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/runner/explain"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/policy/evidence"
	"pgfsm/states"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

// SchemaVersion is the version of every document that this package defines.
const SchemaVersion = 1

// A Call is the tool call of a run, in the form that gates judge and approvers decide about. Once a
// run is held, its call does not change any more. Every member but OnBehalfOf and the display names
// is always present; a member that does not apply is empty.
type Call struct {
	Run   string `json:"run"`
	Actor string `json:"actor"`
	// The actor's name for people; absent if there is none.
	Display string `json:"display,omitzero"`
	// The person for whom an agent acts; absent for others.
	OnBehalfOf string           `json:"on_behalf_of,omitzero"`
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

	OnBehalfOfDisplay string `json:"on_behalf_of_display,omitzero"` // that person's name for people
}

// NewCall returns the call of a request.
func NewCall(q *ledger.RunRow) Call {
	return Call{
		Run:               q.RunID,
		Actor:             q.Actor,
		OnBehalfOf:        q.OnBehalfOf,
		Task:              q.Task,
		Env:               q.Env,
		Server:            q.Server,
		Tool:              q.Tool,
		Arguments:         q.Arguments,
		Definition:        q.Definition,
		Bundle:            q.Bundle,
		RiskMode:          q.Mode,
		RiskScore:         q.Score,
		Policy:            q.Policy,
		Binding:           q.Binding,
		Approvers:         append([]string{}, q.Approvers...),
		Quorum:            q.Quorum,
		Expires:           q.Expires,
		Display:           q.Display,
		OnBehalfOfDisplay: q.OnBehalfOfDisplay,
	}
}

// Requester returns the actor's name for people.
func (c Call) Requester() string { return policy.FullName(c.Actor, c.Display) }

// Person returns the name for people of the person for whom an agent acts.
func (c Call) Person() string { return policy.FullName(c.OnBehalfOf, c.OnBehalfOfDisplay) }

// shownTail is the number of a name's last characters beside a display name if there is no room for
// the whole name.
const shownTail = 8

// ShortName returns an actor's name for people, escaped, in at most width characters. It keeps the
// end of the name: a provider's subjects begin with the issuer, and only the end distinguishes two
// actors with the same display name.
func ShortName(name, display string, width int) string {
	name, display = visible.Text(name), visible.Text(display)
	if full := policy.FullName(name, display); utf8.RuneCountInString(full) <= width {
		return full
	}
	if display == "" {
		return cutFront(name, width)
	}
	tail := " (" + cutFront(name, shownTail+1) + ")"
	runes := []rune(display)
	if room := max(width-utf8.RuneCountInString(tail), 1); len(runes) > room {
		runes = append(runes[:room-1], '…')
	}
	return string(runes) + tail
}

// cutFront keeps the end of s.
func cutFront(s string, width int) string {
	if runes := []rune(s); len(runes) > width {
		return "…" + string(runes[len(runes)-width+1:])
	}
	return s
}

// SameDisplay returns a text that names the actors of the runs if several share the display name
// who; otherwise it returns "".
func SameDisplay(who string, runs []Run) string {
	var actors []string
	for i := range runs {
		if who != "" && !slices.Contains(actors, runs[i].Actor) {
			actors = append(actors, runs[i].Actor)
		}
	}
	if len(actors) < 2 {
		return ""
	}
	slices.Sort(actors)
	return fmt.Sprintf("%s is the name of %d actors of these runs: %s. To see the runs of one, give its whole name.",
		who, len(actors), strings.Join(actors, ", "))
}

// A Run is the current state of a run. Every member but Args and Unverified is always present; a
// member that does not apply is empty.
type Run struct {
	Call
	// Arguments in the form for the server; absent from pages and from runs without a call.
	Args      jsontext.Value   `json:"args,omitzero"`
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
	Trace     string           `json:"trace_id"`      // trace id of the agent's request
	CallTrace string           `json:"call_trace_id"` // trace id of an approved call

	Session    string `json:"session,omitzero"`     // the client's session
	ClientCall string `json:"client_call,omitzero"` // the client's id of the call

	// The call was refused before a check of server, tool and arguments.
	Unverified bool `json:"unverified,omitzero"`
}

// ReadRuns returns one page of the runs that a filter chooses. next is the id of its last run,
// after which the next page begins; empty on the last page.
func ReadRuns(r ledger.Reader, f ledger.Filter, size int) (runs []Run, next string, err error) {
	f.Limit = size + 1 // one more row shows whether there is a next page
	runs = []Run{}
	for q, err := range r.Runs(f) {
		if err != nil {
			return nil, "", err
		}
		if len(runs) == size {
			return runs, runs[size-1].Run, nil
		}
		runs = append(runs, NewRun(&q))
	}
	return runs, "", nil
}

// NewRun returns a run without its arguments.
func NewRun(q *ledger.RunRow) Run {
	return Run{
		Call:       NewCall(q),
		Kind:       q.Kind,
		Status:     q.Status,
		State:      string(q.State),
		Code:       q.Code,
		Reason:     q.Reason,
		Agreed:     q.Agreed,
		At:         q.At,
		Updated:    q.Updated,
		Sent:       q.Sent,
		Ended:      q.Ended,
		Owner:      q.Owner,
		Steps:      q.Steps,
		Head:       q.Head,
		Trace:      q.Trace,
		CallTrace:  q.CallTrace,
		Session:    q.Session,
		ClientCall: q.ClientCall,
		Unverified: q.Server+q.Tool != "" && !q.Validated(),
	}
}

// RunWithArgs returns a run with its arguments.
func RunWithArgs(r ledger.Reader, q *ledger.RunRow) (run Run, err error) {
	run = NewRun(q)
	run.Args, err = q.ReadArgs(r)
	return run, err
}

// ByClient reports whether the client makes the call of the run itself.
func (r *Run) ByClient() bool { return states.Delegates(r.Kind) }

// Overdue reports whether a pending run has expired at a time, even if no process has recorded that
// yet.
func (r *Run) Overdue(now string) bool {
	return r.Status == ledger.Pending && !policy.IsBefore(now, r.Expires)
}

// maxWords bounds the text about the approvers in StatusText, in bytes.
const maxWords = 200

// StatusText describes the status of a run in a few words. For a pending run, it includes the
// number of approvals, the approvers and the expiry.
func (r *Run) StatusText(now string) string {
	if r.Status != ledger.Pending {
		return string(r.Status)
	}
	expiry := "until " + r.Expires
	if r.Overdue(now) {
		expiry = "expired " + r.Expires
	}
	approvers := ""
	if len(r.Approvers) > 0 {
		approvers = " by " + visible.Clip(r.approverText(), maxWords)
	}
	return fmt.Sprintf("pending, %d of %d%s, %s", r.Agreed, r.Quorum, approvers, expiry)
}

func (r *Run) approverText() string { return strings.Join(r.Approvers, " or ") }

// A Row is one line for people. Neither the name nor the value is escaped.
type Row struct{ Name, Value string }

// filledRows returns the rows that have a value.
func filledRows(rows []Row) (out []Row) {
	for _, row := range rows {
		if row.Value != "" {
			out = append(out, row)
		}
	}
	return out
}

func (r *Run) riskText() string {
	if r.RiskMode == "" {
		return ""
	}
	return fmt.Sprintf("%s, score %d", r.RiskMode, r.RiskScore)
}

// Steps holds the recorded steps of a run. Every member is always present.
type Steps struct {
	SchemaVersion int                `json:"schema_version"`
	Run           string             `json:"run"`
	UnderWay      bool               `json:"under_way"` // the run continues: further steps follow
	Steps         []Step             `json:"steps"`
	Summary       []evidence.Located `json:"summary"` // the result's summary, for auditors; empty without one
}

// A Step is one step of a run, with the verdict that led to it.
type Step struct {
	Seq     int            `json:"seq"`
	At      string         `json:"at"`
	From    string         `json:"from"`
	Trigger string         `json:"trigger"`
	To      string         `json:"to"`
	Verdict policy.Verdict `json:"verdict"` // empty if nothing was judged
}

// NewSteps returns the steps of a run. The summary repeats parts of the result, so only auditors
// get it.
func NewSteps(run string, recorded []traces.Step, underWay, auditor bool) Steps {
	d := Steps{
		SchemaVersion: SchemaVersion,
		Run:           run,
		UnderWay:      underWay,
		Steps:         []Step{},
		Summary:       []evidence.Located{},
	}
	for i := range recorded {
		s := &recorded[i]
		var fact struct {
			Verdict policy.Verdict     `json:"verdict"`
			Items   []evidence.Located `json:"items"`
		}
		_ = json.Unmarshal(s.Facts, &fact) // other facts have no verdict, so it stays empty
		d.Steps = append(d.Steps, Step{s.Seq, s.At, string(s.From), string(s.Trigger), string(s.To), fact.Verdict})
		if auditor && s.To == states.Summarized {
			d.Summary = append(d.Summary, fact.Items...)
		}
	}
	return d
}

// A Token is a token without its secret.
type Token struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Role    string `json:"role"`
	Active  bool   `json:"active"`
	Created string `json:"created"`
	Expires string `json:"expires"` // empty: never
	Revoked string `json:"revoked"` // empty: not revoked
}

// NewToken returns a token with its status at a time.
func NewToken(t *ledger.Token, now string) Token {
	return Token{t.ID, t.Name, t.Role, t.Active(now), t.Created, t.Expires, t.Revoked}
}

// ExpiryText describes the expiry of the token.
func (t *Token) ExpiryText() string {
	switch {
	case t.Revoked != "":
		return "revoked " + t.Revoked
	case !t.Active:
		return "expired " + t.Expires
	case t.Expires == "":
		return "expires never"
	}
	return "expires " + t.Expires
}

// Health reports whether a service can do its work. Each row has a stable name and its meaning.
type Health struct {
	Reasons  []Row // causes that make the service unready; empty: it is ready
	Warnings []Row // problems that leave the service ready
}

// Ready reports whether the service can do its work.
func (h *Health) Ready() bool { return len(h.Reasons) == 0 }

// A Question asks what every gate would decide about a call that nobody makes.
type Question = explain.Question

// A QuestionError reports a fault in a [Question].
type QuestionError = explain.QuestionError

// An Explanation answers a [Question].
type Explanation struct {
	SchemaVersion int `json:"schema_version"`
	*explain.Explanation
}

// A Reload describes the successful reload of a gateway's configuration.
type Reload struct {
	SchemaVersion int              `json:"schema_version"`
	Bundle        canonical.Digest `json:"bundle"`   // digest of the active bundle
	Previous      canonical.Digest `json:"previous"` // digest of the formerly active bundle
	Changed       []string         `json:"changed"`  // keys of the configuration whose new values are active
	Restart       []string         `json:"restart"`  // keys whose new values are not active before a restart
	Warnings      []string         `json:"warnings"`
	Tests         int              `json:"tests"` // number of passed tests in tests.yaml beside the policy
	Compared      *ReloadCompared  `json:"compared,omitzero"`
}

// ReloadCompared compares how the policies and risk rules before and after a reload judge the
// ledger's newest calls.
type ReloadCompared struct {
	Calls int `json:"calls"` // calls judged by both
	// Time of the oldest call's request; empty without calls.
	Since   string `json:"since"`
	Partial bool   `json:"partial"` // there are older calls
	// Calls by kind of change, in the terms of pgfsm policy diff; without kinds that have no calls.
	Kinds     map[string]int `json:"kinds"`
	Otherwise int            `json:"decided_otherwise"` // number of calls with a different decision
	// The newest runs with a different decision, at most MaxReloadRuns.
	Runs    []ReloadRun `json:"runs"`
	Skipped int         `json:"skipped"` // calls that cannot be compared
}

// MaxReloadRuns bounds the runs of [ReloadCompared].
const MaxReloadRuns = 10

// A ReloadRun is a call with a different decision.
type ReloadRun struct {
	Run    string `json:"run"`
	Tool   string `json:"tool"` // server and tool
	Before string `json:"before"`
	After  string `json:"after"`
	By     string `json:"by"` // the policy that decides now
}

// CommandLine writes a command for a shell, with quotes where a word needs them.
func CommandLine(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		if quoted[i] = word; !visible.PlainWord(word) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return visible.Text(strings.Join(quoted, " "))
}
