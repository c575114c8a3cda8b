package evidence

import (
	"iter"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Class is a kind of token.
type Class string

// The token classes.
const (
	Number     Class = "number"
	Date       Class = "date"
	Identifier Class = "identifier"
)

// A Token is a part of a claim that its evidence must contain.
type Token struct {
	Class      Class
	Text       string // s[Start:End]
	Start, End int    // byte offsets
}

// Tokens returns the numbers, dates and identifiers of s in order; the package comment defines
// them. Tokens do not overlap.
func Tokens(s string) []Token {
	list := wordsOf(s)
	var tokens []Token
	for i := 0; i < len(list); {
		class, n := joinedToken(s, list[i:])
		if n == 0 {
			class, n = list[i].ownClass(), 1
		}
		if class != "" {
			start, end := list[i].start, list[i+n-1].end
			tokens = append(tokens, Token{class, s[start:end], start, end})
		}
		i += n
	}
	return tokens
}

// key returns the part that two tokens must share to be the same.
func (t Token) key() Token {
	if t.Class != Identifier {
		t.Text = strings.Join(strings.Fields(strings.ToLower(t.Text)), " ")
	}
	t.Start, t.End = 0, 0
	return t
}

// unsupportedToken returns the first token of claim that is not in evidence, as they are written or
// as they are read.
func unsupportedToken(claim, evidence string) (Token, bool) {
	if t, bad := missingToken(claim, evidence); bad {
		return t, bad
	}
	return missingToken(foldSpaces(claim), foldSpaces(evidence))
}

// foldSpaces folds s and makes each run of white space one space.
func foldSpaces(s string) string { return strings.Join(strings.Fields(fold(s)), " ") }

func missingToken(claim, evidence string) (Token, bool) {
	claimed := Tokens(claim)
	if len(claimed) == 0 {
		return Token{}, false
	}
	evidenceKeys := make(map[Token]bool)
	for _, t := range Tokens(evidence) {
		evidenceKeys[t.key()] = true
	}
	for _, t := range claimed {
		if !evidenceKeys[t.key()] {
			return t, true
		}
	}
	return Token{}, false
}

// A meaning is the role of a chunk in a token of several chunks.
type meaning int

const (
	plainWord  meaning = iota
	digitsWord         // nothing but numbers, with signs and joiners
	dayNumber          // one or two digits, perhaps with st, nd, rd or th
	oneWord            // "one": a number word only beside another
	numberWord         // "seven"
	scaleWord          // "million"
	shortScale         // "bn", "k", "percent", "thousands": only behind a number
	minusWord          // "minus": only before a number
	andWord            // "and"
	monthName          // "March", "mar"
)

type word struct {
	chunk
	meaning     meaning
	behindSlash bool // directly behind a slash, as in an address or a path
}

var dateShape = regexp.MustCompile(`^(?:\d{4}[-/]\d{1,2}(?:[-/]\d{1,2})?|\d{4}\.\d{1,2}\.\d{1,2}|` +
	`\d{1,2}[-/.]\d{1,2}[-/.](?:\d{2}|\d{4})|\d{1,2}:\d{2}(?::\d{2})?|\d{4}-\d{2}-\d{2}[Tt]\d{2}:.*)$`)

// meanings are the words with a role, in lower case.
var meanings = func() map[string]meaning {
	m := map[string]meaning{"one": oneWord, "and": andWord, "minus": minusWord}
	for _, group := range []struct {
		meaning meaning
		words   string
	}{
		{numberWord, "zero two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen " +
			"seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety dozen"},
		{scaleWord, "hundred thousand million billion trillion"},
		{shortScale, "k m mn bn tn lakh crore percent pct dozens hundreds thousands millions billions trillions"},
		{monthName, "january february march april may june july august september october november december " +
			"jan feb mar apr jun jul aug sep sept oct nov dec"},
	} {
		for _, w := range strings.Fields(group.words) {
			m[w] = group.meaning
		}
	}
	return m
}()

// wordsOf returns the chunks of s with their meanings.
func wordsOf(s string) []word {
	found := splitChunks(s)
	list := make([]word, len(found))
	for i, c := range found {
		previous, _ := utf8.DecodeLastRuneInString(s[:c.start])
		list[i] = word{c, meaningOf(c.core), strings.ContainsRune(slashes, previous)}
	}
	return list
}

func meaningOf(core string) meaning {
	if first, _ := utf8.DecodeRuneInString(core); isNumber(first) {
		switch {
		case isDay(core):
			return dayNumber
		case allNumbers(core):
			return digitsWord
		}
		return plainWord
	}
	if m, ok := meanings[strings.ToLower(core)]; ok {
		return m
	}
	result := plainWord
	for name := range latinNames(core) { // twenty-one
		if m := meanings[strings.ToLower(name)]; m != numberWord && m != scaleWord && m != oneWord {
			return plainWord
		}
		result = numberWord
	}
	return result
}

// latinNames returns the runs of Latin letters of core: the English words in it, whatever joins
// them.
func latinNames(core string) iter.Seq[string] {
	return strings.FieldsFuncSeq(core, func(r rune) bool { return !unicode.Is(unicode.Latin, r) })
}

// isDay reports whether core is one or two digits, perhaps with st, nd, rd or th.
func isDay(core string) bool {
	suffix := strings.TrimLeft(core, "0123456789")
	if n := len(core) - len(suffix); n < 1 || n > 2 {
		return false
	}
	return suffix == "" || suffix == "st" || suffix == "nd" || suffix == "rd" || suffix == "th"
}

func allNumbers(core string) bool {
	for _, r := range core {
		if isWord(r) && !isNumber(r) {
			return false
		}
	}
	return true
}

// ownClass returns the class of w by itself, or "" if it is no token.
func (w word) ownClass() Class {
	switch {
	case w.core == "": // the chunk has only invisible characters
		return ""
	case strings.IndexByte("0123456789", w.core[0]) >= 0 && dateShape.MatchString(w.core):
		return Date
	case strings.ContainsFunc(w.core, isNumber):
		if allNumbers(w.core) {
			return Number
		}
		return Identifier
	case w.meaning == numberWord, w.meaning == scaleWord:
		return Number
	case isMonth(w.core):
		return Date
	case w.behindSlash, isName(w.core), mixesAlphabets(w.core):
		return Identifier
	}

	// What is left is joined of words, of which one may be a number or a month.
	for name := range latinNames(w.core) {
		if m := meanings[strings.ToLower(name)]; m == numberWord || m == scaleWord {
			return Number // ten-day
		}
		if isMonth(name) {
			return Date // March's
		}
	}
	return ""
}

// isMonth reports whether s is the whole name of a month with a capital. May is not: it is more
// often another word.
func isMonth(s string) bool {
	lower := strings.ToLower(s)
	return meanings[lower] == monthName && 'A' <= s[0] && s[0] <= 'Z' &&
		(len(s) > len("Sept") || lower == "june" || lower == "july")
}

// addressShape is a dot with two word characters or more on a side of it: example.com and t.co, but
// not e.g.
var addressShape = regexp.MustCompile(`[\pL\pM\pN_]{2}\.|\.[\pL\pM\pN_]{2}`)

// isName reports whether a chunk without numbers is an identifier.
func isName(core string) bool {
	if strings.ContainsAny(core, "_@:") || addressShape.MatchString(core) {
		return true
	}
	for part := range strings.FieldsFuncSeq(core, func(r rune) bool { return !isWord(r) }) {
		_, size := utf8.DecodeRuneInString(part)
		if strings.ContainsFunc(part[size:], unicode.IsUpper) {
			return true
		}
	}
	return false
}
