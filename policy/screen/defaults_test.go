package screen

import (
	"regexp/syntax"
	"testing"
)

// Every trace contains the rules.
func TestDefaults_AreSmall(t *testing.T) {
	total := 0
	for _, r := range Defaults() {
		total += len(r.Pattern)
	}
	const limit = 24 << 10
	if total > limit {
		t.Errorf("the default patterns have %d bytes together, want at most %d", total, limit)
	}
}

func TestDefaults_FitTheLimitsWithAMargin(t *testing.T) {
	all := 0
	for _, r := range Defaults() {
		tree, err := syntax.Parse(r.Pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		one := 0
		for _, branch := range branches(tree) {
			one += instructions(branch, MaxRuleSteps)
		}
		if one > MaxRuleSteps*2/3 {
			t.Errorf("%s has %d instructions, want at most two thirds of %d", r.ID, one, MaxRuleSteps)
		}
		all += one
	}
	if all > MaxSteps/2 {
		t.Errorf("all have %d instructions, want at most half of %d", all, MaxSteps)
	}
}
