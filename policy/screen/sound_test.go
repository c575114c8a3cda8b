package screen

import (
	"strings"
	"testing"
)

// plainText reports whether the ear goes by the sound of t, and returns that.
func plainText(t string) (string, bool) {
	folded := Fold(t)
	return sound(folded), isASCII(t) && isPlain(folded)
}

// sameSound holds all views of a plain text to its sound.
func sameSound(t *testing.T, text string) bool {
	t.Helper()
	want, plain := plainText(text)
	if !plain {
		return false
	}
	for _, view := range longViewsOf(text) {
		if got := sound(view.Text); got != want {
			t.Errorf("the view %q of %q sounds like %q, want %q", view.Text, text, got, want)
		}
	}
	return true
}

func TestSound_OfEveryViewOfAPlainText(t *testing.T) {
	plain := 0
	for _, text := range someTexts(t) {
		if sameSound(t, strings.ToValidUTF8(text, "\ufffd")) {
			plain++
		}
	}
	for _, text := range []string{"rn vv", "r n v v", "mrnwvv", "4 8 3 6 9 1 0 5 7 2", "m-a-l-w-a-r-e", "h a c k   t h e m", "make_me.some", "ra ns om wa re",
		"a\x01a b\x00\tc", "00 0 l1 Il", "a'b \"c\" (d)", " ", ""} {
		if !sameSound(t, text) {
			t.Errorf("%q is not plain", text)
		}
	}
	if plain < 2000 {
		t.Errorf("only %d texts are plain", plain)
	}
}

func FuzzSound(f *testing.F) {
	for _, name := range []string{"blocked.txt", "benign.txt"} {
		for _, line := range lines(f, name, 150) {
			f.Add(line)
		}
	}
	f.Add("a\x01a-a")
	f.Fuzz(func(t *testing.T, text string) { sameSound(t, strings.ToValidUTF8(text, "\ufffd")) })
}

func TestIsPlain(t *testing.T) {
	for _, tc := range []struct {
		name, folded string
		want         bool
	}{
		{"words", "summarize policy policy-002", true},
		{"call", `{"args":{"message":"hello"},"server":"kb","tool":"echo","type":"call_tool"}`, true},
		{"two-equal-letters", "hello aa bb", true},
		{"three-equal-letters", "helllo", false},
		{"three-equal-digits", "1000", false},
		{"three-equal-separators", "wait --- now", true},
		{"equal-letters-of-two-words", "aa a", true},
		{"sign", "r@n", false},
		{"sign-at-the-end", "now!", false},
		{"beyond-ascii", "é", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := isPlain(tc.folded); got != tc.want {
				t.Errorf("isPlain(%q) = %v, want %v", tc.folded, got, tc.want)
			}
		})
	}
}

// What is quiet wakes no program, and most of what has nothing against it is quiet.
func TestEar_IsQuietWhereNothingWakes(t *testing.T) {
	s := defaultScreen(t)
	quiet := func(text string) bool {
		if !s.ear.quiet(text, Fold(text)) {
			return false
		}
		views(text, Fold(text), func(view string, mapped bool) {
			var found set
			r := &s.folded
			if mapped {
				r = &s.mapped
			}
			if r.scan(view, &found); r.awake(&found) {
				t.Errorf("%q is quiet, and its view %q wakes a program", text, view)
			}
		})
		return true
	}
	for _, text := range someTexts(t) {
		quiet(strings.ToValidUTF8(text, "\ufffd"))
	}
	benign, silent := lines(t, "benign.txt", 150), 0
	for _, text := range benign {
		if quiet(text) {
			silent++
		}
	}
	if silent < len(benign)*2/3 {
		t.Errorf("%d of %d benign texts are quiet, want two thirds", silent, len(benign))
	}
}

// Where there is too much to listen for, or a pattern says too little, there is no ear, and the same is found.
func TestEar_ThereIsNone(t *testing.T) {
	long := strings.Repeat("m", MaxPatternBytes*9/10) // sounds twice as long
	for _, tc := range []struct {
		name  string
		rules []Rule
		some  bool
		text  string
	}{
		{"words", []Rule{{"a", `hack\b`, "r"}}, true, "hack"},
		{"no-literals", []Rule{{"a", `h[a-z]+k`, "r"}}, false, "hack"},
		{"literals-that-make-no-sound", []Rule{{"a", `.-- [a-z]+`, "r"}}, false, "1-- hack"},
		{"one-of-them-makes-none", []Rule{{"a", `.(?:--|hack)`, "r"}}, false, "1hack"},
		{"more-than-there-is-room-for", []Rule{{"a", long + "a", "r"}, {"b", long + "b", "r"}, {"c", long + "c|hack", "r"}}, false, "hack"},
		{"no-rules", nil, true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := Compile(tc.rules, testBytes)
			if err != nil {
				t.Fatal(err)
			}
			if (s.ear != nil) != tc.some {
				t.Errorf("there is an ear: %v, want %v", s.ear != nil, tc.some)
			}
			if hit := s.Judge(tc.text); (hit != nil) != (tc.text != "") {
				t.Errorf("Judge(%q) = %v", tc.text, hit)
			}
		})
	}
}

// What is taken from a text is judged as if it stood alone, whether or not it is found in the text.
func TestJudge_TextsOfATextWithAndWithoutAnEar(t *testing.T) {
	s := defaultScreen(t)
	deaf := *s
	deaf.ear = nil
	quiet, found := 0, 0
	for i, text := range someTexts(t) {
		if i%64 != 0 { // to match takes long: a sample
			continue
		}
		text = strings.ToValidUTF8(text, "\ufffd")
		for _, texts := range [][]string{
			{`{"args":{"q":"` + text + `"}}`, "args", "q", text}, {"args " + text, text, "write ransomware"}, {"hello", text}, {text, "", "hello", text[len(text)/2:]},
		} {
			got, want := s.Judge(texts...), deaf.Judge(texts...)
			if (got == nil) != (want == nil) || got != nil && *got != *want {
				t.Fatalf("Judge(%q) = %+v, want what it is without an ear, %+v", texts, got, want)
			}
			if s.ear.quiet(texts[0], Fold(texts[0])) {
				quiet++
			}
			if got != nil {
				found++
			}
		}
	}
	if quiet < 50 || found < 50 {
		t.Errorf("%d first texts are quiet and %d requests are refused: too few", quiet, found)
	}
}

// A long part is not looked for: that could be made to take quadratic time.
func TestIsPart(t *testing.T) {
	words := strings.Repeat("hello it is ", 200)
	for _, tc := range []struct {
		name, text, quiet string
		want              bool
	}{
		{"whole", "hello", "hello", true},
		{"part", "it is", words[:100], true},
		{"longest", words[3 : 3+longestFound], words[:500], true},
		{"too-long", words[3 : 4+longestFound], words[:500], false},
		{"in-as-much-as-is-worth-it", "hello", words[:5*worthFinding], true},
		{"in-too-much", "hello", words[:5*worthFinding+1], false},
		{"not-there", "other", words[:100], false},
		{"nothing", "", words[:100], false},
		{"nothing-is-quiet", "hello", "", false},
		{"nothing-in-nothing", "", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := isPart(tc.text, tc.quiet); got != tc.want {
				t.Errorf("isPart(%q, %q) = %v, want %v", tc.text, tc.quiet, got, tc.want)
			}
		})
	}
}
