package screen_test

import (
	"os"
	"strings"
	"testing"

	"pgfsm/policy/screen"
)

// isSoak says whether random and exhaustive tests run long, as in make soak.
var isSoak = os.Getenv("PGFSM_SOAK") != ""

var awkwardPatterns = []string{
	`abc`, `abc|abd|x`, `(?i)ABC`, `a(?:b|c)+de`, `a?bcd`, `(?:ab){2,3}c`, `[a-c]de`, `[^a]bc`, `.*bc`, `^ab$`, `\bab\b`,
	`a(?:bc|d*)e`, `(?:ab|cd)(?:ef|gh)`, `x(?:[a-z]*foo)`, `(?:a|ab)(?:c|bcd)`, `ab\s+cd`, `(ab|(cd|ef)g)h`, `a{3}`,
	`(?s:a.b)c`, `(?:|a)bc`, `é+x`, `Ａb`, `k.l`, `[lL]ist`, `rn|vvx`, `a(?P<but_x>b)?c`, `(?:ab|c.|de)fg`, `\d\dab`,
}

func same(t *testing.T, s, all *screen.Screen, text string) (denied bool) {
	t.Helper()
	got, want := s.Judge(text), all.Judge(text)
	if (got == nil) != (want == nil) || got != nil && *got != *want {
		t.Errorf("Judge(%q) = %+v, want what it is without a prefilter, %+v", text, got, want)
	}
	return want != nil
}

func TestPrefilter_EveryShortTextOfEveryAwkwardPattern(t *testing.T) {
	const letters = "abcdefghx "
	length := 3
	if isSoak {
		length = 4
	}
	var texts []string
	for n, level := 0, []string{""}; n < length; n++ {
		var next []string
		for _, text := range level {
			for _, c := range letters {
				next = append(next, text+string(c))
			}
		}
		texts, level = append(texts, next...), next
	}
	texts = append(texts, "xfoo", "xazfoo", "ababc", "abababc", "abcdefgh", "aaa",
		"éx", "ﬁab", "Ab", "k1l", "list", "1ist", "12ab", "abde", "bcde")
	hits := 0
	for _, pattern := range awkwardPatterns {
		s := compiled(t, rule(pattern))
		all := screen.Unfiltered(s)
		for _, text := range texts {
			if same(t, s, all, text) {
				hits++
			}
		}
	}
	if hits < 400 {
		t.Errorf("only %d of the texts match anything", hits)
	}
}

func TestPrefilter_Defaults(t *testing.T) {
	s := defaultScreen(t)
	all := screen.Unfiltered(s)
	if n := screen.AlwaysRuns(s); n > 0 {
		t.Errorf("%d patterns always run", n)
	}
	for _, name := range []string{"blocked.txt", "benign.txt"} {
		for i, line := range lines(t, name, 150) {
			if isSoak || i%32 == 0 {
				same(t, s, all, line)
			}
		}
	}
}

// If literals are too many or too long, patterns run more often and match the same texts.
func TestPrefilter_PatternsPastItsLimits(t *testing.T) {
	many := "[a-f][a-f][a-f]x"
	for i := range 12 {
		many += "|[a-f][a-f][a-f]y" + string(rune('a'+i))
	}
	const maxExactLen = 8 << 10
	literal := strings.Repeat("ab", maxExactLen/16)
	for name, pattern := range map[string]string{
		"exact-bytes-at-limit": "[a-h]" + literal[1:], "exact-bytes-past-limit": "[a-h]" + literal,
		"clause-past-limit": "(?:" + many + ").", "bytes-past-limit": strings.Repeat("(?:"+many+").*", 20),
	} {
		t.Run(name, func(t *testing.T) {
			s := compiled(t, rule(pattern))
			all, hits := screen.Unfiltered(s), 0
			for _, text := range []string{"", "a" + literal, "h" + literal[1:], literal, "abcx.", "fffyl.", "abcz", "abcxx" +
				strings.Repeat("fedyl.", 20)} {
				if same(t, s, all, text) {
					hits++
				}
			}
			if hits == 0 {
				t.Errorf("no text matches %.40q", pattern)
			}
		})
	}
}

func TestPrefilter_MoreLiteralsThanThereIsRoomFor(t *testing.T) {
	var rules []screen.Rule
	for i := range 26 {
		id := string(rune('a' + i))
		rules = append(rules, screen.Rule{ID: id, Pattern: "[a-p][a-p]q" + strings.Repeat(id, 28) + "[0-9]", Reason: "r"})
	}
	s := compiled(t, rules...)
	if screen.AlwaysRuns(s) == 0 {
		t.Error("there is room for all literals")
	}
	for _, r := range rules {
		for _, end := range []string{"7", "x"} {
			same(t, s, screen.Unfiltered(s), "ccq"+strings.Repeat(r.ID, 28)+end)
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, pattern := range awkwardPatterns {
		f.Add(pattern, "abc xfoo list")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		s, err := screen.Compile([]screen.Rule{rule(pattern)}, 1<<20)
		if err != nil || len(pattern) > 200 {
			return
		}
		same(t, s, screen.Unfiltered(s), text)
	})
}
