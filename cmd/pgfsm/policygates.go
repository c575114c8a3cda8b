package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pgfsm/config"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/rules"
	"pgfsm/policy/ruling"
	"pgfsm/states"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

// What a gate says besides the words of a policy.
const (
	unknown = "unknown" // it cannot tell
	assumed = "assumed" // the server still lists the tool as it is pinned: it decides nothing
	failed  = "failed"  // no server answered
)

// asksHistory begins what is said of a policy that asks about calls before which nobody told.
const asksHistory = "it asks "

// gateSaid is what one gate says of a call.
type gateSaid struct {
	Gate    string      `json:"gate"`    // input, plan, server, allowlist, schema, grant, risk or policy
	Verdict string      `json:"verdict"` // allow, deny, pending, assumed, unknown or failed
	Code    policy.Code `json:"code,omitzero"`
	Reason  string      `json:"reason"`
}

func saidBy(gate string, v policy.Verdict) gateSaid {
	return gateSaid{gate, ruling.Word(v), v.Code, v.Reason}
}

// deciding is the gate that decides: the first that denies, else that which failed, else the first that cannot tell, else
// the last.
func deciding(gates []gateSaid) gateSaid {
	for _, verdict := range []string{rules.Deny, failed, unknown} {
		if i := slices.IndexFunc(gates, func(g gateSaid) bool { return g.Verdict == verdict }); i >= 0 {
			return gates[i]
		}
	}
	return gates[len(gates)-1]
}

// A question is a call that nobody makes.
type question struct {
	server, tool, env, actor, args string
	agent                          bool // an agent asks, and no operator
	history                        []policy.HistoryAnswer
	task                           *policy.Task // nil if it belongs to none; with Ledger set its calls are not known
	known                          toolKnown
	declared                       bool              // by a file of tests: no gate before risk and policy is asked
	risk                           *config.GivenRisk // in place of the risk rules
}

// An opinion is what every gate says of a call, in the order in which a run asks them.
type opinion struct {
	policy.Assessment
	considered []rules.Considered
	gates      []gateSaid
	args       []byte // canonical; nil if there is no plan
}

// judge asks the gates that a run asks. Those behind a gate that denies are asked too, as far as they can tell.
func (a *app) judge(tools *toolsKnown, q question) (opinion, error) {
	got, plan, err := a.proposed(q)
	if err != nil || plan == nil {
		return got, err
	}
	if !q.declared {
		got.gates = append(got.gates, tools.gates(plan, q.task)...)
	}
	b, in := a.bundle, ruling.Input(a.bundle, q.server, q.tool, q.env, q.actor, plan.Args, now())
	q.known.tell(in)
	in.History = q.history
	if q.risk != nil {
		b = b.WithoutRisk()
		in.Risk = condition.Risk{Mode: q.risk.Mode, Score: q.risk.Score}
	}
	got.args = plan.Args
	got.Assessment, got.considered = b.Explain(in)
	got.gates = append(got.gates,
		gateSaid{Gate: "risk", Verdict: rules.Allow, Reason: fmt.Sprintf("Mode %s, score %d.", got.Mode, got.Score)},
		saidBy("policy", got.Verdict))
	return got, nil
}

// proposed asks the input and the plan gate. The plan is nil if one of them refuses the call.
func (a *app) proposed(q question) (got opinion, plan *policy.Plan, err error) {
	got.Mode = policy.Unrated
	text, err := operatorPlan(q.server, q.tool, "--args", q.args)
	if err != nil {
		return got, nil, err
	}
	kind := states.KindCall
	if q.agent {
		kind = states.KindAgent
	}
	got.Verdict = a.bundle.ScreenCall(kind, text, nil)
	got.gates = append(got.gates, saidBy("input", got.Verdict))
	if got.Verdict.Allows() {
		plan, got.Verdict = policy.ReadCall(text, a.bundle.Limits())
		got.gates = append(got.gates, saidBy("plan", got.Verdict))
	}
	return got, plan, nil
}

// gates asks the gates between the plan and the policy. What only the tool's server can tell is unknown.
func (k *toolsKnown) gates(p *policy.Plan, task *policy.Task) []gateSaid {
	b := k.bundle
	t, found := k.catalog.Find(p.Server, p.Tool)
	server := saidBy("server", found)
	switch configured := slices.Contains(b.Servers(), p.Server); {
	case k.live || !configured:
	case t == nil:
		server = gateSaid{Gate: "server", Verdict: unknown, Reason: "Whether the server lists this tool is not known; --live asks it."}
	default:
		server.Verdict = assumed
		server.Reason = "The answer assumes that the server still lists the tool as it is pinned; --live asks it."
	}
	tool := t
	if tool == nil {
		tool = &policy.Tool{Server: p.Server, Name: p.Tool, Allowed: true} // the allowlist of the bundle decides
	}
	listed := b.Listed(tool)
	onList := listed.Allows() || listed.Gate == policy.GateGrant
	allowlist := saidBy("allowlist", listed)
	if onList {
		allowlist = gateSaid{Gate: "allowlist", Verdict: rules.Allow, Reason: fmt.Sprintf("The allowlist names %s of %s.", p.Tool, p.Server)}
	}
	arguments := gateSaid{Gate: "schema", Verdict: unknown}
	switch {
	case t == nil:
		arguments.Reason = "The tool's inputSchema is not known: its definition is not kept with a pin."
	case !listed.Allows():
		arguments.Reason = "The schema is not read, because the tool cannot be called."
	default:
		_, v := b.Validate(k.catalog, p)
		arguments = saidBy("schema", v)
	}
	gates := []gateSaid{server, allowlist, arguments}
	if len(b.Content().Grants) > 0 {
		granted := saidBy("grant", b.Granted(tool, p.Args, task))
		if granted.Verdict == rules.Allow && task != nil && task.Ledger && b.Counts(p.Server, p.Tool) {
			granted = gateSaid{Gate: "grant", Verdict: unknown, Reason: "How often the task has called the tool is not known: --live reads it."}
		}
		gates = append(gates, granted)
	}
	return gates
}

// unanswered is what there is to say where no server answered: as a run, it asks no gate behind the input rules.
func (o *opinion) unanswered(c *policy.Catalog) opinion {
	if o.gates[0].Verdict == rules.Deny && o.gates[0].Gate == string(policy.GateInput) {
		return *o
	}
	said := opinion{gates: slices.DeleteFunc(o.gates, func(g gateSaid) bool { return g.Gate != string(policy.GateInput) })}
	said.Mode = policy.Unrated
	said.gates = append(said.gates, gateSaid{string(policy.GateRun), failed, policy.CodeNoServers, states.NoServers(c)})
	return said
}

// forget takes back what was concluded from queries that nobody answered.
func (o *opinion) forget(untold []string) {
	for _, query := range untold {
		lacks := query + " is not known"
		for i := range o.considered {
			if c := &o.considered[i]; strings.Contains(c.Why, lacks) {
				c.Matched, c.Why = false, asksHistory+query+", which is not known"
			}
		}
		for i := range o.Risk {
			c := &o.Risk[i]
			if !strings.Contains(c.Failed, lacks) {
				continue
			}
			c.Matched, c.Failed = false, lacks
			o.Mode, o.Score = unknown, 0
			for j := range o.gates {
				if g := &o.gates[j]; g.Gate == "risk" {
					g.Verdict, g.Reason = unknown, "The risk depends on "+query+", which is not known."
				}
			}
		}
	}
}

// unsettled says what the policy's decision may still depend on; empty if it is settled.
func (a *app) unsettled(q question, args []byte) string {
	missing := a.untold(q)
	in := ruling.Input(a.bundle, q.server, q.tool, q.env, q.actor, args, now())
	q.known.tell(in)
	in.History = q.history
	first := a.bundle.Assess(in).Verdict
	yes, no := new(true), new(false)
	hints := []*bool{nil, yes, no}
	for i := range 81 { // each of the four hints is missing, true or false
		if q.known.AnnotationsFrom == fromNowhere {
			in.Annotations = condition.Annotations{
				ReadOnly: hints[i%3], Destructive: hints[i/3%3], Idempotent: hints[i/9%3], OpenWorld: hints[i/27],
			}
		} else if i > 0 {
			break
		}
		if len(missing) > 0 && !a.bundle.Settled(in) {
			return fmt.Sprintf("What there was before is not known: give --history '%s=NUMBER'.", strings.Join(missing, "=NUMBER' --history '"))
		}
		if v := a.bundle.Assess(in).Verdict; v.Outcome != first.Outcome || len(missing) == 0 && v.Code != first.Code {
			return "The decision depends on the tool's annotations, which are not known: give --annotations, or --live."
		}
	}
	return ""
}

// untold is what risk rules and policies ask about calls before, and nobody tells.
func (a *app) untold(q question) (missing []string) {
	for _, query := range a.bundle.Queries(q.server, q.tool) {
		if !q.tells(query) {
			missing = append(missing, query.String())
		}
	}
	return missing
}

// tells reports whether a query is answered.
func (q *question) tells(query policy.HistoryQuery) bool {
	return slices.ContainsFunc(q.history, func(told policy.HistoryAnswer) bool { return told.Query() == query })
}

// before reads of the calls before this one what call would read, but for what is told. It records nothing.
func (a *app) before(ctx context.Context, q *question, task string) (err error) {
	if a.loaded.Ledger == "" {
		if task != "" {
			q.task, err = traces.ReadTask(a.tracesDir, task)
		}
		return err
	}
	wanted := &states.ReadHistory{Task: q.task != nil && a.bundle.Counts(q.server, q.tool)}
	for _, query := range a.bundle.Queries(q.server, q.tool) {
		if !q.tells(query) {
			wanted.Queries = append(wanted.Queries, query)
		}
	}
	if len(wanted.Queries) == 0 && !wanted.Task {
		return nil
	}
	request := &states.Request{Actor: q.actor, At: now(), Task: q.task}
	var read *states.HistoryRead
	switch l, missing := openLedger(a.w, "", a.loaded.Ledger, stores.ToRead); {
	case errors.Is(missing, stores.ErrMissing): // the first call makes it
		read, err = ledger.Before(ctx, nil, request, q.server, q.tool, wanted)
	case missing != nil:
		return missing
	default:
		read, err = ledger.Before(ctx, l, request, q.server, q.tool, wanted)
		err = closing(a.w, l, err)
	}
	if err != nil {
		return err
	}
	q.history = append(q.history, read.Values...)
	if wanted.Task {
		q.task = &policy.Task{ID: task, Calls: read.Calls}
	}
	return nil
}

// asker is who asks, as in a run: the owner of PGFSM_TOKEN where there is a ledger, else the user of the operating system.
func (a *app) asker(ctx context.Context, given string) (string, error) {
	if given != "" || a.loaded.Ledger == "" || a.w.env(tokenVariable) == "" {
		return cmp.Or(given, actor()), nil
	}
	l, err := openLedger(a.w, "", a.loaded.Ledger, stores.ToRead)
	if err != nil {
		return "", err
	}
	name, err := a.requester(ctx, l)
	return name, closing(a.w, l, err)
}
