package screen

import (
	"fmt"
	"strings"
	"testing"
)

// unfiltered is what a screen says when every pattern runs.
func unfiltered(s *Screen) *Screen {
	c := *s
	c.ear = nil
	for _, r := range []*reading{&c.folded, &c.mapped} {
		r.programs, r.always = append([]program(nil), r.programs...), true
		for i := range r.programs {
			r.programs[i].clauses = wanted{}
		}
	}
	return &c
}

var awkwardPatterns = []string{
	`abc`, `abc|abd|x`, `(?i)ABC`, `a(?:b|c)+de`, `a?bcd`, `(?:ab){2,3}c`, `[a-c]de`, `[^a]bc`, `.*bc`, `^ab$`, `\bab\b`,
	`a(?:bc|d*)e`, `(?:ab|cd)(?:ef|gh)`, `x(?:[a-z]*foo)`, `(?:a|ab)(?:c|bcd)`, `ab\s+cd`, `(ab|(cd|ef)g)h`, `a{3}`,
	`(?s:a.b)c`, `(?:|a)bc`, `é+x`, `Ａb`, `k.l`, `[lL]ist`, `rn|vvx`, `a(?P<but_x>b)?c`, `(?:ab|c.|de)fg`, `\d\dab`,
}

func awkwardScreen(tb testing.TB, pattern string) *Screen {
	tb.Helper()
	s, err := Compile([]Rule{{"a", pattern, "r"}}, 1<<20)
	if err != nil {
		tb.Fatalf("Compile(%q) = %v", pattern, err)
	}
	return s
}

func same(t *testing.T, s, all *Screen, text string) {
	t.Helper()
	got, want := s.Judge(text), all.Judge(text)
	if (got == nil) != (want == nil) || got != nil && *got != *want {
		t.Errorf("Judge(%q) = %+v, want what it is without a prefilter, %+v", text, got, want)
	}
}

func TestPrefilter_EveryShortTextOfEveryAwkwardPattern(t *testing.T) {
	const letters = "abcdefghx "
	var texts []string
	for n, level := 0, []string{""}; n < 4; n++ {
		var next []string
		for _, text := range level {
			for _, c := range letters {
				next = append(next, text+string(c))
			}
		}
		texts, level = append(texts, next...), next
	}
	texts = append(texts, "xfoo", "xazfoo", "ababc", "abababc", "abcdefgh", "aaa",
		"éx", "ﬁab", "Ab", "k1l", "list", "1ist", "12ab")
	hits := 0
	for _, pattern := range awkwardPatterns {
		s := awkwardScreen(t, pattern)
		all := unfiltered(s)
		for _, text := range texts {
			same(t, s, all, text)
			if all.Judge(text) != nil {
				hits++
			}
		}
	}
	if hits < 1000 {
		t.Errorf("only %d of the texts match anything", hits)
	}
}

func TestPrefilter_Defaults(t *testing.T) {
	s := defaultScreen(t)
	all := unfiltered(s)
	for _, p := range append(append([]program(nil), s.folded.programs...), s.mapped.programs...) {
		if p.clauses == (wanted{}) {
			t.Errorf("a program of %s always runs: %s", s.rules[p.rule].ID, p.compiled().prog)
		}
	}
	for _, name := range []string{"blocked.txt", "benign.txt"} {
		for _, line := range lines(t, name, 150) {
			same(t, s, all, line)
		}
	}
}

// Where literals get too many or too long, patterns run more often and find the same.
func TestPrefilter_PatternsPastItsLimits(t *testing.T) {
	clause := "[a-f][a-f][a-f]x"
	for i := range 12 {
		clause += "|[a-f][a-f][a-f]y" + string(rune('a'+i))
	}
	literal := strings.Repeat("ab", maxExactLen/16)
	for name, pattern := range map[string]string{
		"exact-bytes-at-limit": "[a-h]" + literal[1:], "exact-bytes-past-limit": "[a-h]" + literal,
		"clause-past-limit": "(?:" + clause + ").", "bytes-past-limit": strings.Repeat("(?:"+clause+").*", 20),
	} {
		t.Run(name, func(t *testing.T) {
			s := awkwardScreen(t, pattern)
			all, hits := unfiltered(s), 0
			for _, text := range []string{"", "a" + literal, "h" + literal[1:], literal, "abcx.", "fffyl.", "abcz", "abcxx" +
				strings.Repeat("fedyl.", 20)} {
				same(t, s, all, text)
				if all.Judge(text) != nil {
					hits++
				}
			}
			if hits == 0 {
				t.Errorf("no text matches %.40q", pattern)
			}
		})
	}
}

// With more clauses than there are numbers, up to the last of them and behind it, the same is found.
func TestPrefilter_MoreClausesThanNumbers(t *testing.T) {
	const perRule = 5 // of which each begins otherwise, so that each is looked for by itself
	var rules []Rule
	for i := range maxNumbers/perRule + 2 {
		rules = append(rules, Rule{fmt.Sprint("rule", i), fmt.Sprintf(`a%[1]dq\d|b%[1]dq\d|c%[1]dq\d|d%[1]dq\d|e%[1]dq\d`, i), "r"})
	}
	s, err := Compile(rules, testBytes)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.folded.waiting); n != firstNumber+maxNumbers || !s.folded.always {
		t.Errorf("there are %d numbers, want all of %d and some programs without", n, firstNumber+maxNumbers)
	}
	all := unfiltered(s)
	for i := len(rules) - 4; i <= len(rules); i++ { // the last is past all rules
		for _, first := range "abcde" {
			same(t, s, all, fmt.Sprintf("%c%dq7", first, i))
		}
	}
	same(t, s, all, "a0q7")
}

// The check itself can fail: a prefilter that asks for too much is noticed.
func TestPrefilter_CheckNoticesUnsoundness(t *testing.T) {
	s := awkwardScreen(t, `abc|xyz`)
	broken := *s
	for _, r := range []*reading{&broken.folded, &broken.mapped} {
		r.programs = append([]program(nil), r.programs...)
		r.programs[0].clauses = r.programs[1].clauses
	}
	if broken.Judge("abc") != nil || unfiltered(s).Judge("abc") == nil {
		t.Error("a broken prefilter gives the same answer")
	}
}

func FuzzPrefilter(f *testing.F) {
	for _, line := range lines(f, "blocked.txt", 150) {
		_, text, _ := strings.Cut(line, "\t")
		f.Add(text)
	}
	for _, line := range lines(f, "benign.txt", 150) {
		f.Add(line)
	}
	screens := []*Screen{defaultScreen(f)}
	for _, pattern := range awkwardPatterns {
		screens = append(screens, awkwardScreen(f, pattern))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range screens {
			same(t, s, unfiltered(s), text)
		}
	})
}

func FuzzPattern(f *testing.F) {
	for _, pattern := range awkwardPatterns {
		f.Add(pattern, "abc xfoo list")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		s, err := Compile([]Rule{{"a", pattern, "r"}}, 1<<20)
		if err != nil || len(pattern) > 200 {
			return
		}
		same(t, s, unfiltered(s), text)
	})
}
