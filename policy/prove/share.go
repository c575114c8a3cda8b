package prove

import (
	"cmp"
	"context"
	"errors"

	"pgfsm/policy"
	"pgfsm/policy/rules"
)

// ErrTooMany refuses to compare policies with too many combinations of cells.
var ErrTooMany = errors.New("there are too many combinations of what conditions ask")

// Shares returns which share of the combinations of cells two bundles allow, from 0 to 1, to callers of
// one form. Every tool, and of a tool every combination, counts alike; so this is no share of calls.
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
		s := newTrial(t, t.forms()[0], &claim{Claim: new(Claim)}, []*side{newSide, oldSide}, divided)
		counted, ok := s.countAllowed()
		if err := ctx.Err(); err != nil || !ok {
			return 0, 0, cmp.Or(err, ErrTooMany)
		}
		share, olderShare = share+counted[0]/float64(len(tools)), olderShare+counted[1]/float64(len(tools))
	}
	return share, olderShare, nil
}

// countAllowed returns, for each side, the share of the combinations of cells that it allows.
func (s *trial) countAllowed() (shares [2]float64, ok bool) {
	allows := func(side int) (some, all bool) { // calls at the point
		all = true
		for _, d := range s.decisionsOf(side) {
			some, all = some || d.effect == rules.Allow, all && d.effect == rules.Allow
		}
		return some, all
	}
	s.goal = func() (some, all bool) {
		some, all = allows(0)
		olderSome, olderAll := allows(1)
		return true, some == all && olderSome == olderAll
	}

	total := 0.0
	s.settle = func() {
		weight := 1.0
		for i, d := range s.domains {
			if s.chosen[i] >= 0 {
				weight /= float64(len(d.cells))
			}
		}
		total += weight
		for side := range shares {
			if some, _ := allows(side); some {
				shares[side] += weight
			}
		}
	}

	ok = true
	s.giveUp = func(string) { ok, s.finished = false, true }
	s.search()
	return [2]float64{shares[0] / total, shares[1] / total}, ok
}
