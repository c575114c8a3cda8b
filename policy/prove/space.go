package prove

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// A Space is a set of calls about which package lint asks: those of tools of any names, schemas and
// annotations, or those of one tool. A call can have any risk: a mode and a score that its baseline
// and set_mode_by_score leave.
type Space struct {
	*side
	levels   []condition.Risk // by rising scores; nil without risk rules
	divided  *cache
	problems []*problem // one for each set of names and form of callers that policies tell apart
	tooMany  bool       // there are too many names, so nothing is known
}

// Limits of a space. Beyond them nothing is known.
const (
	maxNames     = 20_000 // combinations of names
	maxSpaceWork = 50_000 // of one search, as maxWork
	maxAbout     = 128    // policies that Inversion compares
)

// NewSpace returns the calls of tools of any names.
func NewSpace(b *policy.Bundle) (*Space, error) {
	read, err := readSide(b, map[string]*atom{}, nil)
	if err != nil {
		return nil, err
	}
	s := &Space{side: read, divided: newCache()}
	s.findLevels()
	var globs [3][]string
	for _, p := range b.Content().Policy.Policies {
		for i, pattern := range []string{p.Match.Server, p.Match.Tool, p.Match.Env} {
			globs[i] = append(globs[i], pattern)
		}
	}
	var names [3][]string
	for i, name := range []string{"server", "tool", "env"} {
		names[i] = s.divideNames(name, globs[i])
	}
	if s.tooMany = s.tooMany || len(names[0])*len(names[1])*len(names[2]) > maxNames; s.tooMany {
		return s, nil
	}

	seen := map[string]bool{}
	for _, server := range names[0] {
		for _, name := range names[1] {
			for _, env := range names[2] {
				for _, pinned := range []bool{false, true} {
					s.addProblems(&tool{server: server, name: name, env: env, pinned: pinned}, true, seen)
				}
			}
		}
	}
	return s, nil
}

// Tool returns the calls of a tool with its schema and annotations.
func (s *Space) Tool(live *policy.Tool, pinned bool) *Space {
	one := &Space{side: s.side, levels: s.levels, divided: s.divided}
	t := &tool{server: live.Server, name: live.Name, env: s.bundle.Content().Env, pinned: pinned, live: live}
	t.root = shapeOf(live.Input().Root())
	one.addProblems(t, false, map[string]bool{})
	return one
}

// divideNames returns a name for each way in which globs and conditions judge names.
func (s *Space) divideNames(name string, globs []string) []string {
	root := new(tree)
	for _, a := range s.atoms() {
		if a.named && slices.Contains(a.reads, name) {
			for _, feature := range a.features {
				feature(root)
			}
		}
	}
	for _, pattern := range globs {
		if !strings.ContainsAny(pattern, "*?") && pattern != "" {
			addTo(&root.literals, pattern)
		} else if strings.Trim(pattern, "*") != "" {
			addTo(&root.patterns, `\A`+strings.NewReplacer(`\*`, `(?s:.*)`, `\?`, `(?s:.)`).Replace(regexp.QuoteMeta(pattern))+`\z`)
		}
	}
	names, ok := divideAmong(root.literals, root.patterns, root.sizes)
	s.tooMany = s.tooMany || !ok
	return names
}

// atoms returns the atoms of all policies.
func (s *Space) atoms() (all []*atom) {
	for i := range s.policies {
		all = append(all, s.policies[i].atoms()...)
	}
	return all
}

// isAboutNames reports whether an atom asks about names of tools, in a form for which they are not
// divided.
func (a *atom) isAboutNames() bool {
	return !a.named && slices.ContainsFunc(a.reads, func(name string) bool {
		return name == "server" || name == "tool" || name == "env"
	})
}

// isAboutLevel reports whether an atom asks about nothing but the mode and the score.
func (a *atom) isAboutLevel() bool {
	return a.risk != nil && !slices.ContainsFunc(a.reads, func(name string) bool { return name != "risk.mode" && name != "risk.score" })
}

// findLevels lists, for each mode, the lowest and the highest score of each class of levels that
// conditions cannot tell apart.
func (s *Space) findLevels() {
	var asking []*atom
	for _, a := range s.atoms() {
		if a.isAboutLevel() {
			addTo(&asking, a)
		}
	}
	if s.risk == nil || len(asking) == 0 {
		return
	}
	highest := map[string]int{} // an index of levels, by mode and answers
	for _, level := range s.risk.model.Levels() {
		answers := level.Mode + string(ask(asking, &condition.Input{Risk: level}))
		if i, ok := highest[answers]; ok {
			s.levels[i] = level
			continue
		}
		s.levels = append(s.levels, level, level)
		highest[answers] = len(s.levels) - 1
	}
	slices.SortStableFunc(s.levels, func(a, b condition.Risk) int { return a.Score - b.Score })
	s.levels = slices.CompactFunc(s.levels, func(a, b condition.Risk) bool { return a.Mode == b.Mode && a.Score == b.Score })
}

// addProblems adds the calls of a tool by every form of caller, unless policies judge them as those
// of a tool that was seen.
func (s *Space) addProblems(t *tool, anyName bool, seen map[string]bool) {
	cost, fits := 0, make([]bool, len(s.policies))
	var atoms, constants []*atom
	for i := range s.policies {
		if e := &s.policies[i]; e.globs.Fit(t.input()) {
			fits[i] = true
			cost++
			atoms = append(atoms, e.atoms()...)
		}
	}
	for _, a := range atoms {
		if a.place == placeConstant && a.free == "" && !(anyName && a.isAboutNames()) {
			addTo(&constants, a)
		}
	}
	key := fmt.Sprintf("%v%v", fits, ask(constants, t.input()))
	if cost == 0 || seen[key] {
		return
	}
	seen[key] = true
	for _, f := range t.forms() {
		p := &problem{tool: t, form: f, sides: []*side{s.side}, cache: s.divided, levels: s.levels, fits: fits, cost: cost}
		p.isOpen = func(a *atom) bool {
			return anyName && a.isAboutNames() || a.place == placeRisk && !a.isAboutLevel()
		}
		p.divideAll(atoms)
		s.problems = append(s.problems, p)
		if !p.asksCaller() {
			return
		}
	}
}

// run searches for settled points. If there are too many points, it takes any for settled.
func (p *problem) run() {
	p.giveUp = func(string) { p.settle() }
	p.work, p.finished = maxWork-maxSpaceWork, false
	p.search()
}

// exists reports whether a call that the globs of a policy match can be one for which the goal is true.
func (s *Space) exists(policy int, goal func(*problem) outcomes) bool {
	found := s.tooMany
	for _, p := range s.problems {
		if found || !p.fits[policy] {
			continue
		}
		p.goal = func() (some, all bool) {
			out := goal(p)
			return out&canTrue != 0, out == canTrue
		}
		p.settle = func() { found, p.finished = true, true }
		p.run()
	}
	return found
}

// Outcomes says whether a condition of a policy can be true, false, and fail for the calls that the
// globs match. The conditions are when, deny and require_approval_if.
func (s *Space) Outcomes(policy, condition int) (yes, no, fails bool) {
	e := &s.policies[policy]
	f := []*formula{e.when, e.deny, e.ask}[condition]
	can := func(one outcomes) bool {
		return s.exists(policy, func(p *problem) outcomes {
			switch out := p.eval(f, 0); {
			case out == one:
				return canTrue
			case out&one == 0:
				return canFalse
			}
			return canTrue | canFalse
		})
	}
	return can(canTrue), can(canFalse), can(canFail)
}

// Decides reports whether a policy can decide a call that none of some other policies decides. If
// holding, only calls count that the policy holds.
func (s *Space) Decides(policy int, others []int, holding bool) bool {
	e := &s.policies[policy]
	return s.exists(policy, func(p *problem) outcomes {
		out := p.decisionOutcomes(e)
		if holding {
			out = p.holdOutcomes(e)
		}
		for _, i := range others {
			if out&canTrue == 0 {
				break
			}
			if p.fits[i] {
				out = out.and(p.decisionOutcomes(&s.policies[i]).negate())
			}
		}
		return out
	})
}

// decisionOutcomes says whether a policy whose globs match decides: its condition is true, or fails
// where that denies.
func (p *problem) decisionOutcomes(e *entry) outcomes {
	when := p.eval(e.when, canTrue)
	if when&canFail != 0 {
		when = when&^canFail | boolOutcome(e.strict)
	}
	return when
}

// holdOutcomes says whether a policy whose globs match holds a call.
func (p *problem) holdOutcomes(e *entry) outcomes {
	asks := canTrue
	if e.effect != rules.Pending {
		asks = p.eval(e.ask, canFalse)
	}
	out := p.eval(e.when, canTrue).and(p.eval(e.deny, canFalse).negate()).and(asks)
	if out&canFail != 0 {
		out = out&^canFail | canFalse
	}
	return out
}

// An Inversion shows that a policy stops a call at one risk, and that the same call is allowed at a higher.
type Inversion struct {
	Key        string // what stops the call
	Less, More condition.Risk
	By         int // the policy that allows it
}

// Inversion returns an example for a policy; nil if none was found.
func (s *Space) Inversion(policy int) (found *Inversion) {
	e := &s.policies[policy]
	if e.shadow || !e.strict || !slices.ContainsFunc(e.atoms(), (*atom).isAboutLevel) {
		return nil
	}
	for _, p := range s.problems {
		if found != nil || !p.fits[policy] || p.cost > maxAbout {
			continue
		}
		p.goal = func() (some, all bool) { // every point at which what else the policy asks is known
			for _, a := range e.atoms() {
				if !a.isAboutLevel() && !p.outcomesOf(a).isOne() {
					p.first = a
					return true, false
				}
			}
			return true, true
		}
		p.settle = func() {
			p.work += len(s.levels) * p.cost
			found = s.inversion(p, e)
			p.setRisk(s.risk, "")
			p.finished = found != nil || p.work > maxWork
		}
		p.run()
	}
	return found
}

// inversion compares the risks that the calls at the point can have.
func (s *Space) inversion(p *problem, e *entry) *Inversion {
	rank := func(level *condition.Risk) int {
		return slices.IndexFunc(s.risk.content.Modes, func(m risk.Mode) bool { return m.Name == level.Mode })
	}
	var stops []Inversion
	for i := range s.levels {
		level := s.levels[i]
		p.setRisk(s.risk, p.riskOutcomes(s.risk, &level, true))
		decider, key := s.decider(p, e)
		if decider == e && key != "" {
			stops = append(stops, Inversion{Key: key, Less: level})
			continue
		}
		// The call is allowed here: was it stopped at less risk?
		k := slices.IndexFunc(stops, func(stop Inversion) bool {
			less := stop.Less
			return (less.Mode != level.Mode || less.Score != level.Score) && rank(&less) <= rank(&level) && less.Score <= level.Score
		})
		if k >= 0 && decider != nil && key == "" {
			return &Inversion{stops[k].Key, stops[k].Less, level, decider.index}
		}
	}
	return nil
}

// decider returns the policy that decides at the point, and the key by which it denies or holds;
// empty if it allows. The policy is nil if it is not certain that one of both happens. Policies above
// the subject that do not ask for the risk count as if they did not match, unless they match for
// certain.
func (s *Space) decider(p *problem, subject *entry) (by *entry, key string) {
	for i := range s.policies {
		e := &s.policies[i]
		if !p.fits[i] || e.shadow {
			continue
		}
		switch decides := p.decisionOutcomes(e); {
		case decides == canFalse || decides != canTrue && i < subject.index && !slices.ContainsFunc(e.atoms(), (*atom).isAboutLevel):
			continue
		case decides != canTrue:
			return nil, ""
		}

		deny, asks := p.eval(e.deny, canFalse), p.eval(e.ask, canFalse)
		switch {
		case e.effect == rules.Allow && deny|asks == canFalse:
			return e, ""
		case p.eval(e.when, canTrue) != canTrue: // the condition fails, which denies
		case e.effect != rules.Allow && slices.ContainsFunc(e.when.atoms(), (*atom).isAboutLevel):
			return e, "when"
		case deny == canTrue:
			return e, "deny"
		case asks == canTrue:
			return e, "require_approval_if"
		case e.effect != rules.Allow:
			return e, "effect"
		}
		return nil, ""
	}
	return nil, ""
}
