// Package secret masks the operator's secrets in text from outside. A server or a model receives
// the secret that pgfsm authenticates with, and may repeat it: in a result, in its own name, in an
// error. Such text passes a [Masker] before it is displayed or recorded:
//
//	m := secret.New(values)
//	clean := m.Bytes(raw) // text without a secret is returned itself, not a copy
//	m.Put(owner, tokens)  // secrets that are known only at run time
//
// Mask the raw text first, then quote, then cut. Cutting first can leave a piece of a secret that
// is no longer found, and quoting first escapes its characters.
//
// # What is found
//
// Each secret is found as it is and behind backslash escapes, at most [MaxLevels] deep, because
// JSON occurs in strings of JSON and error texts quote it once more. The escapes are those of JSON
// (RFC 8259, section 7) and of Go's [strconv.Quote]: \uXXXX, a pair of them for what UTF-16 writes
// as a pair, \UXXXXXXXX, \xNN for a byte, and \" \' \\ \/ \a \b \f \n \r \t \v. They are looked for
// in any text, whether it is JSON or not, and a backslash before anything else is itself.
//
// A secret that is encoded in another way (base64, percent-encoding, another case), split or
// shortened is not found. A hostile server can always do that. Masking protects from servers that
// repeat a secret by accident, and keeps it from being readable at a glance.
//
// # What replaces it
//
// [Mask] replaces exactly the bytes that encode the secret, including an escape in which a secret
// begins or ends. JSON stays JSON: if a secret is in a number, or reaches over the end of a string,
// the smallest value around it becomes the string "[masked by pgfsm]". That holds for the document
// itself, not for documents in its strings.
package secret

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Mask replaces a secret.
const Mask = "[masked by pgfsm]"

const quotedMask = `"` + Mask + `"`

// MinBytes is the length of the shortest secret. Masking "C" or "1" would damage every answer and
// hide nothing.
const MinBytes = 8

// MaxLevels is the number of layers of escapes that are decoded.
const MaxLevels = 8

// maxRounds bounds how often a masked text is masked again. Only texts made for that purpose need a
// second round.
const maxRounds = 4

// A Masker replaces secrets. The zero value and nil have no secrets and change nothing. It is safe
// for concurrent use.
type Masker struct {
	words atomic.Pointer[wordIndex]

	mu     sync.Mutex
	values []string         // the values from the start
	later  map[any][]string // the values of Put, by owner
}

// New returns a Masker for values and for what servers make of them: the value without the white
// space around it, which HTTP does not transmit, and the credential behind a scheme's space, for
// servers that echo only the token of "Bearer TOKEN". Secrets shorter than [MinBytes], and those
// that occur in [Mask], are left out.
func New(values []string) *Masker {
	m := &Masker{values: values}
	m.compile()
	return m
}

// Put replaces the values that an owner has put before; without values, it forgets the owner. They
// are secrets that are known only at run time, such as access tokens.
func (m *Masker) Put(owner any, values []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.later == nil {
		m.later = make(map[any][]string)
	}
	if m.later[owner] = slices.Clone(values); len(values) == 0 {
		delete(m.later, owner)
	}
	m.compile()
}

func (m *Masker) compile() {
	secrets := slices.Clone(m.values)
	for _, values := range m.later { // in any order: Words sorts them
		secrets = append(secrets, values...)
	}
	w := new(wordIndex)
	for _, s := range Words(secrets) {
		w.addWord(s)
	}
	m.words.Store(w)
}

// Words returns the secrets that [New] makes of values: without duplicates, the longest first.
func Words(values []string) []string {
	var words []string
	for _, v := range values {
		trimmed := strings.TrimSpace(v)
		_, credential, _ := strings.Cut(trimmed, " ")
		for _, w := range []string{v, trimmed, strings.TrimSpace(credential)} {
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

// Bytes returns text with [Mask] for each secret. Text without a secret is returned itself, not a
// copy; text is not changed.
func (m *Masker) Bytes(text []byte) []byte {
	if m == nil {
		return text
	}
	w := m.words.Load()
	if w == nil || w.prefix == nil {
		return text
	}
	for range maxRounds {
		deepest := w.deepestLevel(text)
		if deepest < 0 {
			return text
		}
		found, isJSON := w.findSpans(text, deepest)
		text = maskSpans(text, found, isJSON)
	}

	// The masks themselves still form a secret: the whole text is replaced.
	if deepest := w.deepestLevel(text); deepest >= 0 {
		_, isJSON := w.findSpans(text, deepest)
		return maskSpans(text, []span{{start: 0, end: len(text), value: true}}, isJSON)
	}
	return text
}

// String is [Masker.Bytes] for a string.
func (m *Masker) String(text string) string { return string(m.Bytes([]byte(text))) }

// deepestLevel returns the number of layers of escapes around the innermost secret in text, or -1
// if text has no secret. It searches the text as it is, then with its escapes decoded, then with
// the escapes of that decoded, and so on. One buffer is enough, because only find needs positions.
func (w *wordIndex) deepestLevel(text []byte) int {
	deepest, view, buf := -1, text, []byte(nil)
	for level := 0; ; level++ {
		if w.matchIn(view) {
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

// findSpans returns the spans of text to be replaced, in order and without overlaps, and whether
// text is JSON.
func (w *wordIndex) findSpans(text []byte, deepest int) ([]span, bool) {
	var found []span
	var buf []byte
	// From the innermost layer outwards: the spans of a layer are moved to the next one, and joined
	// with the secrets that occur there.
	for level := deepest; level >= 0; level-- {
		view := text
		for range level {
			view, _ = unescape(&buf, view)
		}

		outer := w.matchSpans(view)
		snapToEscapes(view, outer)
		locateDecoded(view, found)
		found = mergeSpans(found, outer)
	}
	if fitted, ok := fitToValues(text, found); ok {
		return fitted, true
	}
	return found, false
}

// maskSpans returns a copy of text with a mask for each span.
func maskSpans(text []byte, found []span, isJSON bool) []byte {
	size := len(text)
	for _, s := range found {
		size += len(quotedMask) - (s.end - s.start)
	}
	out, copied := make([]byte, 0, size), 0
	for _, s := range found {
		out = append(out, text[copied:s.start]...)
		if isJSON && s.value {
			out = append(out, quotedMask...)
		} else {
			out = append(out, Mask...)
		}
		copied = s.end
	}
	return append(out, text[copied:]...)
}
