package screen_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgfsm/policy/screen"
)

func TestFold(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"white-space", " \ta\r\n\v\fb  c ", "a b c"},
		{"control-characters", "a\x00b\x7fc\x1b", "abc"},
		{"zero-width", "a\u200bb\u200c\u200d\ufeff\u2060é", "abé"},
		{"hangul-filler", "a\u3164b\u115fc\uffa0", "abc"},
		{"braille-blank", "a\u2800b", "a b"},
		{"sharp-s", "Straße", "strasse"},
		{"final-sigma", "ΟΔΟΣ", "οδοσ"},
		{"dotted-capital-i", "İ", "i\u0307"},
		{"decomposed", "e\u0301", "é"},
		{"not-utf-8", "a\xff", "a\ufffd"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := screen.Fold(tt.in); got != tt.want {
				t.Errorf("Fold(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestSkeleton(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"empty", "", ""},
		{"signs", "m@|ware $teal", "maiware steai"},
		{"cyrillic", "рауlоаԁ", "payioad"},
		{"digraphs", "rnalvvare", "maiware"},
		{"separators-at-limit", "mal" + strings.Repeat(".", 32) + "ware", "maiware"},
		{"separators-past-limit", "mal" + strings.Repeat(".", 33) + "ware",
			"mai" + strings.Repeat(".", 33) + "ware"},
		{"emoji", "m😀a😀l😀ware", "maiware"},
		{"ligature-letters", "œdæ", "oedae"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := screen.Skeleton(tt.in); got != tt.want {
				t.Errorf("Skeleton(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func FuzzFold(f *testing.F) {
	for _, line := range lines(f, "base.txt", 100) {
		f.Add(line)
	}
	for _, line := range lines(f, "benign.txt", 150) {
		f.Add(line)
	}
	f.Add("a\u0300\u0315\u0345\u034f\u0301 \u0301ﷺİ\u0307\u200b\xff")
	s := defaultScreen(f)
	f.Fuzz(func(t *testing.T, text string) {
		folded := screen.Fold(text)
		if again := screen.Fold(folded); again != folded {
			t.Errorf("Fold(screen.Fold(%q)) = %q, want %q", text, again, folded)
		}
		if !utf8.ValidString(folded) || !utf8.ValidString(screen.Skeleton(folded)) {
			t.Errorf("Fold(%q) or its skeleton is not UTF-8", text)
		}
		s.Judge(text, folded)
	})
}
