package prove

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"pgfsm/policy"
	"pgfsm/policy/rules"
)

// ErrTooMany refuses to compare policies with too many combinations of cells.
var ErrTooMany = errors.New("there are too many combinations of what conditions ask")

// Shares returns which share of the combinations of cells two bundles allow, from 0 to 1. Every
// tool, and of a tool every combination, counts alike; so this is no share of calls.
func Shares(ctx context.Context, b, older *policy.Bundle, o Options) (share, olderShare float64, err error) {
	atoms := map[string]*atom{}
	newSide, err := readSide(b, atoms, nil)
	if err != nil {
		return 0, 0, err
	}
	oldSide, err := readSide(older, atoms, newSide)
	if err != nil {
		return 0, 0, err
	}

	tools, divided := toolsOf(b, o), newCache()
	for _, t := range tools {
		forms := t.forms()
		for _, f := range forms {
			s := newTrial(t, f, &claim{Claim: new(Claim)}, []*side{newSide, oldSide}, divided)
			counted, ok := s.countAllowed()
			if err := ctx.Err(); err != nil || !ok {
				return 0, 0, cmp.Or(err, ErrTooMany)
			}
			if !s.asksCaller() { // every caller is judged alike
				forms = forms[:1]
			}
			weight := 1 / float64(len(tools)*len(forms))
			share, olderShare = share+weight*counted[0], olderShare+weight*counted[1]
			if len(forms) == 1 {
				break
			}
		}
	}
	return share, olderShare, nil
}

// countAllowed returns, for each side, the share of the combinations of cells that it allows.
func (s *trial) countAllowed() (shares [2]float64, ok bool) {
	ok = true
	var total float64
	isAllow := func(d decision) bool { return d.effect == rules.Allow }
	isCertain := func(decisions []decision) bool {
		allows := slices.ContainsFunc(decisions, isAllow)
		return !allows || !slices.ContainsFunc(decisions, func(d decision) bool { return !isAllow(d) })
	}
	s.goal = func() (some, all bool) { return true, isCertain(s.decisionsOf(0)) && isCertain(s.decisionsOf(1)) }
	s.settle = func() {
		weight := s.weight()
		total += weight
		for i := range shares {
			if isAllow(s.decisionsOf(i)[0]) {
				shares[i] += weight
			}
		}
	}
	s.giveUp = func(string) { ok, s.finished = false, true }

	s.search()
	for i := range shares {
		shares[i] /= total
	}
	return shares, ok
}

// weight returns the share of the point among the combinations of cells whose values conform.
func (p *problem) weight() float64 {
	weight := 1.0
	for i, d := range p.domains {
		if p.chosen[i] < 0 {
			continue
		}
		conforming := slices.IndexFunc(d.cells, func(c cell) bool { return !c.conform }) // they are the first
		switch {
		case conforming <= 0: // all, or none
			weight /= float64(len(d.cells))
		case p.chosen[i] >= conforming:
			return 0
		default:
			weight /= float64(conforming)
		}
	}
	return weight
}
