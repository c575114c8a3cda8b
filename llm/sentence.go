package llm

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sentences yields the sentences of a text, in order, each a verbatim part of it without the white space and list marks
// around it. It is a simplification of UAX #29 that rather joins two sentences than cuts one: half a sentence can say
// the opposite of the whole. golang.org/x/text has no sentence breaking.
//
// A sentence ends behind a run of the marks . ! ? … and the closing quotes and brackets after it, if white space or the
// end of the text follows, so that 3.14, 01.05.2024 and example.com stay whole. It does not end there if
//   - the next word begins with a lower-case letter (UAX #29, SB8), or
//   - a single dot follows an abbreviation of the table, one letter (J. Smith, U.S., e.g.), the number that begins a
//     list item (1.), or the day in front of a month's name (5. May).
//
// The marks 。！？ end a sentence whatever follows. A line break ends one where the line ends in a colon, the next line is
// blank or begins a list item, a heading or a quotation; elsewhere it is taken for a wrapped line.
//
// The time is linear in the length of the text.
func sentences(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := skipSpace(text, 0)
		for i := start; i < len(text); {
			next, ends := boundary(text, start, i)
			if ends {
				if s := trimItem(text[start:next]); s != "" && !yield(s) {
					return
				}
				// A sentence begins with no white space, so that looking back at its beginning never costs more than once.
				next = skipSpace(text, next)
				start = next
			}
			i = next
		}
		if s := trimItem(text[start:]); s != "" {
			yield(s)
		}
	}
}

func skipSpace(text string, i int) int {
	return len(text) - len(strings.TrimLeftFunc(text[i:], unicode.IsSpace))
}

// boundary looks at the rune at i of the sentence that begins at start: where to go on, and whether the sentence ends
// there.
func boundary(text string, start, i int) (next int, ends bool) {
	r, size := rune(text[i]), 1
	if r >= utf8.RuneSelf {
		r, size = utf8.DecodeRuneInString(text[i:])
	}
	switch r {
	case '.', '!', '?', '…':
		return afterMark(text, start, i)
	case '。', '！', '？':
		return len(text) - len(strings.TrimLeft(text[i:], "。！？"+closers)), true
	case '\n', '\r', '\u0085', '\u2028', '\u2029':
		if strings.HasPrefix(text[i:], "\r\n") {
			size = 2
		}
		return i + size, lineEnds(text[start:i], text[i+size:])
	}
	return i + size, false
}

const closers = "\"')]}»”’"

// afterMark judges the run of marks that begins at i.
func afterMark(text string, start, i int) (next int, ends bool) {
	rest := strings.TrimLeft(text[i:], ".!?…")
	lone := len(rest) == len(text)-i-1 && text[i] == '.'
	rest = strings.TrimLeft(rest, closers)
	next = len(text) - len(rest)
	following := text[skipSpace(text, next):]
	switch {
	case following == "":
		return next, true
	case len(following) == len(rest):
		return next, false
	}
	if first, _ := utf8.DecodeRuneInString(following); unicode.IsLower(first) {
		return next, false
	}
	return next, !lone || !abbreviates(text[start:i], following)
}

// abbreviates reports whether a dot between before and following ends a word but no sentence.
func abbreviates(before, following string) bool {
	number := strings.TrimRightFunc(before, func(r rune) bool { return '0' <= r && r <= '9' })
	if digits := len(before) - len(number); digits > 0 {
		return digits <= 3 && number == "" || digits <= 2 && isMonth(following)
	}
	// Longer words are no abbreviations, and looking no further back keeps the time linear.
	tail := before[max(0, len(before)-longestAbbreviation-utf8.UTFMax):]
	word := tail[len(strings.TrimRightFunc(tail, unicode.IsLetter)):]
	return utf8.RuneCountInString(word) == 1 || abbreviations[word]
}

func isMonth(s string) bool { return len(s) >= 3 && months[s[:3]] }

// lineEnds reports whether the line break between before and after ends a sentence.
func lineEnds(before, after string) bool {
	if strings.HasSuffix(strings.TrimRight(before, " \t"), ":") {
		return true
	}
	after = strings.TrimLeft(after, " \t")
	if after == "" || strings.ContainsAny(after[:1], "\r\n") {
		return true
	}
	if item := strings.TrimLeft(after, "0123456789"); len(item) < len(after) {
		return strings.HasPrefix(item, ". ") || strings.HasPrefix(item, ") ")
	}
	bare := strings.TrimLeft(after, listMarks)
	return len(bare) < len(after) && (bare == "" || bare[0] == ' ')
}

const listMarks = "-*+•#>|"

// trimItem removes white space and, where white space follows them, the marks of lists, headings and quotations. A sign
// in front of a number stays.
func trimItem(s string) string {
	for {
		s = strings.TrimSpace(s)
		bare := strings.TrimLeft(s, listMarks)
		if bare != "" && (len(bare) == len(s) || bare[0] != ' ') {
			return s
		}
		if s = bare; s == "" {
			return ""
		}
	}
}

const longestAbbreviation = len("approx")

// abbreviations whose dot does not end a sentence even before an upper-case letter. Case counts: "no." ends one,
// "No. 7" does not. Those of one letter (e.g., i.e., p.m.) need no entry; etc. often ends a sentence and has none.
var abbreviations = set("Mr Mrs Ms Dr Prof St Gen Gov Rev No Nos Art Sec Sect Ch Fig Figs Vol Tab Eq pp par vs cf al " +
	"approx incl resp ca Inc Ltd Co Corp Dept Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec")

var months = set("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec")

func set(words string) map[string]bool {
	m := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		m[word] = true
	}
	return m
}
