// Package secret takes the operator's secrets out of text from outside. A server or a model knows the secret that it is
// spoken to with, and may repeat it: in a result, in its own name, in an error. What is shown or kept of such text
// passes a [Masker] first:
//
//	m := secret.New(values)
//	clean := m.Bytes(raw) // what holds no secret is returned as it is, the same bytes
//
// The order matters. A text that is cut before it is masked can keep a piece of a secret that nobody finds any more,
// and one that is quoted before spells it in another way. So: mask the raw text, then quote, then cut.
//
// # What is found
//
// Each secret is found as it is and behind backslash escapes, at most [MaxLevels] deep, for JSON stands in strings of
// JSON and error texts quote it once more. The escapes are those of JSON (RFC 8259, section 7) and of Go's
// [strconv.Quote]: \uXXXX, a pair of them for what UTF-16 writes as a pair, \UXXXXXXXX, \xNN for a byte, and \" \' \\
// \/ \a \b \f \n \r \t \v. They are looked for in any text, whether it is JSON or not, and a backslash before
// anything else is itself.
//
// Not found is a secret that is encoded in another way (base64, percent-encoding, another case), split, or shortened.
// Whoever knows it can always do that. This is against those who repeat it without a thought, and against those who
// would have a reader see it at a glance.
//
// # What is put in its place
//
// [Mask], for exactly the bytes that spell the secret. An escape that a secret begins or ends inside of goes with it.
// What was JSON stays JSON: where a secret stands in a number, or reaches over the end of a string, the smallest value
// around it becomes the string "[masked by pgfsm]". That holds for the document itself, not for one in its strings.
package secret

import (
	"slices"
	"strings"
)

// Mask stands where a secret stood.
const Mask = "[masked by pgfsm]"

const quotedMask = `"` + Mask + `"`

// MinBytes is the length of the shortest secret. Masking "C" or "1" would tear every answer, and hide nothing.
const MinBytes = 8

// MaxLevels is how many layers of escapes are looked behind.
const MaxLevels = 8

// maxRounds is how often what comes out is masked again. A second round is only needed for texts that were made for it.
const maxRounds = 4

// A Masker knows the secrets. The zero value and nil know none and change nothing. Any number of goroutines may use
// one.
type Masker struct{ words words }

// New returns a Masker for values. With each goes what a server makes of it: the value without the white space around
// it, which HTTP does not transmit, and the credential behind a scheme's space, for a server that echoes only the token
// of "Bearer TOKEN". What is then shorter than [MinBytes] is left out, and so is what [Mask] itself would show.
func New(values []string) *Masker {
	m := new(Masker)
	for _, s := range Words(values) {
		m.words.add(s)
	}
	return m
}

// Words are what [New] makes of values: without duplicates, the longest first.
func Words(values []string) []string {
	var words []string
	for _, v := range values {
		whole := strings.TrimSpace(v)
		_, credential, _ := strings.Cut(whole, " ")
		for _, w := range []string{v, whole, strings.TrimSpace(credential)} {
			if len(w) >= MinBytes && !strings.Contains(quotedMask, w) {
				words = append(words, w)
			}
		}
	}
	slices.SortFunc(words, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(words)
}

// Bytes returns text with [Mask] for each secret. Text without one is returned itself, not a copy; text is not changed.
func (m *Masker) Bytes(text []byte) []byte {
	if m == nil || m.words.prefix == nil {
		return text
	}
	for range maxRounds {
		deepest := m.depth(text)
		if deepest < 0 {
			return text
		}
		found, isJSON := m.find(text, deepest)
		text = replace(text, found, isJSON)
	}
	if deepest := m.depth(text); deepest >= 0 {
		_, isJSON := m.find(text, deepest)
		return replace(text, []span{{start: 0, end: len(text), value: true}}, isJSON)
	}
	return text
}

// String is [Masker.Bytes] for a string.
func (m *Masker) String(text string) string { return string(m.Bytes([]byte(text))) }

// depth is how many layers of escapes there are around the innermost secret in text, -1 if there is none in it.
//
// The text is looked at as it is, behind its escapes, behind the escapes of that, and so on. Positions are only
// followed if something was found, from the inside outwards: so one buffer is all that is needed.
func (m *Masker) depth(text []byte) int {
	deepest, view, buf := -1, text, []byte(nil)
	for level := 0; ; level++ {
		if m.words.in(view) {
			deepest = level
		}
		if level == MaxLevels {
			return deepest
		}
		var escaped bool
		if view, escaped = unescape(&buf, view); !escaped {
			return deepest
		}
	}
}

// find returns the spans of text to be replaced, in order and apart, and whether text is JSON.
func (m *Masker) find(text []byte, deepest int) ([]span, bool) {
	var found []span
	var buf []byte
	for level := deepest; level >= 0; level-- {
		view := text
		for range level {
			view, _ = unescape(&buf, view)
		}
		outer := m.words.match(view)
		snap(view, outer)
		locate(view, found)
		found = union(found, outer)
	}
	if fitted, ok := fit(text, found); ok {
		return fitted, true
	}
	return found, false
}

// replace returns a copy of text with a mask for each span.
func replace(text []byte, found []span, isJSON bool) []byte {
	size := len(text)
	for _, s := range found {
		size += len(quotedMask) - (s.end - s.start)
	}
	out, from := make([]byte, 0, size), 0
	for _, s := range found {
		out = append(out, text[from:s.start]...)
		if isJSON && s.value {
			out = append(out, quotedMask...)
		} else {
			out = append(out, Mask...)
		}
		from = s.end
	}
	return append(out, text[from:]...)
}
