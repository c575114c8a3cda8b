// Package explain reports what every gate would decide about a call that nobody makes, and judges policy tests by the same gates.
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
}

// An Explanation holds what every gate would decide about a call. The gates are in the order of a run.
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
	Policies  []Policy               `json:"policies,omitzero"`
	Shadow    []rules.ShadowDecision `json:"shadow,omitzero"`
	Approvers []string               `json:"approvers,omitzero"`
	Quorum    int                    `json:"quorum,omitzero"`
	Expires   string                 `json:"expires,omitzero"`
	Fresh     int64                  `json:"fresh_ms,omitzero"`
	Facts     Facts                  `json:"known"`

	args []byte // in canonical form; nil if there is no plan
}

// A Policy is a policy that was considered.
type Policy struct {
	rules.Considered
	Unknown bool `json:"-"` // a match depends on the call's history, which is unknown
}

// deciding returns the gate that decides: the first that denies; else the first that failed; else the first that is unknown; else the last.
func (x *Explanation) deciding() *Gate {
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

// New returns an Explainer. If live is true, the catalog has the servers' listings. Otherwise no server was asked, and the catalog has
// the stored definitions of pins (nil: none). now is the time of all calls.
func New(b *policy.Bundle, c *policy.Catalog, live bool, now string) *Explainer {
	if c == nil {
		c = new(policy.Catalog)
	}
	return &Explainer{b, c, live, now}
}

// Explain asks every gate, also the gates after one that denies. A verdict that depends on unknown facts is unknown.
func (e *Explainer) Explain(c *Call) *Explanation {
	x := e.judge(c)
	switch {
	case e.live && !e.catalog.Up():
		x.failServers(e.catalog)
	case x.args != nil:
		last := &x.Gates[len(x.Gates)-1]
		if why := e.unsettled(c, x.args); why != "" {
			last.Verdict, last.Code, last.Reason = Unknown, "", why
		}
		missing := e.missing(c)
		failed := func(query string) bool { return strings.Contains(last.Reason, query+" is not known") }
		if slices.ContainsFunc(missing, failed) { // a run knows these facts, so the condition would not fail there
			last.Code, last.Reason = policy.CodePolicyDenied, "The call is denied, whatever there was before."
		}
		x.markUnknown(missing)
	}
	by := x.deciding()
	x.Decision, x.Code, x.Reason = by.Verdict, by.Code, by.Reason
	return x
}

// judge asks the gates. It counts a condition that fails for lack of a fact as failed.
func (e *Explainer) judge(c *Call) *Explanation {
	x := &Explanation{RiskMode: policy.Unrated, Facts: c.Facts}
	plan := e.plan(c, x)
	if plan == nil {
		return x
	}
	if !c.declared {
		e.toolGates(c, plan, x)
	}
	b, in := e.bundle, e.input(c, plan.Args)
	if c.risk != nil {
		b = b.WithoutRisk()
		in.Risk = condition.Risk{Mode: c.risk.Mode, Score: c.risk.Score}
	}
	a, considered := b.Explain(in)
	for _, p := range considered {
		x.Policies = append(x.Policies, Policy{Considered: p})
	}
	x.Policy, x.Condition, x.RiskMode, x.RiskScore, x.Risk, x.Shadow = a.Policy, a.Condition, a.Mode, a.Score, a.Risk, a.Shadow
	x.Approvers, x.Quorum, x.Expires, x.Fresh, x.args = a.Approvers, a.Quorum, a.Expires, a.Fresh, plan.Args
	x.Gates = append(x.Gates,
		Gate{Gate: "risk", Verdict: rules.Allow, Reason: fmt.Sprintf("Mode %s, score %d.", a.Mode, a.Score)}, gateOf("policy", a.Verdict))
	return x
}

// input returns the facts that conditions can read about a call.
func (e *Explainer) input(c *Call, args []byte) *condition.Input {
	in := ruling.Input(e.bundle, c.Server, c.Tool, c.Env, c.Actor, c.Identity, args, e.now)
	in.Pinned, in.Annotations, in.History = c.Facts.Pinned, condition.Annotations(c.Facts.Annotations), c.History
	return in
}

// plan asks the gates input and plan. It returns nil if one of them denies the call.
func (e *Explainer) plan(c *Call, x *Explanation) *policy.Plan {
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
	switch configured := slices.Contains(e.bundle.Servers(), p.Server); {
	case e.live || !configured:
	case t == nil:
		server = Gate{Gate: "server", Verdict: Unknown, Reason: "Whether the server lists this tool is not known; --live asks it."}
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
		allowlist = Gate{Gate: "allowlist", Verdict: rules.Allow, Reason: fmt.Sprintf("The allowlist names %s of %s.", p.Tool, p.Server)}
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
	grant := gateOf("grant", e.bundle.Granted(tool, p.Args, c.Task))
	if grant.Verdict == rules.Allow && c.Task != nil && c.Task.Ledger && e.bundle.Counts(p.Server, p.Tool) {
		grant = Gate{Gate: "grant", Verdict: Unknown, Reason: "How often the task has called the tool is not known: --live reads it."}
	}
	x.Gates = append(x.Gates, grant)
}

// failServers reduces an explanation to what a run finds out before it lists tools: no server answered.
func (x *Explanation) failServers(c *policy.Catalog) {
	if x.Gates[0].Verdict == rules.Deny {
		return
	}
	*x = Explanation{RiskMode: policy.Unrated, Facts: x.Facts, Gates: []Gate{
		x.Gates[0], {string(policy.GateRun), Failed, policy.CodeNoServers, states.NoServers(c)},
	}}
}

// missing returns the queries of risk rules and policies that the call's history does not answer.
func (e *Explainer) missing(c *Call) (queries []string) {
	for _, query := range e.missingHistory(c).Queries {
		queries = append(queries, query.String())
	}
	return queries
}

// markUnknown replaces verdicts that depend on unanswered queries with unknown.
func (x *Explanation) markUnknown(missing []string) {
	for _, query := range missing {
		lacks := query + " is not known"
		for i := range x.Policies {
			if p := &x.Policies[i]; strings.Contains(p.Why, lacks) {
				p.Unknown, p.Matched, p.Why = true, false, "it asks "+query+", which is not known"
			}
		}
		for i := range x.Risk {
			c := &x.Risk[i]
			if !strings.Contains(c.Failed, lacks) {
				continue
			}
			c.Matched, c.Failed = false, lacks
			x.RiskMode, x.RiskScore = Unknown, 0
			at := slices.IndexFunc(x.Gates, func(g Gate) bool { return g.Gate == "risk" })
			x.Gates[at].Verdict, x.Gates[at].Reason = Unknown, "The risk depends on "+query+", which is not known."
		}
	}
}

// unsettled returns the unknown facts that the policy's decision depends on; empty if there are none.
func (e *Explainer) unsettled(c *Call, args []byte) string {
	missing := e.missing(c)
	in := e.input(c, args)
	first := e.bundle.Assess(in).Verdict
	combinations := 1
	if c.Facts.AnnotationsFrom == FromNowhere {
		combinations = 81 // each of the four hints is missing, true or false
	}
	hints := []*bool{nil, new(true), new(false)}
	for i := range combinations {
		if combinations > 1 {
			in.Annotations = condition.Annotations{
				ReadOnly: hints[i%3], Destructive: hints[i/3%3], Idempotent: hints[i/9%3], OpenWorld: hints[i/27],
			}
		}
		if len(missing) > 0 && !e.bundle.Settled(in) {
			return fmt.Sprintf("What there was before is not known: give --history '%s=NUMBER'.", strings.Join(missing, "=NUMBER' --history '"))
		}
		if v := e.bundle.Assess(in).Verdict; v.Outcome != first.Outcome || len(missing) == 0 && v.Code != first.Code {
			return "The decision depends on the tool's annotations, which are not known: give --annotations, or --live."
		}
	}
	return ""
}

// NeedsHistory reports whether a run would read facts about earlier calls that c lacks.
func (e *Explainer) NeedsHistory(c *Call) bool {
	wanted := e.missingHistory(c)
	return wanted.Task || len(wanted.Queries) > 0
}

// missingHistory returns the effect that reads the facts about earlier calls that the call lacks.
func (e *Explainer) missingHistory(c *Call) *states.ReadHistory {
	wanted := &states.ReadHistory{Task: c.Task != nil && e.bundle.Counts(c.Server, c.Tool)}
	for _, query := range e.bundle.Queries(c.Server, c.Tool) {
		if !slices.ContainsFunc(c.History, func(a policy.HistoryAnswer) bool { return a.Query() == query }) {
			wanted.Queries = append(wanted.Queries, query)
		}
	}
	return wanted
}

// ReadHistory adds the facts about earlier calls that the call lacks, as a run would read them from a ledger. A nil ledger has no calls.
// ReadHistory records nothing.
func (e *Explainer) ReadHistory(ctx context.Context, v ledger.Viewer, c *Call) error {
	wanted := e.missingHistory(c)
	request := &states.Request{Actor: c.Actor, At: e.now, Task: c.Task}
	read, err := ledger.ReadEarlierCalls(ctx, v, request, c.Server, c.Tool, wanted)
	if err != nil {
		return err
	}
	c.History = append(c.History, read.Values...)
	if wanted.Task {
		c.Task = &policy.Task{ID: c.Task.ID, Calls: read.Calls}
	}
	return nil
}
