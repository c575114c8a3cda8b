package evidence

import (
	"regexp"
	"slices"
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

// A Token is a part of a text that a summary must not make up.
type Token struct {
	Class      Class
	Text       string // as it stands, s[Start:End]
	Start, End int    // byte offsets
}

// Tokens returns the numbers, dates and identifiers of s in order; the package comment defines them. Tokens do not
// overlap.
func Tokens(s string) []Token {
	list := words(s)
	var tokens []Token
	for i := 0; i < len(list); {
		class, n := joined(s, list[i:])
		if n == 0 {
			class, n = list[i].class(), 1
		}
		if class != "" {
			start, end := list[i].start, list[i+n-1].end
			tokens = append(tokens, Token{class, s[start:end], start, end})
		}
		i += n
	}
	return tokens
}

// key returns what two tokens must share to be the same.
func (t Token) key() Token {
	if t.Class != Identifier {
		t.Text = strings.Join(strings.Fields(strings.ToLower(t.Text)), " ")
	}
	t.Start, t.End = 0, 0
	return t
}

// unsupported returns the first token of claim that evidence does not hold.
func unsupported(claim, evidence string) (Token, bool) {
	var there []Token
	for _, t := range Tokens(evidence) {
		there = append(there, t.key())
	}
	for _, t := range Tokens(claim) {
		if !slices.Contains(there, t.key()) {
			return t, true
		}
	}
	return Token{}, false
}

// A meaning is what a chunk is worth beside its neighbours.
type meaning int

const (
	plain       meaning = iota
	digits              // nothing but numbers, with signs and joiners
	day                 // one or two digits, perhaps with st, nd, rd or th
	one                 // "one": a number word only in company
	numberWord          // "seven"
	scaleWord           // "million"
	percentWord         // "percent"
	perWord             // the "per" of "per cent"
	centWord            // and its "cent"
	andWord             // "and"
	monthName           // "March", "mar"
)

type word struct {
	chunk
	meaning meaning
}

var (
	dateShape = regexp.MustCompile(`^(?:\d{4}[-/]\d{1,2}(?:[-/]\d{1,2})?|\d{4}\.\d{1,2}\.\d{1,2}|` +
		`\d{1,2}([-/.])\d{1,2}[-/.](?:\d{2}|\d{4})|\d{1,2}:\d{2}(?::\d{2})?|\d{4}-\d{2}-\d{2}[Tt]\d{2}:.*)$`)
	dayShape = regexp.MustCompile(`^\d{1,2}(?:st|nd|rd|th)?$`)

	numberWords = strings.Fields("zero two three four five six seven eight nine ten eleven twelve thirteen fourteen " +
		"fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety dozen")
	scaleWords = strings.Fields("hundred thousand million billion trillion")
	months     = strings.Fields("january february march april may june july august september october november december")
	shortMonth = strings.Fields("jan feb mar apr jun jul aug sep sept oct nov dec")
)

// words returns the chunks of s with their meanings.
func words(s string) []word {
	var list []word
	for _, c := range chunks(s) {
		list = append(list, word{c, meaningOf(c.core)})
	}
	return list
}

func meaningOf(core string) meaning {
	if first, _ := utf8.DecodeRuneInString(core); unicode.IsNumber(first) {
		switch {
		case dayShape.MatchString(core):
			return day
		case allNumbers(core):
			return digits
		}
		return plain
	}
	lower := strings.ToLower(core)
	switch {
	case lower == "one":
		return one
	case lower == "percent":
		return percentWord
	case lower == "per":
		return perWord
	case lower == "cent":
		return centWord
	case lower == "and":
		return andWord
	case slices.Contains(scaleWords, lower):
		return scaleWord
	case slices.Contains(months, lower), slices.Contains(shortMonth, lower):
		return monthName
	case isNumberWords(lower):
		return numberWord
	}
	return plain
}

// isNumberWords reports whether s is "seven", "twenty-one", …
func isNumberWords(s string) bool {
	parts := strings.Split(s, "-")
	for _, p := range parts {
		if !slices.Contains(numberWords, p) && !slices.Contains(scaleWords, p) && (p != "one" || len(parts) == 1) {
			return false
		}
	}
	return true
}

func allNumbers(core string) bool {
	for _, r := range core {
		if isWord(r) && !unicode.IsNumber(r) {
			return false
		}
	}
	return true
}

// class returns the class of w standing alone, or "" if it is no token.
func (w word) class() Class {
	switch {
	case dateShape.MatchString(w.core):
		return Date
	case allNumbers(w.core):
		return Number
	case strings.ContainsFunc(w.core, unicode.IsNumber):
		return Identifier
	case w.meaning == numberWord, w.meaning == scaleWord:
		return Number
	case w.meaning == monthName:
		lower := strings.ToLower(w.core)
		if lower != w.core && lower != "may" && slices.Contains(months, lower) {
			return Date
		}
	}
	if isName(w.core) {
		return Identifier
	}
	return ""
}

// isName reports whether a chunk without numbers is an identifier.
func isName(core string) bool {
	if strings.ContainsAny(core, "_@:") {
		return true
	}
	parts := strings.FieldsFunc(core, func(r rune) bool { return !isWord(r) })
	if strings.Contains(core, ".") && !slices.ContainsFunc(parts, func(p string) bool {
		return utf8.RuneCountInString(p) < 2
	}) {
		return true
	}
	return slices.ContainsFunc(parts, func(p string) bool {
		_, size := utf8.DecodeRuneInString(p)
		return strings.ContainsFunc(p[size:], unicode.IsUpper)
	})
}
