package postgres

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "plain", "a\x00b", "\xff\xfe", "\uFFFE", "\uFFFE00", "\uFFFD", "žluť\xc3", "\xed\xa0\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		stored := toText(s)
		if !utf8.ValidString(stored) || strings.Contains(stored, "\x00") {
			t.Errorf("toText(%q) = %q: PostgreSQL cannot store it", s, stored)
		}
		if back, ok := fromText(stored); !ok || back != s {
			t.Errorf("fromText(%q) = %q, %t, want %q", stored, back, ok, s)
		}
	})
}

func TestTextThatNobodyStores(t *testing.T) {
	for _, s := range []string{"\uFFFE", "\uFFFE0", "\uFFFE0g", "\uFFFEF0", "\uFFFE\uFFFE00"} {
		if back, ok := fromText(s); ok {
			t.Errorf("fromText(%q) = %q", s, back)
		}
	}
}
