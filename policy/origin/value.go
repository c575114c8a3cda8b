package origin

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"
)

// A value is the text of a leaf, read once in all forms.
type value struct {
	finder *finder
	text   string
	role   string
	words  []string // of the argument's name
	bool   bool

	inForm  bool   // the text is folded
	escaped []byte // the text within a JSON string
	address string
	local   string // of the address, with the @
	compact string
	amount  amount
	link    link
	date    string
	sign    string // of a handle
	handle  string
	scans   int // about how often a text is read to find the value
}

// Steps of a search, as measured.
const (
	scansInStep  = 4     // bytes that the search for a text reads in a step
	patternSteps = 2_000 // to match a scalar with a pattern
	readSteps    = 300   // to read a scalar as an address or a URL
	placeSteps   = 20    // to compare a scalar
	foldSteps    = 10    // to fold a byte of ASCII
)

// newValue reads the text of a leaf.
func (f *finder) newValue(text, role string, words []string, isBool bool) *value {
	v := &value{finder: f, text: text, role: role, words: words, bool: isBool, scans: 1}
	v.inForm = inForm(text) && strings.ContainsFunc(text, isAlphanumeric)
	if quoted, err := jsontext.AppendQuote(nil, text); err == nil {
		v.escaped = quoted[1 : len(quoted)-1]
	}
	if !v.inForm || isBool || strings.ContainsRune(text, utf8.RuneError) {
		return v
	}

	if address, _ := addressOf(text); address != "" && strings.Contains(text, address) {
		v.address = address // its domain is in lower case
		local, _, _ := strings.Cut(address, "@")
		v.local = local + "@"
	}
	if l := linkOf(text); l.origin != "" && strings.HasPrefix(text, l.origin) {
		v.link = l
	}
	if role == Amount {
		v.amount = amountOf(text)
	}
	v.compact, v.date = compactOf(text), dateOf(text)
	v.sign, v.handle = handleOf(text)
	if v.scans = 4; v.link.origin != "" || v.compact != "" {
		v.scans = 20
	}
	return v
}

// inForm reports whether s is folded.
func inForm(s string) bool {
	return isFolded(s) || strings.ContainsFunc(s, isBeyondASCII) && fold(s) == s
}

// equals reports whether the value equals a scalar of a result, and in which form. below allows URLs below the scalar.
// What the scalar must contain is looked for first, because patterns are slow.
func (v *value) equals(scalar string, below bool) (form string, ok bool) {
	if scalar == v.text {
		return "", true
	}
	if v.address != "" && strings.Contains(scalar, v.local) && v.finder.spend(readSteps) {
		if address, _ := addressOf(scalar); address == v.address {
			return FormAddress, true
		}
	}
	if v.compact != "" && scalar != "" && scalar[0] == v.compact[0] && v.finder.spend(patternSteps) && compactOf(scalar) == v.compact {
		return FormCompact, true
	}
	if v.amount.standsIn([]byte(scalar)) && v.finder.spend(patternSteps) && v.amount.covers(amountOf(scalar)) {
		return FormAmount, true
	}
	if v.link.origin != "" && strings.Contains(scalar, "://") && v.finder.spend(readSteps) {
		if l := linkOf(scalar); v.link.equals(l) || below && v.link.isBelow(l) {
			return FormURL, true
		}
	}
	if v.date != "" && strings.Contains(scalar, v.date[:4]) && v.finder.spend(patternSteps) && dateOf(scalar) == v.date {
		return FormDate, true
	}
	if v.handle != "" && strings.HasSuffix(scalar, v.handle) && v.finder.spend(patternSteps) {
		if sign, name := handleOf(scalar); name == v.handle && (sign == "") != (v.sign == "") {
			return FormHandle, true
		}
	}
	return "", false
}

// mayEqualIn is mayEqual for the result of a tool. Text that is JSON in a JSON string is escaped twice.
func (v *value) mayEqualIn(result []byte, isText bool) bool {
	return v.mayEqual(result) || isText && (bytes.IndexByte(v.escaped, '\\') >= 0 ||
		bytes.Contains(result, []byte(`\\u`)) || bytes.Contains(result, []byte(`\\/`)))
}

// mayEqual reports whether a scalar within canonical JSON can equal the value. It saves reading results without one.
func (v *value) mayEqual(doc []byte) bool {
	return bytes.Contains(doc, v.escaped) ||
		v.address != "" && bytes.Contains(doc, []byte(v.local)) ||
		v.compact != "" && containsSpaced(doc, v.compact) ||
		v.amount.standsIn(doc) ||
		v.link.origin != "" && bytes.Contains(doc, []byte("://")) && bytes.Contains(bytes.ToLower(doc), []byte(v.link.origin)) ||
		v.date != "" && bytes.Contains(doc, []byte(v.date[:4])) ||
		v.handle != "" && v.sign != "" && bytes.Contains(doc, []byte(v.handle))
}

// containsSpaced looks for a compact number with spaces of its own.
func containsSpaced(doc []byte, compact string) bool {
	for i := 0; ; i++ {
		k := bytes.IndexByte(doc[i:], compact[0])
		if k < 0 {
			return false
		}
		i += k
		if _, ok := spacedEnd(doc, i, compact); ok {
			return true
		}
	}
}

// spacedEnd returns where a compact number that begins at start, with single spaces of its own, ends.
func spacedEnd[T string | []byte](text T, start int, compact string) (end int, ok bool) {
	end = start
	for i := range len(compact) {
		if i > 0 && end < len(text) && text[end] == ' ' {
			end++
		}
		if end >= len(text) || text[end] != compact[i] {
			return end, false
		}
		end++
	}
	return end, true
}

// squash returns the letters and digits of s in lower case, without marks. It finds values in arguments whatever signs
// are between, also if the server made a name of them that has only such letters.
func squash(s string) string {
	if strings.ContainsFunc(s, isBeyondASCII) {
		s = norm.NFKD.String(fold(s))
	}
	return strings.Map(func(r rune) rune {
		if isAlphanumeric(r) && !unicode.IsMark(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// wordsOf splits the last name of a path into words in lower case. The index of a list is no name.
func wordsOf(path []string) (words []string) {
	name := ""
	for i := len(path) - 1; i >= 0 && name == ""; i-- {
		if strings.Trim(path[i], "0123456789") != "" {
			name = path[i]
		}
	}
	begin := 0
	add := func(end int) {
		if end > begin {
			words = append(words, strings.ToLower(name[begin:end]))
		}
	}
	last := rune(0)
	for i, r := range name {
		switch {
		case !isAlphanumeric(r):
			add(i)
			begin = i + utf8.RuneLen(r)
		case unicode.IsUpper(r) && !unicode.IsUpper(last):
			add(i)
			begin = i
		}
		last = r
	}
	add(len(name))
	return words
}
