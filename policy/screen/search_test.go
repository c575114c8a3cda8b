package screen_test

import (
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/policy/screen"
)

func rule(pattern string) screen.Rule { return screen.Rule{ID: "a", Pattern: pattern, Reason: "r"} }

func TestJudge_Excuses(t *testing.T) {
	const ray = `gamma(?P<but_ray> ray)?`
	const malware = `\b(?:(?P<but_before>who|may) )?write (?:(?:(?P<but_within>report)|\w+) )?malware(?P<but_behind> policy)?`
	tests := []struct {
		name, pattern, text string
		denied              bool
	}{
		{"no-excuse", ray, "gamma", true},
		{"excuse", ray, "gamma ray", false},
		{"request-behind-an-excused-one", ray, "gamma ray gamma", true},
		{"excuse-before", malware, "who write malware", false},
		{"request-behind-an-excuse-before", malware, "who write malware write malware", true},
		{"excuse-within", malware, "write report malware", false},
		{"excused-match-in-an-excused-match", malware, "who write malware policy", false},
		{"request-in-an-excused-match", `write (?:(?P<but_x>report )|\w+ ){0,3}?malware`, "write report write malware", true},
		{"match-that-begins-in-the-excuse", `a(?P<but_x> b a)?`, "a b a", true},
		{"request-behind-a-match-that-begins-with-its-excuse", `(?P<but_x>b )?a`, "b a a", true},
		{"other-group", `gamma(?P<ray> ray)?`, "gamma ray", true},
		{"excused-matches-at-limit", ray, strings.Repeat("gamma ray ", screen.MaxExcused), false},
		{"excused-matches-past-limit", ray, strings.Repeat("gamma ray ", screen.MaxExcused) + "gamma ray", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if hit := compiled(t, rule(tt.pattern)).Judge(tt.text); (hit != nil) != tt.denied {
				t.Errorf("Judge(%q) = %+v, want denied: %v", tt.text, hit, tt.denied)
			}
		})
	}
}

// Rules from a stranger's trace cannot make a replay take hours: what costs too much is refused before it is searched.
func TestJudge_WorkIsBounded(t *testing.T) {
	const pattern = `^[a-y]{900}[a-y]{900}[a-y]{900}[a-y]{900}[a-y]{900}[a-y]{900}[a-y]{900}[a-y]{900}[a-y]{900}` // ends at the first z
	var rules []screen.Rule
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		rules = append(rules, screen.Rule{ID: id, Pattern: pattern, Reason: "r"})
	}
	s, err := screen.Compile(rules, screen.MaxInputBytes)
	check.NoError(t, err)
	short, long := strings.Repeat("z9", 1000), strings.Repeat("z9", 500_000)
	if hit := s.Judge(short); hit != nil {
		t.Errorf("Judge() of a short text = %+v, want nil", hit)
	}
	if hit := s.Judge(long); hit == nil || hit.Code != screen.CodeTooLarge {
		t.Errorf("Judge() of a long text = %+v, want %s", hit, screen.CodeTooLarge)
	}
	// A match does not hide that another text costs too much.
	if hit := s.Judge(strings.Repeat("a", 9000), long); hit == nil || hit.Code == "" {
		t.Errorf("Judge() = %+v, want a refusal", hit)
	}
}

// A long text on every topic is not too much work.
func TestJudge_BenignTextIsNotTooMuchWork(t *testing.T) {
	text := strings.Join(lines(t, "benign.txt", 150)[:75], ". ")
	if hit := defaultScreen(t).Judge(text); hit != nil {
		t.Errorf("Judge() = %+v, want nil", hit)
	}
}
