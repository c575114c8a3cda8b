// Package explain reports what every gate would decide about a call that nobody makes, and judges
// policy tests by the same gates.
package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pgfsm/internal/config"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/policy/ruling"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// Verdicts of gates besides those of policies.
const (
	Unknown = "unknown" // the gate cannot tell
	Assumed = "assumed" // the server is assumed to list the tool as it is pinned; the gate decides nothing
	Failed  = "failed"  // no server answered
)

// A Gate is the verdict of one gate.
type Gate struct {
	Gate    string      `json:"gate"`    // input, plan, server, allowlist, schema, grant, risk or policy
	Verdict string      `json:"verdict"` // allow, deny, pending, assumed, unknown or failed
	Code    policy.Code `json:"code,omitzero"`
	Reason  string      `json:"reason"`
}

func gateOf(name string, v policy.Verdict) Gate { return Gate{name, ruling.Word(v), v.Code, v.Reason} }

// A Call is a call that nobody makes.
type Call struct {
	Server, Tool, Actor string
	Identity            *policy.Identity
	Env                 string // empty: the configuration's
	Plan                []byte // in the form of [policy.CallPlan]
	Agent               bool   // an agent asks, not an operator
	Facts               Facts  // facts about the tool
	History             []policy.HistoryAnswer
	Task                *policy.Task // nil: no task; if its Ledger is set, its earlier calls are unknown

	declared bool              // a file of tests declares the tool: ask only the gates risk and policy
	risk     *config.GivenRisk // replaces the risk rules
	session  *policy.Session   // the client's session; nil: none is known
	origins  *policy.Origins   // nil: no session is known
}

// An Explanation holds what every gate would decide about a call. The gates are in the order of a
// run.
type Explanation struct {
	Decision  string                 `json:"decision"` // allow, deny, pending, unknown or failed
	Code      policy.Code            `json:"code,omitzero"`
	Reason    string                 `json:"reason"`
	Gates     []Gate                 `json:"gates"`
	Policy    string                 `json:"policy,omitzero"`
	Condition string                 `json:"condition,omitzero"`
	RiskMode  string                 `json:"risk_mode"`
	RiskScore int                    `json:"risk_score"`
	Risk      []risk.Contribution    `json:"risk,omitzero"`
	Policies  []rules.Considered     `json:"policies,omitzero"`
	Shadow    []rules.ShadowDecision `json:"shadow,omitzero"`
	Approvers []string               `json:"approvers,omitzero"`
	Quorum    int                    `json:"quorum,omitzero"`
	Expires   string                 `json:"expires,omitzero"`
	Fresh     int64                  `json:"fresh_ms,omitzero"`
	Facts     Facts                  `json:"known"`
}

// decidingGate returns the gate that decides: the first that denies; else the first that failed;
// else the first that is unknown; else the last.
func (x *Explanation) decidingGate() *Gate {
	for _, verdict := range []string{rules.Deny, Failed, Unknown} {
		if i := slices.IndexFunc(x.Gates, func(g Gate) bool { return g.Verdict == verdict }); i >= 0 {
			return &x.Gates[i]
		}
	}
	return &x.Gates[len(x.Gates)-1]
}

// An Explainer explains calls by one configuration.
type Explainer struct {
	bundle  *policy.Bundle
	catalog *policy.Catalog
	live    bool
	now     string
}

// New returns an Explainer. If live is true, the catalog has the servers' listings. Otherwise no
// server was asked, and the catalog has the stored definitions of pins (nil: none). now is the time
// of all calls.
func New(b *policy.Bundle, c *policy.Catalog, live bool, now string) *Explainer {
	if c == nil {
		c = new(policy.Catalog)
	}
	return &Explainer{b, c, live, now}
}

// Explain asks every gate, also the gates after one that denies. A verdict that depends on unknown
// facts is unknown.
func (e *Explainer) Explain(c *Call) *Explanation {
	x, plan := e.earlyGates(c)
	switch {
	case e.live && !e.catalog.Up():
		x.failServers(e.catalog)
	case plan == nil:
	case len(e.missingHistory(c).Queries) > 0:
		x.RiskMode = Unknown
		unknown := e.askHistory(c)
		x.Gates = append(x.Gates, Gate{Gate: "risk", Verdict: Unknown, Reason: unknown},
			Gate{Gate: "policy", Verdict: Unknown, Reason: unknown})
	default:
		e.addAssessment(c, plan.Args.Bytes(), x)
		e.checkAnnotations(c, plan.Args.Bytes(), x)
	}

	gate := x.decidingGate()
	x.Decision, x.Code, x.Reason = gate.Verdict, gate.Code, gate.Reason
	return x
}

// earlyGates asks the gates before risk rules and policies. The plan is nil if the gates input or
// plan deny the call.
func (e *Explainer) earlyGates(c *Call) (*Explanation, *policy.Plan) {
	x := &Explanation{RiskMode: policy.Unrated, Facts: c.Facts}
	if c.session == nil && e.bundle.ReadsSession() || c.origins == nil && e.bundle.ReadsOrigins() {
		x.Facts.Session = FromNowhere
	}
	plan := e.readPlan(c, x)
	if plan != nil && !c.declared {
		e.toolGates(c, plan, x)
	}
	return x, plan
}

// addAssessment asks risk rules and policies. A condition that reads an unknown fact fails.
func (e *Explainer) addAssessment(c *Call, args []byte, x *Explanation) {
	b, input := e.bundle, e.conditionInput(c, args)
	if c.risk != nil {
		b = b.WithoutRisk()
		input.Risk = condition.Risk{Mode: c.risk.Mode, Score: c.risk.Score}
	}

	a, considered := b.Explain(input)
	x.Policy, x.Condition, x.RiskMode, x.RiskScore, x.Risk, x.Shadow = a.Policy, a.Condition, a.Mode, a.Score, a.Risk,
		a.Shadow
	x.Policies, x.Approvers, x.Quorum, x.Expires, x.Fresh = considered, a.Approvers, a.Quorum, a.Expires, a.Fresh
	x.Gates = append(x.Gates,
		Gate{Gate: "risk", Verdict: rules.Allow, Reason: fmt.Sprintf("Mode %s, score %d.", a.Mode, a.Score)},
		gateOf("policy", a.Verdict))
}

// conditionInput returns the facts that conditions can read about a call.
func (e *Explainer) conditionInput(c *Call, args []byte) *condition.Input {
	input := ruling.Input(e.bundle, c.Server, c.Tool, c.Env, c.Actor, c.Identity, args, e.now)
	input.Pinned, input.Annotations, input.History = c.Facts.Pinned, condition.Annotations(c.Facts.Annotations),
		c.History
	input.Session, input.Origins = c.session, c.origins
	return input
}

// readPlan asks the gates input and plan. It returns nil if one of them denies the call.
func (e *Explainer) readPlan(c *Call, x *Explanation) *policy.Plan {
	kind := policy.KindCall
	if c.Agent {
		kind = policy.KindAgent
	}
	input := e.bundle.ScreenCall(kind, c.Plan, nil)
	if x.Gates = append(x.Gates, gateOf("input", input)); !input.Allows() {
		return nil
	}
	plan, v := policy.ReadCall(c.Plan, e.bundle.Limits())
	x.Gates = append(x.Gates, gateOf("plan", v))
	return plan
}

// toolGates asks the gates between the plan and the risk rules.
func (e *Explainer) toolGates(c *Call, p *policy.Plan, x *Explanation) {
	t, found := e.catalog.Find(p.Server, p.Tool)
	server := gateOf("server", found)

	// Without --live, no server was asked, so a listed tool is only assumed.
	switch configured := slices.Contains(e.bundle.Servers(), p.Server); {
	case e.live || !configured:
	case t == nil:
		server = Gate{Gate: "server", Verdict: Unknown,
			Reason: "Whether the server lists this tool is not known; --live asks it."}
	default:
		server.Verdict = Assumed
		server.Reason = "The answer assumes that the server still lists the tool as it is pinned; --live asks it."
	}

	tool := t
	if tool == nil {
		tool = &policy.Tool{Server: p.Server, Name: p.Tool, Allowed: true} // the bundle's allowlist decides
	}

	listed := e.bundle.Listed(tool, c.Identity)
	allowlist := gateOf("allowlist", listed)
	if listed.Allows() || listed.Gate == policy.GateGrant {
		allowlist = Gate{Gate: "allowlist", Verdict: rules.Allow,
			Reason: fmt.Sprintf("The allowlist names %s of %s.", p.Tool, p.Server)}
	}

	arguments := Gate{Gate: "schema", Verdict: Unknown}
	switch {
	case t == nil:
		arguments.Reason = "The tool's inputSchema is not known: its definition is not kept with a pin."
	case !listed.Allows():
		arguments.Reason = "The schema is not read, because the tool cannot be called."
	default:
		_, v := e.bundle.Validate(e.catalog, p, c.Identity)
		arguments = gateOf("schema", v)
	}

	x.Gates = append(x.Gates, server, allowlist, arguments)
	if len(e.bundle.Content().Grants) == 0 {
		return
	}

	grant := gateOf("grant", e.bundle.Granted(tool, p.Args.Bytes(), c.Task))
	if grant.Verdict == rules.Allow && c.Task != nil && c.Task.Calls == nil && e.bundle.Counts(p.Server, p.Tool) {
		grant = Gate{Gate: "grant", Verdict: Unknown,
			Reason: "How often the task has called the tool is not known: --live reads it."}
	}

	x.Gates = append(x.Gates, grant)
}

// failServers reduces an explanation to what a run finds out before it lists tools: no server
// answered.
func (x *Explanation) failServers(c *policy.Catalog) {
	if x.Gates[0].Verdict == rules.Deny {
		return
	}
	*x = Explanation{RiskMode: policy.Unrated, Facts: x.Facts, Gates: []Gate{
		x.Gates[0], {string(policy.GateRun), Failed, policy.CodeNoServers, states.NoServers(c)},
	}}
}

// askHistory returns how to give the results of queries that the call lacks.
func (e *Explainer) askHistory(c *Call) string {
	var flags strings.Builder
	for _, query := range e.missingHistory(c).Queries {
		fmt.Fprintf(&flags, " --history '%s=NUMBER'", query)
	}
	return fmt.Sprintf("What there was before is not known: give%s.", flags.String())
}

// checkAnnotations makes the policies' verdict unknown if it depends on unknown annotations.
func (e *Explainer) checkAnnotations(c *Call, args []byte, x *Explanation) {
	if c.Facts.AnnotationsFrom != FromNowhere {
		return
	}

	input := e.conditionInput(c, args)
	first := e.bundle.Assess(input).Verdict
	hints := []*bool{nil, new(true), new(false)}

	for i := range 81 { // each of the four hints is missing, true or false
		input.Annotations = condition.Annotations{
			ReadOnly:    hints[i%3],
			Destructive: hints[i/3%3],
			Idempotent:  hints[i/9%3],
			OpenWorld:   hints[i/27],
		}
		if v := e.bundle.Assess(input).Verdict; v.Outcome != first.Outcome || v.Code != first.Code {
			x.Gates[len(x.Gates)-1] = Gate{
				Gate: "policy", Verdict: Unknown,
				Reason: "The decision depends on the tool's annotations, which are not known: give --annotations, or --live.",
			}
			return
		}
	}
}

// NeedsHistory reports whether a run would read facts about earlier calls that c lacks.
func (e *Explainer) NeedsHistory(c *Call) bool {
	missing := e.missingHistory(c)
	return missing.Task || len(missing.Queries) > 0
}

// missingHistory returns the effect that reads the facts about earlier calls that the call lacks.
func (e *Explainer) missingHistory(c *Call) *states.ReadHistory {
	missing := &states.ReadHistory{Task: c.Task != nil && e.bundle.Counts(c.Server, c.Tool)}
	for _, query := range e.bundle.Queries(c.Server, c.Tool) {
		if !slices.ContainsFunc(c.History, func(a policy.HistoryAnswer) bool { return a.Query() == query }) {
			missing.Queries = append(missing.Queries, query)
		}
	}
	return missing
}

// ReadHistory adds the facts about earlier calls that the call lacks, as a run would read them from
// a ledger. A nil ledger has no calls. ReadHistory records nothing.
func (e *Explainer) ReadHistory(ctx context.Context, v ledger.Viewer, c *Call) error {
	missing := e.missingHistory(c)
	request := &states.Request{Actor: c.Actor, At: e.now}
	if c.Task != nil {
		request.Task = c.Task.ID
	}
	read, err := ledger.ReadEarlierCalls(ctx, v, request, c.Server, c.Tool, missing)
	if err != nil {
		return err
	}
	c.History = append(c.History, read.Values...)
	if missing.Task {
		c.Task = &policy.Task{ID: c.Task.ID, Calls: read.Calls}
	}
	return nil
}
