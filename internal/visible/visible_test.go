package visible

import (
	"errors"
	"strings"
	"testing"
	"unicode"
)

func TestText(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"plain-letters-of-other-scripts", "Überprüfung 検証 проверка", "Überprüfung 検証 проверка"},
		{"ansi-colour", "\x1b[31mred", `\u001b[31mred`},
		{"carriage-return-overwrites", "deny\rallow", `deny\u000dallow`},
		{"bidi-override", "user\u202etxt.exe", `user\u202etxt.exe`},
		{"zero-width-space", "mal\u200bware", `mal\u200bware`},
		{"tag-characters-smuggle-text", "ok\U000e0041", `ok\U000e0041`},
		{"variation-selector", "a\ufe0f", `a\ufe0f`},
		{"hangul-filler", "a\u3164b", `a\u3164b`},
		{"braille-blank", "a\u2800b", `a\u2800b`},
		{"musical-null-notehead", "a\U0001d159b", `a\U0001d159b`},
		{"no-break-space", "a\u00a0b", `a\u00a0b`},
		{"line-separator", "a\u2028b", `a\u2028b`},
		{"broken-utf8", "a\xffb", `a\xffb`},
		{"replacement-character", "a\ufffdb", `a\ufffdb`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Text(tc.in); got != tc.want {
				t.Errorf("Text(%q) = %s, want %s", tc.in, got, tc.want)
			}
		})
	}
}

func TestErrorIsOneLine(t *testing.T) {
	if got, want := Error(errors.Join(errors.New("a"), errors.New("b\x1b"))), `a; b\u001b`; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}

func TestLinesKeepsNewLinesAndTabs(t *testing.T) {
	if got, want := Lines("a\n\tb\x1b"), "a\n\tb\\u001b"; got != want {
		t.Errorf("Lines() = %q, want %q", got, want)
	}
}

func TestClip(t *testing.T) {
	for _, tc := range []struct {
		name  string
		limit int
		want  string
	}{
		{"at-the-limit", 5, "naïf"},
		{"one-short", 4, "naï… (5 bytes)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Clip("naïf", tc.limit); got != tc.want {
				t.Errorf("Clip(naïf, %d) = %q, want %q", tc.limit, got, tc.want)
			}
		})
	}
}

func TestCut(t *testing.T) {
	for _, tc := range []struct {
		name, in, want string
		limit          int
		mark           string
	}{
		{"at-the-limit", "naïf", "naïf", 5, "…"},
		{"one-short", "naïf", "naï…", 4, "…"},
		{"inside-a-character", "naïf", "na…", 3, "…"},
		{"without-a-mark", "naïf", "na", 3, ""},
		{"no-room", "naïf", "…", 0, "…"},
		{"no-character-begins", "\x80\x80\x80", "…", 2, "…"},
		{"nothing-is-escaped", "\x1b[2J", "\x1b[", 2, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Cut(tc.in, tc.limit, tc.mark); got != tc.want {
				t.Errorf("Cut(%q, %d) = %q, want %q", tc.in, tc.limit, got, tc.want)
			}
		})
	}
}

func TestBlank(t *testing.T) {
	for _, s := range []string{"", " \t\n", "\u00a0", "\u200b", "\u2800", "\u3164\ufe0f", "\x00\x1b", "\u202e"} {
		if !Blank(s) {
			t.Errorf("Blank(%q) = false, want true", s)
		}
	}
	for _, s := range []string{"a", " . ", "\u200bé", "0", "⠁"} {
		if Blank(s) {
			t.Errorf("Blank(%q) = true, want false", s)
		}
	}
}

func TestPlainWord(t *testing.T) {
	for _, s := range []string{"a", "Z", "0", "-c", "a_b@c%d+e=f:g,h.i/j-k"} {
		if !PlainWord(s) {
			t.Errorf("PlainWord(%q) = false, want true", s)
		}
	}
	for _, s := range []string{"", " ", "a b", "a\n", "a'b", `a"b`, "$a", "a;b", "a&b", "a|b", "a*", "a?", "[a]", "~", "#a", "`a`",
		"a\\b", "(a)", "<a", ">a", "{a}", "!a", "a^b", "é", "\xff", "\x00"} {
		if PlainWord(s) {
			t.Errorf("PlainWord(%q) = true, want false", s)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a", "\x1b[2J", "\u202e", "\xff\xfe", "\U000e0001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		if i := strings.IndexFunc(got, func(r rune) bool {
			return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Bidi_Control, r)
		}); i >= 0 {
			t.Errorf("Text(%q) = %q still hides something at %d", s, got, i)
		}
		if Text(got) != got {
			t.Errorf("Text(%q) is not stable", s)
		}
	})
}
