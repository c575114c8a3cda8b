package docdiff_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
	"pgfsm/internal/docdiff"
	"pgfsm/internal/visible"
)

// told writes changes as lines.
func told(all []docdiff.Change) (lines []string) {
	for _, c := range all {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s > %s", c.Kind, c.At, string(c.Old), string(c.New))))
	}
	return lines
}

func TestJSON(t *testing.T) {
	for _, tt := range []struct {
		name, before, now string
		want              []string
	}{
		{"the-same", `{"a":[1,{"b":null}]}`, `{"a":[1,{"b":null}]}`, nil},
		{"value", `{"a":"x","b":1}`, `{"a":"y","b":1}`, []string{`changed /a "x" > "y"`}},
		{"member-added", `{"b":1}`, `{"a":{"c":[]},"b":1}`, []string{`added /a  > {"c":[]}`}},
		{"member-removed", `{"a":1,"b":1}`, `{"b":1}`, []string{`removed /a 1 >`}},
		{"member-renamed", `{"a":1}`, `{"b":1}`, []string{`removed /a 1 >`, `added /b  > 1`}},
		{"deep", `{"a":[{"b":{"c":1}}]}`, `{"a":[{"b":{"c":2}}]}`, []string{`changed /a/0/b/c 1 > 2`}},
		{"item-put-in-front", `["b","c"]`, `["a","b","c"]`, []string{`added /0  > "a"`}},
		{"item-put-in-between", `["a","c"]`, `["a","b","c"]`, []string{`added /1  > "b"`}},
		{"items-in-another-order", `["a","b"]`, `["b","a"]`, []string{`changed /0 "a" > "b"`, `changed /1 "b" > "a"`}},
		{"null-is-not-absent", `{"a":null}`, `{}`, []string{`removed /a null >`}},
		{"number-in-another-spelling", `{"a":1}`, `{"a":1.0}`, []string{`changed /a 1 > 1.0`}},
		{"name-that-looks-like-a-pointer", `{"a/b~":1}`, `{"a/b~":2}`, []string{`changed /a~1b~0 1 > 2`}},
		{"whole-document", `1`, `{}`, []string{`changed  1 > {}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, told(docdiff.JSON("", []byte(tt.before), []byte(tt.now)))); d != "" {
				t.Errorf("JSON(%s, %s) (-want +got):\n%s", tt.before, tt.now, d)
			}
		})
	}
}

// numbered are words or lines that all differ.
func numbered(n int, end string) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("w%03d%s", i, end))
	}
	return all
}

// swapped is a text of pieces with one of them in another form.
func swapped(pieces []string, at int, by string) string {
	return strings.Join(pieces[:at], "") + by + strings.Join(pieces[at+1:], "")
}

func TestText(t *testing.T) {
	words, lines := numbered(100, " "), numbered(20, "\n")
	long, block := strings.Join(words, ""), strings.Join(lines, "")
	for _, tt := range []struct {
		name, before, now string
		want              []docdiff.Row
	}{
		{"short-texts-are-shown-whole", "Looks.", "Looks twice.", []docdiff.Row{{"-", "Looks."}, {"+", "Looks twice."}}},
		{"one-word-of-many", long, swapped(words, 50, "evil "), []docdiff.Row{
			{"…", "235 bytes that are the same"}, {" ", strings.Join(words[47:50], "")}, {"-", "w050 "}, {"+", "evil "},
			{" ", strings.Join(words[51:54], "")}, {"…", "230 bytes that are the same"}}},
		{"two-words-far-apart", long, "evil " + swapped(words, 99, "bad ")[5:], []docdiff.Row{
			{"-", "w000 "}, {"+", "evil "}, {" ", strings.Join(words[1:4], "")}, {"…", "460 bytes that are the same"},
			{" ", strings.Join(words[96:99], "")}, {"-", "w099 "}, {"+", "bad "}}},
		{"one-line-of-many", block, swapped(lines, 10, "evil\n"), []docdiff.Row{
			{"…", "35 bytes that are the same"}, {" ", "w007\n"}, {" ", "w008\n"}, {" ", "w009\n"}, {"-", "w010\n"}, {"+", "evil\n"},
			{" ", "w011\n"}, {" ", "w012\n"}, {" ", "w013\n"}, {"…", "30 bytes that are the same"}}},
		{"line-end-goes", "a\n", "a", []docdiff.Row{{"-", "a\n"}, {"+", "a"}}},
		{"to-nothing", "a", "", []docdiff.Row{{"-", "a"}, {"+", ""}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, docdiff.Text(tt.before, tt.now)); d != "" {
				t.Errorf("Text() (-want +got):\n%s", d)
			}
		})
	}
}

// checkText holds that nothing of two texts is lost: what is the same, skipped and removed is the one, what is the
// same, skipped and added the other.
func checkText(t *testing.T, before, now string) {
	t.Helper()
	was, is := before, now
	for _, row := range docdiff.Text(before, now) {
		n := len(row.Text)
		if row.Sign == docdiff.Skipped {
			count, err := strconv.Atoi(strings.TrimSuffix(row.Text, " bytes that are the same"))
			if n = count; err != nil || n > len(was) || n > len(is) || was[:n] != is[:n] {
				t.Fatalf("Text(%q, %q) skips %q", before, now, row.Text)
			}
		}
		if row.Sign != docdiff.Plus {
			if row.Sign != docdiff.Skipped && !strings.HasPrefix(was, row.Text) {
				t.Fatalf("Text(%q, %q): %q was not there", before, now, row.Text)
			}
			was = was[n:]
		}
		if row.Sign != docdiff.Minus {
			if row.Sign != docdiff.Skipped && !strings.HasPrefix(is, row.Text) {
				t.Fatalf("Text(%q, %q): %q is not there", before, now, row.Text)
			}
			is = is[n:]
		}
	}
	if was != "" || is != "" {
		t.Fatalf("Text(%q, %q) leaves out %q and %q", before, now, was, is)
	}
}

func FuzzText(f *testing.F) {
	f.Add("a b c", "a c")
	f.Add("a\nb\nc\n", "a\nc")
	f.Add(strings.Join(numbered(60, " "), ""), swapped(numbered(60, " "), 30, "x\u00a0y "))
	f.Fuzz(func(t *testing.T, before, now string) { checkText(t, before, now) })
}

func TestOtherScripts(t *testing.T) {
	for _, tt := range []struct{ name, before, now, want string }{
		{"other-words", "a", "b", ""},
		{"cyrillic-letter", "fetch", "f\u0435tch", "U+0435 (Cyrillic)"},
		{"cyrillic-letter-removed", "f\u0435tch", "fetch", "U+0435 (Cyrillic)"},
		{"mixed-in-a-new-word", "fetch \u0434\u0430", "f\u0435tch \u0434\u0430", "U+0435 (Cyrillic)"},
		{"mixed-in-the-same-word", "f\u0435tch one", "f\u0435tch two", ""},
		{"two-scripts", "ao", "\u0430\u03bf", "U+0430 (Cyrillic), U+03BF (Greek)"},
		{"at-the-limit", "a", "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456", "U+0430 (Cyrillic), U+0441 (Cyrillic), U+0435 (Cyrillic), " +
			"U+043E (Cyrillic), U+0440 (Cyrillic), U+0445 (Cyrillic), U+0443 (Cyrillic), U+0456 (Cyrillic)"},
		{"one-past", "a", "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456\u0458", "U+0430 (Cyrillic), U+0441 (Cyrillic), U+0435 (Cyrillic), " +
			"U+043E (Cyrillic), U+0440 (Cyrillic), U+0445 (Cyrillic), U+0443 (Cyrillic), U+0456 (Cyrillic), and 1 more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := docdiff.OtherScripts(tt.before, tt.now); got != tt.want {
				t.Errorf("OtherScripts(%q, %q) = %q, want %q", tt.before, tt.now, got, tt.want)
			}
		})
	}
}

// The space of a change in these tests.
const (
	changeLines = 100
	changeWidth = 74
)

// printed returns the rows of a change as text.
func printed(c *docdiff.Change) string {
	var b strings.Builder
	for _, r := range c.Rows(changeLines, changeWidth) {
		fmt.Fprintf(&b, "%s %s\n", r.Sign, r.Text)
	}
	return b.String()
}

// TestRowsAreEscaped shows that a terminal obeys nothing of a change.
func TestRowsAreEscaped(t *testing.T) {
	quoted := func(s string) []byte { return canonical.MustMarshal(s) }
	for _, tt := range []struct {
		name, before, now string
		want              []string
	}{
		{"ansi", "Looks.", "Looks.\x1b[2K\rLooks.", []string{`+ "Looks.\u001b[2K\rLooks."`}},
		{"bidi", "a", "a\u202eb", []string{`+ "a\u202eb"`}},
		{"space-behind", "a", "a ", []string{`- "a"`, `+ "a "`}},
		{"written-escape-is-not-an-escape", `a`, `a\u200b"`, []string{`+ "a\\u200b\""`}},
		{"letters-that-look-the-same", "fetch", "f\u0435tch", []string{`! letters of another script, which may look alike: U+0435 (Cyrillic)`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := printed(&docdiff.Change{At: "/description", Kind: docdiff.Changed, Old: quoted(tt.before), New: quoted(tt.now)})
			if visible.Lines(got) != got {
				t.Errorf("Rows() = %q, want nothing that does not show", got)
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("Rows() = %s, want %s in it", got, want)
				}
			}
		})
	}
	t.Run("value-that-is-added", func(t *testing.T) {
		got := printed(&docdiff.Change{At: "/a", Kind: docdiff.Added, New: []byte("{\"a\u202e\":[\"\U000e0068\"]}")})
		want := "+ {\n+   \"a\\u202e\": [\n+     \"\\udb40\\udc68\"\n+   ]\n+ }\n"
		if got != want {
			t.Errorf("Rows() = %s, want %s", got, want)
		}
	})
}

// TestRowsAreBounded shows that the lines of a change are bounded, and that omitted characters are counted.
func TestRowsAreBounded(t *testing.T) {
	quoted := func(s string) []byte { return canonical.MustMarshal(s) }
	const lineWidth, wide = 80, changeWidth - len(`""`) // characters of a text that fill a line
	for _, tt := range []struct {
		name     string
		old, now []byte
		want     []string // of what is left out
	}{
		{"long-text-that-fits", quoted(strings.Repeat("a", wide*50)), quoted(strings.Repeat("b", wide*49)), nil},
		{"text-one-past", quoted(strings.Repeat("a", 3*lineWidth*changeLines)), quoted("b"),
			[]string{fmt.Sprintf("! %d characters are not shown here; --json shows all\n",
				3*lineWidth*changeLines+2-(changeLines-1)/2*changeWidth-((changeLines-1)/2-1)*changeWidth)}},
		{"lines-at-the-limit", nil, []byte("[" + strings.Repeat("1,", changeLines-3) + "1]"), nil},
		{"lines-one-past", nil, []byte("[" + strings.Repeat("1,", changeLines-2) + "1]"),
			[]string{"! 12 characters are not shown here; --json shows all\n"}},
		{"many-long-lines", quoted(strings.Repeat(strings.Repeat("a", 9000)+"\n", 2000)), quoted("b\n"),
			[]string{"characters are not shown here"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := printed(&docdiff.Change{At: "/a", Kind: docdiff.Changed, Old: tt.old, New: tt.now})
			lines := 0
			for line := range strings.Lines(got) {
				lines += (len(line) - 1 + lineWidth - 1) / lineWidth
			}
			if lines > changeLines {
				t.Errorf("Rows() takes %d lines, want at most %d", lines, changeLines)
			}
			if (len(tt.want) == 0) == strings.Contains(got, "not shown here") {
				t.Errorf("Rows() = %s, want %q in it", visible.Clip(got, 9000), tt.want)
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("Rows() = %s, want %q in it", visible.Clip(got, 9000), want)
				}
			}
		})
	}
}
