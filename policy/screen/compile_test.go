package screen_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/policy/screen"
)

func TestCompile(t *testing.T) {
	const limit = 100
	tests := []struct {
		name  string
		rules []screen.Rule
		bytes int
		want  string // part of the error, "" for none
	}{
		{"empty-pattern", []screen.Rule{{"a", "", "r"}}, limit, "matches the empty text"},
		{"duplicate-id", []screen.Rule{{"a", "x", "r"}, {"b", "x", "r"}, {"a", "y", "r"}}, limit,
			`input rule 2 (id "a"): the id is that of rule 0`},
		{"bad-pattern", []screen.Rule{{"a", "(", "r"}}, limit, "missing closing )"},
		{"matches-empty-text", []screen.Rule{{"a", "x*", "r"}}, limit, "matches the empty text"},
		{"one-branch-matches-empty-text", []screen.Rule{{"a", "abc|y?", "r"}}, limit, "matches the empty text"},
		{"pattern-at-limit", []screen.Rule{{"a", strings.Repeat("x", screen.MaxPatternBytes), "r"}}, limit, ""},
		{"pattern-past-limit", []screen.Rule{{"a", strings.Repeat("x", screen.MaxPatternBytes+1), "r"}}, limit, "more than 16384"},
		{"rules-past-limit", manyRules(screen.MaxRules + 1), limit, "more than 256"},
		{"instructions-at-limit", []screen.Rule{{"a", wide(screen.MaxRuleSteps), "r"}}, limit, ""},
		{"instructions-past-limit", []screen.Rule{{"a", wide(screen.MaxRuleSteps + 1), "r"}}, limit, "more than 16384 instructions"},
		{"instructions-of-repetitions", []screen.Rule{{"a", strings.Repeat(`[a-y ]{1,900}`, 20), "r"}}, limit,
			"more than 16384 instructions"},
		{"all-instructions-at-limit", wideRules(screen.MaxSteps), limit, ""},
		{"all-instructions-past-limit", wideRules(screen.MaxSteps + 1), limit, "more than 98304"},
		{"excuses-at-limit", []screen.Rule{{"a", excuses(screen.MaxExcuses), "r"}}, limit, ""},
		{"excuses-past-limit", []screen.Rule{{"a", excuses(screen.MaxExcuses + 1), "r"}}, limit, "65 groups named but…, more than 64"},
		{"input-limit-highest", nil, screen.MaxInputBytes, ""},
		{"input-limit-past-highest", nil, screen.MaxInputBytes + 1, "want 1 to"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := screen.Compile(tt.rules, tt.bytes)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("Compile() = %v, want no error", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("Compile() = %v, want an error with %q", err, tt.want)
			case tt.want != "" && s != nil:
				t.Errorf("Compile() returns a screen with an error")
			}
		})
	}
}

func manyRules(n int) []screen.Rule {
	var list []screen.Rule
	for i := range n {
		list = append(list, screen.Rule{fmt.Sprint("r", i), fmt.Sprint("word", i, "x"), "r"})
	}
	return list
}

// wide is a pattern that counts as n instructions.
func wide(n int) string {
	// a concatenation, its repetitions at 101*2 each and its literals
	const each = 202
	rest := (n - 1) % each
	return strings.Repeat("[xy]{100}", (n-1)/each-1) + "z" + strings.Repeat("x", rest+each-1)
}

// wideRules make n instructions together.
func wideRules(n int) []screen.Rule {
	var list []screen.Rule
	for i := 0; n > 0; i++ {
		size := min(n, screen.MaxRuleSteps)
		if rest := n - size; 0 < rest && rest < 1000 {
			size -= 1000
		}
		list, n = append(list, screen.Rule{fmt.Sprint("r", i), wide(size), "r"}), n-size
	}
	return list
}

func excuses(n int) string {
	p := "x"
	for i := range n {
		p += fmt.Sprintf("(?P<but_%d>y)?", i)
	}
	return p
}

func TestJudge(t *testing.T) {
	rules := []screen.Rule{
		{"second-word", `\bbeta\b`, "no beta"},
		{"first-word", `Alpha`, "no alpha"},
		{"excused", `gamma(?P<but_ray> ray)?`, "no gamma"},
		{"digits", `\b\d{16}\b`, "no card numbers"},
		{"class", `delt[A]`, "no delta"},
	}
	s, err := screen.Compile(rules, 40)
	check.NoError(t, err)
	denied := func(i int) *screen.Hit { return &screen.Hit{rules[i].ID, rules[i].Reason, screen.CodeDenied} }
	large := func(n int) *screen.Hit {
		return &screen.Hit{Code: screen.CodeTooLarge, Reason: fmt.Sprintf("the input has %d bytes, more than 40", n)}
	}
	taken := func(n int) *screen.Hit {
		reason := fmt.Sprintf("the texts in the input have %d bytes together, more than 40", n)
		return &screen.Hit{Code: screen.CodeTooLarge, Reason: reason}
	}
	notText := &screen.Hit{Code: screen.CodeNotText, Reason: "the input is not UTF-8"}
	folded := func(begin, end string) *screen.Hit {
		return &screen.Hit{Code: screen.CodeTooLarge, Reason: begin + " in folded form" + end + ", more than 40"}
	}
	many := strings.Repeat
	tests := []struct {
		name  string
		texts []string
		want  *screen.Hit
	}{
		{"no-text", nil, nil},
		{"nothing-against-it", []string{"epsilon"}, nil},
		{"first-rule-wins-not-first-place", []string{"alpha beta"}, denied(0)},
		{"first-rule-wins-across-texts", []string{"alpha", "beta"}, denied(0)},
		{"texts-are-not-joined", []string{"al", "pha"}, nil},
		{"capital-in-pattern", []string{"alphabet"}, denied(1)},
		{"excuse", []string{"gamma ray"}, nil},
		{"excuse-is-for-one-match", []string{"gamma ray gamma"}, denied(2)},
		{"digits-stay-digits", []string{"4111111111111111"}, denied(3)},
		{"digits-among-letters", []string{"al9h4 b3t4"}, denied(0)},
		{"past-size-limit", []string{strings.Repeat("x", 41)}, large(41)},
		{"texts-taken-from-it-past-size-limit", []string{"x", many("x", 20), many("x", 21)}, taken(41)},
		{"only-request-past-size-limit", []string{many("x", 41), "x"}, large(41)},
		{"folded-past-size-limit", []string{many("ﷺ", 1) + many("x", 41-33)}, folded("the input has 41 bytes", "")},
		{"taken-folded-past-size-limit", []string{"", "ﷺ", many("x", 41-33)},
			folded("the texts in the input have 41 bytes", " together")},
		{"size-before-encoding", []string{strings.Repeat("\xff", 41)}, large(41)},
		{"not-utf-8", []string{"be\xffta"}, notText},
		{"hidden-in-tags", []string{"x\U000E0062\U000E0065\U000E0074\U000E0061"}, denied(0)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, s.Judge(tt.texts...)); diff != "" {
				t.Errorf("Judge(%q) (-want +got):\n%s", tt.texts, diff)
			}
		})
	}
}

func TestJudge_ZeroScreenRefuses(t *testing.T) {
	for _, s := range []*screen.Screen{nil, {}} {
		if hit := s.Judge(); hit == nil || hit.Code != screen.CodeDenied {
			t.Errorf("Judge() = %+v, want %s", hit, screen.CodeDenied)
		}
	}
}

func TestDefaults_OrderAndReasons(t *testing.T) {
	var ids []string
	for _, r := range screen.Defaults() {
		ids = append(ids, r.ID)
	}
	want := []string{"malware", "credential_theft", "phishing", "exfiltration", "weapons", "self_harm", "policy_bypass"}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
}
