package screen

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
)

// A search finds what package regexp finds, with the same excuses taking part.
func agrees(t *testing.T, pattern string, texts ...string) {
	t.Helper()
	re, err := regexp.Compile(pattern)
	if err != nil {
		return
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || instructions(tree, MaxRuleSteps) > MaxRuleSteps {
		return
	}
	c, err := compile(tree)
	if err != nil {
		t.Fatal(err)
	}
	s := newSearch(&c, &work{1 << 40})
	defer s.free()
	for _, text := range texts {
		sameAsRegexp(t, s, re, text)
	}
}

func sameAsRegexp(t *testing.T, s *search, re *regexp.Regexp, text string) {
	t.Helper()
	want := re.FindStringSubmatchIndex(text)
	if got := s.find(text); got != (want != nil) {
		t.Errorf("find(%v, %q) = %v, want %v", re, text, got, want != nil)
	}
	if want == nil || s.width == 0 {
		return
	}
	if int(s.best[0]) != want[0] || s.end != want[1] {
		t.Errorf("find(%v, %q) = %d to %d, want %v", re, text, s.best[0], s.end, want[:2])
	}
	n := 0
	for group, name := range re.SubexpNames() {
		if strings.HasPrefix(name, excusePrefix) {
			if n++; int(s.best[n]) != want[2*group] {
				t.Errorf("find(%v, %q): %s begins at %d, want %d", re, text, name, s.best[n], want[2*group])
			}
		}
	}
}

var excusing = []string{
	`a(?P<but_x>b)?c`, `(?P<but_x>a|ab)(c|bcd)(?P<but_y>d*)`, `(?:(?P<but_x>a)|b)*c`, `(?P<but_x>a*?)b`, `(?P<but>x)`,
	`(?i)(?P<but_x>É|k)+\b`, `^(?P<but_a>.)?b$`, `(?m)^(?P<but_a>a)?b$`, `(?s).(?P<but_a>.){2,3}?`, `\Bb(?P<but_b>b|)`,
}

func TestSearch_AgreesWithRegexp(t *testing.T) {
	var texts []string
	for _, line := range lines(t, "base.txt", 100) {
		_, text, _ := strings.Cut(line, "\t")
		texts = append(texts, Fold(text))
	}
	for _, text := range lines(t, "benign.txt", 150) {
		texts = append(texts, Fold(text))
	}
	for _, r := range Defaults() {
		agrees(t, r.Pattern, texts...)
	}
	short := []string{"", "a", "b", "ab", "abc", "aabbc", "bab", "abcd", "xx", "é", "Éék", "a\nb", "b\nb", "bbb",
		"ac abc"}
	for _, pattern := range append(excusing, awkwardPatterns...) {
		agrees(t, pattern, short...)
	}
}

func FuzzSearch(f *testing.F) {
	for _, pattern := range append(excusing, awkwardPatterns...) {
		f.Add(pattern, "ab abc éc\nxb")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) < 200 && len(text) < 200 {
			agrees(t, pattern, text)
		}
	})
}

// Rules from a stranger's record cannot make a replay take hours: judging stops at the limit of work and refuses.
func TestJudge_WorkIsBounded(t *testing.T) {
	chain := strings.Repeat(`[a-y ]{1,900}`, 8) + `[^a-z ]`
	reread := `[^q]{1,900}(?P<but_x>a| )`
	tests := []struct {
		name, pattern, text string
	}{
		{"states", chain, strings.Repeat("ab ", 300)},
		{"states-in-a-hidden-text", chain, strings.Repeat("\U000E0061", 1000)},
		{"excuse-after-excuse", strings.Repeat(reread, 4), strings.Repeat("a ", 500)},
		{"classes", strings.Repeat(`[\pL ]`, 250) + `9`, strings.Repeat("é ", 300)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var rules []Rule
			for _, id := range []string{"a", "b", "c", "d", "e"} {
				rules = append(rules, Rule{id, tt.pattern, "r"})
			}
			s, err := Compile(rules, testBytes)
			if err != nil {
				t.Fatal(err)
			}
			w := &work{StepsPerByte * len(tt.text)}
			s.text(tt.text, Fold(tt.text), len(s.rules), w)
			if most := 4 * MaxRuleSteps * MaxExcuses; !w.spent() || w.left < -most {
				t.Errorf("work left is %d, want 0 to -%d", w.left, most)
			}
			if hit := s.Judge(tt.text); hit == nil || hit.Code != CodeTooLarge {
				t.Errorf("Judge() = %+v, want %s", hit, CodeTooLarge)
			}
		})
	}
}

// The limit of work is a limit: with exactly what a search takes it ends, with one instruction less it does not.
func TestSearch_WorkAtLimitAndOneBelow(t *testing.T) {
	tree, err := syntax.Parse(`a[bc]+d`, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	c, err := compile(tree)
	if err != nil {
		t.Fatal(err)
	}
	run := func(most int) (bool, *work) {
		w := &work{most}
		return c.counts("abcbcbcb", w), w
	}
	_, w := run(1 << 20)
	used := 1<<20 - w.left
	if _, w := run(used); w.spent() {
		t.Errorf("%d instructions do not suffice", used)
	}
	if _, w := run(used - 1); !w.spent() {
		t.Errorf("%d instructions suffice, want %d", used-1, used)
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
