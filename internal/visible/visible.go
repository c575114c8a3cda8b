// Package visible makes text from outside safe to display. Text from a model, a server or a request
// may contain control characters that move a terminal's cursor, ANSI sequences that hide or colour
// words, bidirectional controls that change their order, and invisible characters. An approver must
// see what a text contains, so all of these are written as escapes.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns s with every character that is not visible written as \uXXXX, \UXXXXXXXX, or \xXX
// for a byte that is not UTF-8. New lines and tabs are escaped too: the result is one line.
// Printable text is returned unchanged, without an allocation.
func Text(s string) string { return escapeText(s, false) }

// Lines is [Text], but keeps new lines and tabs, for text that is displayed as a block.
func Lines(s string) string { return escapeText(s, true) }

var backslashes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`)

// Quote is [Text] between quotation marks, so that the ends of s are visible, and so that an escape
// in s differs from one of ours.
func Quote(s string) string { return `"` + Text(backslashes.Replace(s)) + `"` }

// Line is [Text] for messages of our own, which may have joined errors: its new lines are
// semicolons.
func Line(s string) string { return Text(strings.ReplaceAll(s, "\n", "; ")) }

// Error is [Line] of an error's text.
func Error(err error) string { return Line(err.Error()) }

// Clip is [Text] of at most limit bytes of s, cut between characters and marked where it was cut.
func Clip(s string, limit int) string {
	if len(s) <= limit {
		return Text(s)
	}
	return Text(Cut(s, limit, "")) + fmt.Sprintf("… (%d bytes)", len(s))
}

// Cut returns s. If s has more than limit bytes, Cut returns its first characters that fit into
// limit bytes, followed by mark. It escapes nothing, so its result must pass [Text] or [Lines]
// before it is displayed.
func Cut(s string, limit int, mark string) string {
	if len(s) <= limit {
		return s
	}
	end := max(limit, 0)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

func escapeText(s string, block bool) string {
	clean := func(r rune) bool { return isPlain(r) || block && (r == '\n' || r == '\t') }
	if i := strings.IndexFunc(s, func(r rune) bool { return !clean(r) }); i < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && isBroken(s[i:]):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case clean(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// JSON returns a JSON document in which every character that is not displayed as itself is a \u
// escape, except new lines. Outside of strings a document has only ASCII, so its value stays the
// same.
func JSON(doc []byte) string {
	var b strings.Builder
	for _, r := range string(doc) {
		switch {
		case r == '\n' || isPlain(r):
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func isBroken(s string) bool {
	_, size := utf8.DecodeRuneInString(s)
	return size == 1
}

// Blank reports whether s has no visible character: only white space, controls and invisible
// characters.
func Blank(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return isPlain(r) && r != ' ' }) < 0
}

// PlainWord reports whether s needs no quotes in a shell or in a sentence: it is not empty and has
// only ASCII letters, digits and _@%+=:,./-.
func PlainWord(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') &&
			!strings.ContainsRune("_@%+=:,./-", r)
	}) < 0
}

// blankSymbols are symbols and marks by category, but invisible: the Braille blank, the musical
// null notehead and the Khitan filler.
const blankSymbols = "\u2800\U0001d159\U00016fe4"

// isPlain reports whether r is displayed as itself: a letter, mark, number, punctuation, symbol or
// the ASCII space. A backslash is plain, so a text with a written escape looks like an escaped
// text; both are harmless.
func isPlain(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= ' ' && r != 0x7f
	}
	if r == utf8.RuneError {
		return false
	}
	return unicode.IsGraphic(r) && !unicode.Is(unicode.Zs, r) && !isHidden(r)
}

// isHidden reports whether r is invisible although its category is graphic: fillers, blank symbols
// and variation selectors.
func isHidden(r rune) bool {
	return unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Variation_Selector, r) ||
		strings.ContainsRune(blankSymbols, r)
}
