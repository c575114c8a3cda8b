package screen

import (
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
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
	for _, d := range defaults() {
		steps := defaultPatterns()[d.Pattern].steps
		if steps > MaxRuleSteps*2/3 {
			t.Errorf("%s has %d instructions, want at most two thirds of %d", d.ID, steps, MaxRuleSteps)
		}
		all += steps
	}
	if all > MaxSteps/2 {
		t.Errorf("all have %d instructions, want at most half of %d", all, MaxSteps)
	}
}

// TestDefaults_NeedsAreComplete writes random texts that a default rule matches: each contains one of the literals without which the
// rule does not run.
func TestDefaults_NeedsAreComplete(t *testing.T) {
	const texts = 3000
	random := rand.New(rand.NewPCG(1, 1))
	for _, d := range defaults() {
		t.Run(d.ID, func(t *testing.T) {
			tree, err := syntax.Parse(d.Pattern, syntax.Perl)
			check.NoError(t, err)
			missing := map[string]bool{}
			for range texts {
				var b strings.Builder
				writeMatch(&b, tree, random)
				isIn := func(literal string) bool { return strings.Contains(b.String(), literal) }
				if !slices.ContainsFunc(strings.Fields(d.needs), isIn) && len(missing) < 20 {
					missing[b.String()] = true
				}
			}
			for text := range missing {
				t.Errorf("%q has none of the literals", text)
			}
		})
	}
}

// writeMatch writes a text that re matches, with as little as possible in optional and repeated parts.
func writeMatch(b *strings.Builder, re *syntax.Regexp, random *rand.Rand) {
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		b.WriteRune(re.Rune[2*random.IntN(len(re.Rune)/2)])
	case syntax.OpAlternate:
		writeMatch(b, re.Sub[random.IntN(len(re.Sub))], random)
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		for _, sub := range re.Sub {
			writeMatch(b, sub, random)
		}
	case syntax.OpRepeat:
		for range re.Min {
			writeMatch(b, re.Sub[0], random)
		}
	}
}
