package ctrl

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"pgfsm/policy/condition"
	"pgfsm/policy/glob"
	"pgfsm/policy/rules"
)

var policyEnv = sync.OnceValues(condition.PolicyEnv)

func compilesInPolicy(cel string) error {
	env, err := policyEnv()
	if err == nil {
		_, err = env.Bool(cel)
	}
	return err
}

// A source is where a policy of the result comes from.
type source struct {
	at     *node
	server *glob.Glob
	tool   *glob.Glob
	env    *glob.Glob
}

func (i *importer) policies(root *node) {
	i.ignored(root, "policies")
	content := &rules.Content{}
	var from []source
	for _, n := range i.list(root, "policies") {
		for _, p := range i.policy(n) {
			content.Policies = append(content.Policies, p)
			from = append(from, source{at: n})
		}
	}
	if len(content.Policies) == 0 {
		i.fault(root, "it has no policies")
	}
	if len(i.faults) > 0 {
		return
	}
	if _, err := rules.Compile(*content); err != nil {
		i.policyFaults(err, from)
		return
	}
	i.shadows(content.Policies, from)
	i.result.Policy = content
}

// policyFaults reports what package rules refuses: an id that does not show, a glob that is too long.
func (i *importer) policyFaults(err error, from []source) {
	var all rules.Errors
	if !errors.As(err, &all) {
		i.fault(&node{}, "%s", err)
	}
	for _, one := range all {
		at := &node{}
		if one.Index < len(from) {
			at = from[one.Index].at
		}
		problem := one.Problem
		if one.Key != "" {
			problem = one.Key + ": " + problem
		}
		i.fault(at, "%s", problem)
	}
}

// policy returns what one policy becomes, in order.
func (i *importer) policy(n *node) []rules.Policy {
	i.only(n, "id", "match", "effect", "reason", "deny", "require_approval_if")
	match := n.get("match")
	if match == nil {
		i.fault(n, "a policy has a match")
		return nil
	}
	i.only(match, "server", "tool", "env")
	p := rules.Policy{ID: i.text(n, "id", ""), Effect: i.text(n, "effect", ""), Reason: i.text(n, "reason", "")}
	var wide [3]bool
	p.Match.Server, wide[0] = i.glob(match, "server")
	p.Match.Tool, wide[1] = i.glob(match, "tool")
	p.Match.Env, wide[2] = i.glob(match, "env")
	deny := i.condition(n, p.ID, "deny")
	ask := i.condition(n, p.ID, "require_approval_if")
	switch p.Effect {
	case rules.Allow:
		p.Deny, p.RequireApprovalIf = deny, ask
		i.milder(n, &p)
	case rules.Deny:
		i.noEffect(n, p.ID, "deny", deny, "everything that this policy matches is denied anyhow")
		i.noEffect(n, p.ID, "require_approval_if", ask, "everything that this policy matches is denied")
	case rules.Pending:
		i.noEffect(n, p.ID, "require_approval_if", ask, "everything that this policy matches waits for approval anyhow")
	default:
		i.fault(n.at("effect"), "the effect must be allow, deny or pending")
	}
	if wide != [3]bool{} {
		i.note(match, p.ID, "match", Widened, "a glob has [ ], which is not there here",
			"it stands as ?, which matches more, and the policy denies; write a policy for each case")
		return []rules.Policy{{ID: p.ID, Match: p.Match, Effect: rules.Deny, Reason: p.Reason}}
	}
	if p.Effect == rules.Pending && deny != "" {
		i.note(n.at("deny"), p.ID, "deny", Split, "here deny stands only beside effect: allow",
			fmt.Sprintf("it is a policy of its own, %q, in front of this one", p.ID+deniedSuffix))
		first := rules.Policy{ID: p.ID + deniedSuffix, Match: p.Match, When: deny, Effect: rules.Deny, Reason: p.Reason}
		return []rules.Policy{first, p}
	}
	return []rules.Policy{p}
}

// milder reports a policy that stops calls by their risk, and lets them through when it is higher: an expression of risk
// rules that fails raises the mode, and so takes the approval away.
func (i *importer) milder(n *node, p *rules.Policy) {
	var stops []string
	key := "deny"
	for _, cel := range []string{p.Deny, p.RequireApprovalIf} {
		if cel != "" {
			stops = append(stops, "("+cel+")")
		}
	}
	if p.RequireApprovalIf != "" {
		key = "require_approval_if"
	}
	env, err := policyEnv()
	if len(stops) == 0 || err != nil {
		return
	}
	r, err := env.Read(strings.Join(stops, " || "))
	if err != nil {
		return // too long, or too dear, together
	}
	var risks []condition.Risk
	for k, mode := range ladder {
		at := condition.Risk{Mode: mode, Score: [...]int{0, 50, 90}[k]}
		if i.result.Risk != nil {
			at.Score = i.result.Risk.Modes[k].Baseline
		}
		risks = append(risks, at)
	}
	if low, high, found := r.Milder(risks); found {
		i.note(n.at(key), p.ID, key, MoreRiskIsMilder,
			fmt.Sprintf("a call that it stops in mode %s it lets through in mode %s", low.Mode, high.Mode),
			"kept; write risk.mode != 'safe', or risk.score >= a number, or let a policy above deny what is riskier")
	}
}

// deniedSuffix makes the id of a policy that was split off.
const deniedSuffix = ".deny"

func (i *importer) noEffect(n *node, id, key, cel, why string) {
	if cel != "" {
		i.note(n.at(key), id, key, NoEffect, why, "left out")
	}
}

// condition translates a condition of a policy. One that is refused is true.
func (i *importer) condition(n *node, id, key string) string {
	v := n.get(key)
	if v == nil || v.kind == isNull || !i.is(v, isText) || v.text == "" {
		return ""
	}
	strictest := "it is always true here: every such call is denied"
	if key != "deny" {
		strictest = "it is always true here: every such call waits for approval"
	}
	cel, ok := i.translate(v, id, key, scope{place: inPolicy}, strictest, (*translator).condition, compilesInPolicy)
	if !ok {
		return "true"
	}
	return cel
}

// shadows reports policies that an earlier one leaves nothing to. ctrl's policies have no condition on whether they
// match, so one whose globs include another's always decides first; what was split off here has one.
func (i *importer) shadows(all []rules.Policy, from []source) {
	open := map[string][]int{} // those that are not left without anything, by what the tools that they match begin with
	for k := range all {
		m := all[k].Match
		from[k].server, from[k].tool, from[k].env = must(m.Server), must(m.Tool), must(m.Env)
		if earlier := shadow(open, from, from[k]); earlier >= 0 {
			i.shadowed(&all[earlier], &all[k], from[k].at)
		} else if all[k].When == "" { // whatever one includes that is shadowed, the earlier one does, too
			begin := from[k].tool.Prefix()
			open[begin] = append(open[begin], k)
		}
		if all[k].Effect == rules.Allow && m.Server == "*" && m.Tool == "*" && m.Env == "*" {
			i.catchAll(&all[k], from[k].at, k < len(all)-1)
		}
	}
}

// must compiles a glob that package rules has compiled before.
func must(pattern string) *glob.Glob {
	g, err := glob.Compile(pattern)
	if err != nil {
		panic("ctrl: a glob that was compiled does not compile: " + err.Error())
	}
	return g
}

// shadow returns the first policy that leaves nothing to what is matched by one, or -1. A glob includes another only if
// the other begins with what it begins with itself.
func shadow(open map[string][]int, from []source, one source) int {
	first := -1
	prefix := one.tool.Prefix()
	for end := range len(prefix) + 1 {
		for _, k := range open[prefix[:end]] {
			if first >= 0 && k >= first {
				break
			}
			e := from[k]
			if glob.Includes(e.tool, one.tool) && glob.Includes(e.server, one.server) && glob.Includes(e.env, one.env) {
				first = k
				break
			}
		}
	}
	return first
}

func (i *importer) shadowed(earlier, later *rules.Policy, at *node) {
	done := fmt.Sprintf("the order is kept; move %q above %q", later.ID, earlier.ID)
	if gate := gateOf(earlier); gate != "" {
		done = fmt.Sprintf("the order is kept; if %q is meant as a gate, write %s and no effect: allow there",
			earlier.ID, gate)
	}
	code, problem := Unreachable, "%q matches first whatever this policy matches"
	switch {
	case earlier.Effect != rules.Allow:
	case later.Effect == rules.Pending || later.RequireApprovalIf != "":
		code, problem = ApprovalShadowed, "%q allows first whatever this policy would ask approval for"
	case later.Effect == rules.Deny || later.Deny != "":
		code, problem = DenialShadowed, "%q allows first whatever this policy would deny"
	}
	i.note(at, later.ID, "match", code, fmt.Sprintf(problem, earlier.ID), done)
}

// gateOf returns what a policy that allows has to say instead to stop some calls and leave the rest to the policies
// below.
func gateOf(p *rules.Policy) string {
	switch {
	case p.Effect != rules.Allow:
	case p.Deny != "":
		return fmt.Sprintf("when: %q with effect: deny", p.Deny)
	case p.RequireApprovalIf != "":
		return fmt.Sprintf("when: %q with effect: pending", p.RequireApprovalIf)
	}
	return ""
}

func (i *importer) catchAll(p *rules.Policy, at *node, above bool) {
	problem := "it allows every call that its conditions do not stop"
	if above {
		problem += ", and no policy below is ever asked"
	}
	done := "kept; name the servers and tools that may be called"
	if gate := gateOf(p); gate != "" && above {
		done = "kept; a gate that leaves the rest to the policies below says " + gate
	}
	i.note(at, p.ID, "match", CatchAllAllow, problem, done)
}
