package screen_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/policy/screen"
)

const testBytes = 16384

// lines returns the lines of a file under testdata, at least least of them.
func lines(tb testing.TB, name string, least int) []string {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	check.NoError(tb, err)
	list := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if len(list) < least {
		tb.Fatalf("%s has %d lines, want at least %d", name, len(list), least)
	}
	return list
}

func TestDefaults_BlockedList(t *testing.T) {
	s := defaultScreen(t)
	seen := map[string]bool{}
	for _, line := range lines(t, "base.txt", 100) {
		id, text, found := strings.Cut(line, "\t")
		if !found {
			t.Fatalf("line %q has no tab", line)
		}
		seen[id] = true
		if hit := s.Judge(text); hit == nil || hit.RuleID != id || hit.Code != screen.CodeDenied {
			t.Errorf("Judge(%q) = %+v, want rule %s", text, hit, id)
		}
	}
	for _, r := range screen.Defaults() {
		if !seen[r.ID] {
			t.Errorf("no line for rule %s", r.ID)
		}
	}
}

func TestDefaults_EveryDisguiseOfEveryLine(t *testing.T) {
	s := defaultScreen(t)
	for _, d := range disguises {
		t.Run(d.name, func(t *testing.T) {
			for _, line := range lines(t, "base.txt", 100) {
				id, text, _ := strings.Cut(line, "\t")
				masked := d.apply(text)
				if hit := s.Judge(masked); hit == nil {
					t.Errorf("Judge(%q) = nil, want rule %s", masked, id)
				}
			}
		})
	}
}

func TestDefaults_BenignList(t *testing.T) {
	s := defaultScreen(t)
	for _, text := range lines(t, "benign.txt", 150) {
		if hit := s.Judge(text); hit != nil {
			t.Errorf("Judge(%q) = %+v, want nil", text, hit)
		}
		for _, d := range disguises {
			if !d.harmless {
				continue
			}
			if hit := s.Judge(d.apply(text)); hit != nil {
				t.Errorf("Judge(%q, %s) = %+v, want nil", d.apply(text), d.name, hit)
			}
		}
	}
}

func defaultScreen(tb testing.TB) *screen.Screen { return compiled(tb, screen.Defaults()...) }

func compiled(tb testing.TB, rules ...screen.Rule) *screen.Screen {
	tb.Helper()
	s, err := screen.Compile(rules, testBytes)
	check.NoError(tb, err)
	return s
}
