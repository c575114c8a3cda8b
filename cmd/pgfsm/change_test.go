package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
	"pgfsm/policy/docdiff"
	"pgfsm/policy/visible"
)

// printed returns the printed form of a change.
func printed(c docdiff.Change) string {
	var out bytes.Buffer
	printChange(&out, newInk(world{stdout: &out, getenv: func(string) (string, bool) { return "", false }}), c)
	return out.String()
}

// TestChangeIsFitToBeShown shows that a terminal obeys nothing that a server writes.
func TestChangeIsFitToBeShown(t *testing.T) {
	quoted := func(s string) []byte { return canonical.MustMarshal(s) }
	for _, tt := range []struct {
		name, before, now string
		want              []string
	}{
		{"ansi", "Looks.", "Looks.\x1b[2K\rLooks.", []string{`+ "Looks.\u001b[2K\rLooks."`}},
		{"bidi", "a", "a\u202eb", []string{`+ "a\u202eb"`}},
		{"tags", "a", "a\U000e0068\U000e0069", []string{`+ "a\U000e0068\U000e0069"`}},
		{"invisible", "a", "a\u200b", []string{`- "a"`, `+ "a\u200b"`}},
		{"space-behind", "a", "a ", []string{`- "a"`, `+ "a "`}},
		{"written-escape-is-not-an-escape", `a`, `a\u200b"`, []string{`+ "a\\u200b\""`}},
		{"letters-that-look-the-same", "fetch", "f\u0435tch", []string{`the two look the same; they differ in U+0435`}},
		{"ascii-that-looks-the-same", "paypal", "paypaI", []string{`! the two look the same; they differ in l/I`}},
		{"words-that-look-the-same", "Pays by paypal.com now", "Pays with paypaI.com later",
			[]string{`! words of the two look the same; they differ in l/I`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := printed(docdiff.Change{At: "/description", Kind: docdiff.Changed, Old: quoted(tt.before), New: quoted(tt.now)})
			if visible.Lines(got) != got {
				t.Errorf("print() = %q, want nothing that does not show", got)
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("print() = %s, want %s in it", got, want)
				}
			}
		})
	}
	t.Run("value-that-is-added", func(t *testing.T) {
		got := printed(docdiff.Change{At: "/a\u202e", Kind: docdiff.Added, New: []byte("{\"a\u202e\":[\"\U000e0068\"]}")})
		want := "  added /a\\u202e\n    + {\n    +   \"a\\u202e\": [\n    +     \"\\udb40\\udc68\"\n    +   ]\n    + }\n"
		if got != want {
			t.Errorf("print() = %s, want %s", got, want)
		}
	})
}

// TestAChangeLeavesRoomForOthers shows that the lines of a change are bounded, and that omitted characters are counted.
func TestAChangeLeavesRoomForOthers(t *testing.T) {
	quoted := func(s string) []byte { return canonical.MustMarshal(s) }
	const lineWidth, wide = 80, changeWidth - len(`""`) // characters of a text that fill a line
	for _, tt := range []struct {
		name     string
		old, now []byte
		want     []string // of what is left out
	}{
		{"long-text-that-fits", quoted(strings.Repeat("a", wide*50)), quoted(strings.Repeat("b", wide*49)), nil},
		{"text-one-past", quoted(strings.Repeat("a", 3*lineWidth*changeLines)), quoted("b"),
			[]string{fmt.Sprintf("    ! %d characters are not shown here; --json shows all\n",
				3*lineWidth*changeLines+2-(changeLines-1)/2*changeWidth-((changeLines-1)/2-1)*changeWidth)}},
		{"lines-at-the-limit", nil, []byte("[" + strings.Repeat("1,", changeLines-3) + "1]"), nil},
		{"lines-one-past", nil, []byte("[" + strings.Repeat("1,", changeLines-2) + "1]"),
			[]string{"    ! 12 characters are not shown here; --json shows all\n"}},
		{"many-long-lines", quoted(strings.Repeat(strings.Repeat("a", 9000)+"\n", 2000)), quoted("b\n"),
			[]string{"characters are not shown here"}},
		{"long-name", nil, quoted("b"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := docdiff.Change{At: "/a", Kind: docdiff.Changed, Old: tt.old, New: tt.now}
			if tt.name == "long-name" {
				c.At = jsontext.Pointer("/" + strings.Repeat("a", 1<<20))
			}
			got := printed(c)
			lines := 0
			for line := range strings.Lines(got) {
				lines += (len(line) - 1 + lineWidth - 1) / lineWidth
			}
			if most := 1 + changeLines + maxPointer/lineWidth + 1; lines > most {
				t.Errorf("print() takes %d lines, want at most %d", lines, most)
			}
			if (len(tt.want) == 0) == strings.Contains(got, "not shown here") {
				t.Errorf("print() = %s, want %q in it", visible.Clip(got, 9000), tt.want)
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("print() = %s, want %q in it", visible.Clip(got, 9000), want)
				}
			}
		})
	}
}
