package prove

import (
	"fmt"
	"slices"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/rules"
)

// Limits of the search for one claim and one tool.
const (
	maxWork  = 5_000_000 // policies and risks that are looked at, over all points
	maxTries = 200       // calls that are tried
)

// open is a search at a point: the decisions that are possible, and the first atom on which they
// depend.
type open struct{ first *atom }

// note remembers an atom of a formula whose outcome is open.
func (o *open) note(f *formula, of func(*atom) outcomes) {
	if o.first != nil || f == nil || f.outcomes(0, of).isOne() {
		return
	}
	if f.atom != nil {
		o.first = f.atom
		return
	}
	for _, part := range f.parts {
		o.note(part, of)
	}
}

// decisionsOf returns the decisions that the policies of a side can make at the point.
func (p *problem) decisionsOf(number int, o *open) (decisions []decision) {
	add := func(effect string, e *entry) {
		d := decision{effect: effect}
		if effect == rules.Pending {
			d.terms = &e.held
		}
		if !slices.Contains(decisions, d) {
			decisions = append(decisions, d)
		}
	}
	if p.sides[number].unlisted {
		return []decision{{effect: rules.Allow}}
	}

	for _, e := range p.entries[number] {
		when := e.when.outcomes(canTrue, p.outcomesOf)
		o.note(e.when, p.outcomesOf)
		matches, passes := when&canTrue != 0, when&canFalse != 0
		if when&canFail != 0 {
			if e.strict {
				add(rules.Deny, e)
			} else {
				passes = true
			}
		}
		if matches {
			p.addEffects(e, o, add)
		}
		if !passes {
			return decisions
		}
	}

	add(rules.Deny, nil)
	return decisions
}

// addEffects adds the decisions of a policy that matches.
func (p *problem) addEffects(e *entry, o *open, add func(string, *entry)) {
	denies := e.deny.outcomes(canFalse, p.outcomesOf)
	o.note(e.deny, p.outcomesOf)
	if denies != canFalse {
		add(rules.Deny, e)
	}
	if denies&canFalse == 0 {
		return
	}

	asks := e.ask.outcomes(canFalse, p.outcomesOf)
	o.note(e.ask, p.outcomesOf)
	if asks&canFail != 0 {
		add(rules.Deny, e)
	}
	if asks&canTrue != 0 {
		add(rules.Pending, e)
	}
	if asks&canFalse != 0 {
		effect := e.effect
		if effect != rules.Allow && effect != rules.Pending {
			effect = rules.Deny
		}
		add(effect, e)
	}
}

// decisionsSought returns whether the calls at the point can be what the claim looks for, whether all of them
// are, and an atom that decides it.
func (p *problem) decisionsSought() (some, all bool, first *atom) {
	o := &open{}
	scope := p.claim.scopeOutcomes(p.outcomesOf)
	if scope&canTrue == 0 {
		return false, false, nil
	}
	if !scope.isOne() {
		o.note(p.scope, p.outcomesOf)
	}

	all = scope == canTrue
	decisions := p.decisionsOf(0, o)
	older := []decision{{}}
	if len(p.sides) > 1 {
		older = p.decisionsOf(1, o)
	}
	for _, d := range decisions {
		for _, old := range older {
			if p.claim.concerns(d, old) {
				some = true
			} else {
				all = false
			}
		}
	}
	return some, some && all, o.first
}

// search visits the points below the current one until a call is found that settles the claim.
func (p *problem) search() {
	p.work++
	for _, entries := range p.entries {
		p.work += len(entries)
	}
	if p.work > maxWork {
		p.giveUp("there are too many combinations of what conditions ask", nil)
		return
	}
	some, all, first := p.decisionsSought()
	switch {
	case !some:
		return
	case all:
		p.try()
		return
	case first == nil:
		p.giveUp("internal error: the decision depends on no condition", nil)
		return
	}

	if first.place == placeRisk && p.free[first] == "" && first.risk != nil && p.risks[first.risk] == nil {
		p.branchOnRisk(first)
		return
	}
	p.branch(first)
}

// branch visits what an atom can be: the cells of its place, or its outcomes if it is free.
func (p *problem) branch(a *atom) {
	if s, ok := p.slots[a]; ok && p.chosen[s.domain] < 0 {
		for i := range p.domains[s.domain].cells {
			if !p.fitsTag(&p.domains[s.domain].cells[i]) {
				continue
			}
			p.choose(s.domain, i)
			p.search()
			if p.finished {
				return
			}
			p.choose(s.domain, -1)
		}
		return
	}

	before := p.outcomesOf(a)
	p.assumed = append(p.assumed, a)
	for _, one := range []outcomes{canTrue, canFalse, canFail} {
		if before&one == 0 {
			continue
		}
		p.outcomes[a] = one
		p.search()
		if p.finished {
			return
		}
	}
	p.outcomes[a], p.assumed = before, p.assumed[:len(p.assumed)-1]
}

// branchOnRisk visits the risks that the calls at the point can have. First it visits what the risk
// depends on.
func (p *problem) branchOnRisk(about *atom) {
	r := about.risk
	input := p.tool.input()
	for i := range r.rules {
		if !r.rules[i].globs.Fit(input) {
			continue
		}
		if a := p.openScore(&r.rules[i]); a != nil {
			p.branch(a)
			return
		}
		if p.matchOutcomes(&r.rules[i]).isOne() {
			continue
		}
		for _, a := range r.rules[i].predicates {
			if !p.outcomesOf(a).isOne() {
				p.branch(a)
				return
			}
		}
	}

	risks, guessed, ok := p.possibleRisks(r)
	if !ok {
		p.free[about] = "the risk rules give too many scores"
		p.branch(about)
		delete(p.free, about)
		return
	}
	p.work += len(risks)
	guessedBefore := p.guessed
	if guessed != nil {
		p.guessed = guessed
	}
	known := map[string]bool{}
	for i := range risks {
		p.setRisk(r, &risks[i])
		key := ""
		for _, a := range p.asks[r] {
			key += string(rune('0' + p.outcomesOf(a)))
		}
		if known[key] {
			continue
		}
		known[key] = true
		p.search()
		if p.finished {
			return
		}
	}
	p.setRisk(r, nil)
	p.guessed = guessedBefore
}

// openScore returns an atom on which the score of a rule that can match depends.
func (p *problem) openScore(r *riskRule) *atom {
	if r.score == nil || !r.score.exact || p.matchOutcomes(r) == canFalse {
		return nil
	}
	for _, a := range r.score.atoms {
		if !p.outcomesOf(a).isOne() {
			return a
		}
	}
	return nil
}

// try makes a call of the point and asks the real gates about it.
func (p *problem) try() {
	if p.tries++; p.tries > maxTries {
		p.giveUp("too many calls were tried", nil)
		return
	}
	c, _ := p.callOfCells()

	if refused := p.refusal(c); refused != "" {
		p.doubt("no call was found that passes the other gates: "+refused, nil)
		return
	}
	judged := make([]*condition.Subject, len(p.sides))
	decisions := make([]decision, 2)
	for i, s := range p.sides {
		judged[i] = condition.NewSubject(c.Input(s.bundle))
		decisions[i] = decide(s.bundle, judged[i])
	}
	if p.claim.covers(judged[0]) && p.claim.concerns(decisions...) {
		p.result.Call, p.finished = c, true
		return
	}

	switch {
	case len(p.assumed) > 0:
		p.doubt(p.freeReason(p.assumed[0]), p.assumed[0])
	case p.guessed != nil:
		p.doubt("the score of a risk rule is not computed",
			&atom{source: p.guessed.score.program.Source(), where: fmt.Sprintf("risk rule %q", p.guessed.id)})
	default:
		p.giveUp(fmt.Sprintf("internal error: the policies do not decide about %s as the proof expects", c.Args), nil)
	}
}

// callOfCells returns a call of the chosen cells, and of any cells of the other places. It is
// incomplete if a place has no cell that fits the others.
func (p *problem) callOfCells() (c *Call, complete bool) {
	c, complete = p.tool.newCall(), true
	for i, index := range p.chosen {
		if index < 0 {
			index = p.usualCell(i)
		}
		if index >= 0 {
			p.domains[i].cells[index].apply(c)
		} else {
			complete = false
		}
	}
	p.nameCaller(c)
	c.finish()
	return c, complete
}

func (p *problem) freeReason(a *atom) string {
	if why := p.free[a]; why != "" {
		return why
	}
	return "its outcome is not computed"
}

// nameCaller names the caller that chosen cells describe, if none of them does.
func (p *problem) nameCaller(c *Call) {
	for i, index := range p.chosen {
		if index < 0 || p.domains[i].name == placeCaller {
			continue
		}
		if slices.ContainsFunc(p.domains, func(d *domain) bool { return d.name == placeCaller }) {
			return // usualCell chose one that fits
		}
		switch p.domains[i].cells[index].tag {
		case subject:
			c.Actor = policy.SubjectName("https://idp.example", "agent")
		case staticPerson:
			c.Actor = policy.LocalUser + "person"
		}
	}
}

// usualCell returns the cell of an open domain that fits the others.
func (p *problem) usualCell(domain int) int {
	for i := range p.domains[domain].cells {
		if c := &p.domains[domain].cells[i]; c.tag == anyCaller || p.fitsTag(c) && p.isUsual(c) {
			return i
		}
	}
	return -1
}

// isUsual reports whether a cell belongs to the caller of a call about whom nothing was chosen.
func (p *problem) isUsual(c *cell) bool {
	for i, index := range p.chosen {
		if index >= 0 && p.domains[i].cells[index].tag != anyCaller {
			return true
		}
	}
	if len(p.tool.groups) > 0 {
		return c.tag == subject
	}
	return c.tag == staticAgent
}

// refusal says which other gate refuses a call; empty if none does.
func (p *problem) refusal(c *Call) string {
	b, t := p.sides[0].bundle, p.tool
	if !b.Names(t.server, t.name, c.Identity) {
		return "the caller is in no group that may call the tool"
	}
	if t.live != nil {
		if err := t.live.Input().Judge(c.Args); err != nil {
			return err.Error()
		}
		if v := b.Authorize(t.live, c.Identity, t.live.Digest, c.Args, nil); !v.Allows() {
			return v.Reason
		}
	}
	sent := b.ReadSentCall(t.server, t.name, c.Args)
	plan, v := sent.Read(b.Limits())
	if plan == nil || !v.Allows() {
		return v.Reason
	}
	if v := b.ScreenCall(policy.KindAgent, sent.Text, nil); !v.Allows() {
		return v.Reason
	}
	return ""
}

// doubt notes that a point could not be settled. The search goes on: another may show a call.
func (p *problem) doubt(reason string, a *atom) {
	if p.result.Reason != "" {
		return
	}
	p.result.Reason = reason
	if a != nil {
		p.result.Condition, p.result.Where = a.source, a.where
	}
}

// giveUp ends the search without an answer.
func (p *problem) giveUp(reason string, a *atom) {
	p.doubt(reason, a)
	p.finished = true
}
