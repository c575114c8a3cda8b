package llm

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	// paragraphEnd matches the line break before a blank line, a list item, a heading or a
	// quotation, and after a colon, and the mark of the item. Any other line break is taken for a
	// wrapped line.
	paragraphEnd = regexp.MustCompile(`(?:^|:?[ \t]*\r?\n)[ \t]*(?:\r?\n[ \t]*|[-*+•#>|]+[ \t]+|[0-9]{1,3}[.)][ \t]+)+|:[ \t]*\r?\n`)
	// sentenceEnd matches end marks with the quotes and brackets closed behind them, and white
	// space. The marks 。！？ need none.
	sentenceEnd = regexp.MustCompile(`[.!?…]+["')\]}»”’]*\s+|[。！？]+["')\]}»”’]*\s*`)
	// dayNumber matches a text that ends in a number of one or two digits, as in 5. May.
	dayNumber = regexp.MustCompile(`(?:^|\s)[0-9]{1,2}$`)
)

// splitSentences returns the sentences of a text, in order, each a verbatim part of it without the
// white space and list marks around it. It rather joins two sentences than cuts one: half a
// sentence can say the opposite of the whole.
//
// An end mark ends no sentence if the next word begins with a lower-case letter, or if it is a
// single dot behind a number of one or two digits, a letter alone (J. Smith, U.S., e.g.) or an
// abbreviation of the table.
//
// The time is linear in the length of the text.
func splitSentences(text string) []string {
	var found []string
	add := func(sentence string) {
		if sentence = strings.TrimSpace(sentence); sentence != "" {
			found = append(found, sentence)
		}
	}
	for _, paragraph := range paragraphEnd.Split(text, -1) {
		begin := 0
		for _, mark := range sentenceEnd.FindAllStringIndex(paragraph, -1) {
			if endsSentence(paragraph[begin:mark[0]], strings.TrimSpace(paragraph[mark[0]:mark[1]]),
				paragraph[mark[1]:]) {
				add(paragraph[begin:mark[1]])
				begin = mark[1]
			}
		}
		add(paragraph[begin:])
	}
	return found
}

// endsSentence reports whether the marks between before and after end a sentence.
func endsSentence(before, marks, after string) bool {
	if next, _ := utf8.DecodeRuneInString(after); unicode.IsLower(next) {
		return false
	}
	if marks != "." {
		return true
	}
	// Looking no further back keeps the time linear.
	tail := before[max(0, len(before)-longestAbbreviation-utf8.UTFMax):]
	word := tail[strings.LastIndexFunc(tail, func(r rune) bool { return !unicode.IsLetter(r) })+1:]
	return utf8.RuneCountInString(word) != 1 && !abbreviations[word] && !dayNumber.MatchString(tail)
}

const longestAbbreviation = len("approx")

// abbreviations whose dot does not end a sentence even before an upper-case letter. Case counts:
// "no." ends one, "No. 7" does not. Those of one letter (e.g., i.e., p.m.) need no entry; etc.
// often ends a sentence and has none.
var abbreviations = wordSet("Mr Mrs Ms Dr Prof St Gen Gov Rev No Nos Art Sec Sect Ch Fig Figs Vol Tab Eq pp par vs cf al " +
	"approx incl resp ca Inc Ltd Co Corp Dept Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec")

func wordSet(words string) map[string]bool {
	m := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		m[word] = true
	}
	return m
}
