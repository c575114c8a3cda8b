package ruling

import (
	"fmt"
	"sync"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/states/statestest"
)

// TestJudgeIsBounded: each set of risk rules is compiled once, by one of those who ask at once, and not all of
// thousands are remembered.
func TestJudgeIsBounded(t *testing.T) {
	s := NewJudge(statestest.Policies(rules.Policy{ID: "all", Effect: rules.Allow}), nil)
	rated := func(i int) *policy.Content {
		c := statestest.Content()
		c.Risk = statestest.Ladder(risk.Rule{ID: fmt.Sprintf("rule-%d", i), SetMode: "danger"})
		return &c
	}
	const askers = 16
	var got [askers]*policy.Bundle
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i], _ = s.bundleFor(rated(0)) })
	}
	wg.Wait()
	for i, b := range got {
		if b == nil || b != got[0] {
			t.Fatalf("asker %d has another bundle than the first: %p, %p", i, b, got[0])
		}
	}
	seen := make(map[*policy.Bundle]bool)
	for i := range 3 * maxBundles {
		b, err := s.bundleFor(rated(i))
		check.NoError(t, err)
		seen[b] = true
		if len(s.compiled) > maxBundles {
			t.Fatalf("%d bundles are remembered, want at most %d", len(s.compiled), maxBundles)
		}
	}
	if len(seen) != 3*maxBundles {
		t.Errorf("%d sets of rules have %d bundles", 3*maxBundles, len(seen))
	}
	last, err := s.bundleFor(rated(3*maxBundles - 1))
	if err != nil || !seen[last] {
		t.Errorf("bundle() = %p, %v, want the one that was compiled", last, err)
	}
	// What is no risk rule makes no other bundle.
	plain, err := s.bundleFor(&policy.Content{Format: policy.ContentFormat, Limits: rated(0).Limits, Summary: rated(0).Summary, Input: rated(0).Input})
	check.NoError(t, err)
	for env := range 3 {
		c := statestest.Content()
		c.Env, c.Roles = fmt.Sprint(env), []policy.Role{{Role: fmt.Sprint(env)}}
		if b, err := s.bundleFor(&c); err != nil || b != plain {
			t.Errorf("bundle() without risk rules = %p, %v, want %p", b, err, plain)
		}
	}
}
