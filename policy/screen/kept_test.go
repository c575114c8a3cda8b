package screen

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func ruleOf(pattern string) []Rule { return []Rule{{"a", pattern, "r"}} }

func onShelf(tb testing.TB, k *shelf, rules []Rule) *Screen {
	tb.Helper()
	s, err := compileRules(rules)
	if err != nil {
		tb.Fatal(err)
	}
	k.keep(s)
	return s
}

func TestShelf_KeepsTheLastUsed(t *testing.T) {
	var k shelf
	first := onShelf(t, &k, ruleOf("word0"))
	for i := 1; i < maxKept; i++ {
		onShelf(t, &k, ruleOf(fmt.Sprint("word", i)))
	}
	if k.find(ruleOf("word0")) != first {
		t.Error("at the limit the first is gone")
	}
	onShelf(t, &k, ruleOf("one past"))
	switch {
	case len(k.screens) != maxKept:
		t.Errorf("there are %d screens, want %d", len(k.screens), maxKept)
	case k.find(ruleOf("word0")) != first:
		t.Error("past the limit the one that was used last is gone")
	case k.find(ruleOf("word1")) != nil:
		t.Error("past the limit the one that was not used for longest is there")
	}
	for _, s := range k.screens {
		if s == nil || k.find(s.rules) != s {
			t.Errorf("%+v is lost", s)
		}
	}
}

func TestShelf_EveryPartOfARuleCounts(t *testing.T) {
	var k shelf
	two := []Rule{{"a", "abc", "r"}, {"b", "abc", "r"}}
	kept := onShelf(t, &k, two)
	for name, rules := range map[string][]Rule{ // in any order
		"id": {{"a", "abc", "r"}, {"c", "abc", "r"}}, "pattern": {{"a", "abc", "r"}, {"b", "abd", "r"}},
		"reason": {{"a", "abc", "r"}, {"b", "abc", "s"}}, "order": {two[1], two[0]}, "fewer": two[:1], "none": nil,
		"more": {two[0], two[1], {"c", "abc", "r"}},
	} {
		if k.find(rules) != nil {
			t.Errorf("%s: the screen for other rules is found", name)
		}
	}
	if k.find([]Rule{{"a", "abc", "r"}, {"b", "abc", "r"}}) != kept {
		t.Error("the screen for equal rules is not found")
	}
	onShelf(t, &k, two)
	if len(k.screens) != 1 {
		t.Errorf("equal rules are kept %d times", len(k.screens))
	}
}

func TestShelf_LargeScreensAreNotKept(t *testing.T) {
	size := func(n int) *Screen {
		return &Screen{folded: reading{scanner: &scanner{next: make([]uint16, n-1)}}, mapped: reading{scanner: &scanner{next: make([]uint16, 1)}}}
	}
	var k shelf
	if k.keep(size(maxKeptSize + 1)); len(k.screens) != 0 {
		t.Error("one past the limit is kept")
	}
	if k.keep(size(maxKeptSize)); len(k.screens) != 1 {
		t.Error("at the limit it is not kept")
	}
}

// A screen that was kept is the same to everyone, whoever changes what it was made from, and knows only its own size.
func TestCompile_AgainIsAsTheFirstTime(t *testing.T) {
	rules := ruleOf("kept word")
	one, err := Compile(rules, 20)
	if err != nil {
		t.Fatal(err)
	}
	rules[0].Pattern = "other"
	two, err := Compile(ruleOf("kept word"), 10)
	if err != nil {
		t.Fatal(err)
	}
	if &one.folded.programs[0] != &two.folded.programs[0] {
		t.Error("the rules are compiled again")
	}
	for _, tc := range []struct {
		name, text string
		s          *Screen
		code       string
	}{
		{"first", "a kept word", one, CodeDenied},
		{"first-at-its-size", strings.Repeat("x", 20), one, ""},
		{"first-past-its-size", strings.Repeat("x", 21), one, CodeTooLarge},
		{"second", "kept word", two, CodeDenied},
		{"second-at-its-size", strings.Repeat("x", 10), two, ""},
		{"second-past-its-size", strings.Repeat("x", 11), two, CodeTooLarge},
		{"changed-by-the-caller", "other", two, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hit := tc.s.Judge(tc.text)
			if code := codeOf(hit); code != tc.code {
				t.Errorf("Judge(%q) = %q, want %q", tc.text, code, tc.code)
			}
		})
	}
	for range 2 { // what is not kept is refused each time
		if _, err := Compile(ruleOf("kept word"), 0); err == nil {
			t.Error("Compile() with no size = nil, want an error")
		}
		if _, err := Compile(ruleOf("x*"), 10); err == nil {
			t.Error("Compile() of what matches everything = nil, want an error")
		}
	}
}

func codeOf(h *Hit) string {
	if h == nil {
		return ""
	}
	return h.Code
}

func TestCompile_FromManyGoroutines(t *testing.T) {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 4 * maxKept {
				word := fmt.Sprint("together", (i+j)%(maxKept+2))
				s, err := Compile(ruleOf(word), 100)
				if err != nil || s.Judge("a "+word) == nil || s.Judge("a word") != nil {
					t.Errorf("Compile(%q) = %v, or it judges wrongly", word, err)
				}
			}
		})
	}
	all.Wait()
}
