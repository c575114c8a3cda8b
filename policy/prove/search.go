package prove

import (
	"cmp"
	"fmt"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/rules"
)

// maxTries bounds the calls that are tried for one claim, tool and form of callers.
const maxTries = 200

const notComputed = "its outcome is not computed"

// A trial is the search for a call that settles a claim.
type trial struct {
	*problem
	claim   *claim
	entries [][]*entry // the policies of each side that can decide about the tool
	tries   int
	result  Result
}

func newTrial(t *tool, f form, c *claim, sides []*side, divided *cache) *trial {
	s := &trial{problem: &problem{tool: t, form: f, sides: sides, cache: divided}, claim: c}
	atoms := c.when.atoms()
	for _, side := range sides {
		entries := side.fitting(t.input())
		for _, e := range entries {
			atoms = append(atoms, e.atoms()...)
		}
		s.entries = append(s.entries, entries)
		s.cost += len(entries)
	}
	s.divideAll(atoms)
	s.goal, s.settle = s.isSought, s.try
	s.giveUp = func(reason string) {
		s.doubt(reason, nil)
		s.finished = true
	}
	return s
}

// isSought says whether some calls at the point, and all of them, are what the claim looks for.
func (s *trial) isSought() (some, all bool) {
	scope := s.eval(s.claim.when, canTrue)
	if scope&canFail != 0 { // never and always speak about calls for which the condition fails
		scope = scope&^canFail | boolOutcome(s.claim.Kind != Reachable)
	}
	if scope&canTrue == 0 {
		return false, false
	}

	all = scope == canTrue
	decisions, older := s.decisionsOf(0), []decision{{}}
	if len(s.sides) > 1 {
		older = s.decisionsOf(1)
	}
	for _, d := range decisions {
		for _, old := range older {
			if s.claim.concerns(d, old) {
				some = true
			} else {
				all = false
			}
		}
	}
	return some, some && all
}

// decisionsOf returns the decisions that the policies of a side can make at the point.
func (s *trial) decisionsOf(number int) (decisions []decision) {
	if s.sides[number].unlisted {
		return []decision{{effect: rules.Allow}}
	}
	add := func(effect string, e *entry) {
		d := decision{effect: effect}
		if effect == rules.Pending {
			d.terms = &e.held
		}
		addTo(&decisions, d)
	}
	for _, e := range s.entries[number] {
		when := s.eval(e.when, canTrue)
		if when&canFail != 0 && e.strict {
			add(rules.Deny, e)
		}
		if when&canTrue != 0 {
			s.addEffects(e, add)
		}
		if when&canFalse == 0 && (e.strict || when&canFail == 0) {
			return decisions
		}
	}
	add(rules.Deny, nil)
	return decisions
}

// addEffects adds the decisions of a policy that matches.
func (s *trial) addEffects(e *entry, add func(string, *entry)) {
	denies := s.eval(e.deny, canFalse)
	if denies != canFalse {
		add(rules.Deny, e)
	}
	if denies&canFalse == 0 {
		return
	}
	asks := s.eval(e.ask, canFalse)
	if asks&canFail != 0 {
		add(rules.Deny, e)
	}
	if asks&canTrue != 0 {
		add(rules.Pending, e)
	}
	if asks&canFalse != 0 {
		add(e.effect, e)
	}
}

// try makes a call of the point and asks the real gates about it.
func (s *trial) try() {
	if s.tries++; s.tries > maxTries {
		s.giveUp("too many calls were tried")
		return
	}
	c := s.call()
	if refused := s.refusal(c); refused != "" {
		s.doubt("no call was found that passes the other gates: "+refused, nil)
		return
	}
	judged := condition.NewSubject(c.Input(s.sides[0].bundle))
	decisions := []decision{decide(s.sides[0].bundle, judged), {}}
	if len(s.sides) > 1 {
		decisions[1] = decide(s.sides[1].bundle, condition.NewSubject(c.Input(s.sides[1].bundle)))
	}

	switch {
	case s.claim.covers(judged) && s.claim.concerns(decisions[0], decisions[1]):
		s.result.Call, s.finished = c, true
	case len(s.assumed) > 0:
		s.doubt(cmp.Or(s.free[s.assumed[0]], notComputed), s.assumed[0])
	case s.guessed != nil:
		s.doubt(cmp.Or(s.free[s.guessed], notComputed), s.guessed)
	default:
		s.giveUp(fmt.Sprintf("internal error: the policies do not decide about %s as the proof expects", c.Args))
	}
}

// refusal says which other gate refuses a call; empty if none does.
func (s *trial) refusal(c *Call) string {
	b, t := s.sides[0].bundle, s.tool
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
func (s *trial) doubt(reason string, a *atom) {
	if s.result.Reason != "" {
		return
	}
	s.result.Reason = reason
	if a != nil {
		s.result.Condition, s.result.Where = a.source, a.where
	}
}
