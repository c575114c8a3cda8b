package evidence

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The limits of the search for evidence.
const (
	MinWords        = 3        // words of evidence that is neither a whole value nor a whole part of one
	MaxPayloadBytes = 64 << 20 // bytes of the typed payload
	maxCandidates   = 1000     // occurrences of one piece of evidence that are tried, in the whole payload
)

// A Place locates evidence in a typed payload.
type Place struct {
	End     int    `json:"end"`     // one past the last byte
	Pointer string `json:"pointer"` // RFC 6901: the string, number or boolean
	Start   int    `json:"start"`   // byte offset into the decoded string, or into the literal
}

// A Located is an item whose evidence was found.
type Located struct {
	At       Place  `json:"at"`
	Claim    string `json:"claim"`
	Evidence string `json:"evidence"`
}

// Lock returns the items of s, in order, each with the first place of its evidence in typed. If an
// item fails, it refuses the whole summary with a [*RefusedError] for the first such item. typed is
// one strict JSON value.
func Lock(typed []byte, s Summary) ([]Located, error) {
	if refused := s.check(); refused != nil {
		return nil, refused
	}
	if len(typed) > MaxPayloadBytes {
		return nil, refuse(CodeTooLarge, WholeSummary, "the payload has %d bytes, more than %d",
			len(typed), MaxPayloadBytes)
	}
	searches, err := locateItems(typed, s)
	if err != nil {
		return nil, refuse(CodeMissing, WholeSummary, "the payload cannot be read: %v", err)
	}

	located := make([]Located, 0, len(searches))
	for i, q := range searches {
		switch {
		case q.found:
		case q.gaveUp:
			return nil, refuse(CodeMissing, i,
				"the evidence is cut out of the middle of something at the first %d places where it stands",
				maxCandidates)
		case q.cut:
			return nil, refuse(CodeMissing, i,
				"the evidence is cut out of the middle of a word, number, date or identifier")
		case q.short:
			return nil, refuse(CodeTooShort, i,
				"the evidence has fewer than %d words and is not a whole value, line, bullet or cell", MinWords)
		default:
			return nil, refuse(CodeMissing, i, "no value of the result contains the evidence")
		}
		if t, bad := unsupportedToken(q.Claim, q.Evidence); bad {
			return nil, refuse(CodeUnsupported, i, "the %s %q of the claim is not in its evidence", t.Class, t.Text)
		}
		located = append(located, q.Located)
	}

	return located, nil
}

// A search looks for the evidence of one item in the payload.
type search struct {
	Located
	words      int
	candidates int // occurrences that were tried
	found      bool
	// The evidence occurs, but is too short there, or has an end that is not clean; if both, cut is
	// reported.
	short, cut bool
	gaveUp     bool // the evidence occurs more often than maxCandidates
}

// locateItems reads typed once and searches each value for all evidence.
func locateItems(typed []byte, s Summary) ([]search, error) {
	searches := make([]search, len(s.Items))
	for i, item := range s.Items {
		searches[i].Located = Located{Claim: item.Claim, Evidence: item.Evidence}
		searches[i].words = wordCount(item.Evidence)
	}

	dec := jsontext.NewDecoder(bytes.NewReader(typed))
	for values := 0; ; {
		t, err := dec.ReadToken()
		if errors.Is(err, io.EOF) && values == 1 {
			return searches, nil
		}
		if err != nil {
			return nil, err
		}

		// The typed payload is one value; text behind it is an error.
		if dec.StackDepth() == 0 {
			if values++; values > 1 {
				return nil, errors.New("there is more than one value")
			}
		}

		value, isString := "", false
		switch t.Kind() {
		case '"':
			if kind, length := dec.StackIndex(dec.StackDepth()); kind == '{' && length%2 == 1 {
				continue // a member name
			}
			value, isString = t.String(), true
		case '0', 't', 'f':
			value = t.String()
		default:
			continue
		}

		for i := range searches {
			if q := &searches[i]; !q.found && q.searchValue(value, isString) {
				q.At.Pointer = string(dec.StackPointer())
			}
		}
	}
}

// searchValue reports whether the evidence is found in value, and records where.
func (q *search) searchValue(value string, isString bool) bool {
	if q.words == 0 || q.gaveUp {
		return false
	}
	if value == q.Evidence {
		q.found, q.At.Start, q.At.End = true, 0, len(value)
		return true
	}
	if !isString {
		return false
	}
	if q.words < MinWords {
		return q.searchParts(value)
	}

	for offset := 0; ; {
		i := strings.Index(value[offset:], q.Evidence)
		if i < 0 {
			return false
		}
		start := offset + i
		if found, done := q.tryPlace(value, start); done {
			return found
		}
		offset = start + 1
	}
}

// searchParts reports whether the evidence, which is too short for a substring, is a whole part of
// value.
func (q *search) searchParts(value string) bool {
	if !strings.Contains(value, q.Evidence) {
		return false
	}
	q.short = true
	for start, part := range partsOf(value) {
		if part != q.Evidence {
			continue
		}
		if found, done := q.tryPlace(value, start); done {
			return found
		}
	}
	return false
}

// tryPlace tries one place of the evidence. The search in this value is done if the evidence is
// found there, or if maxCandidates places were tried.
func (q *search) tryPlace(value string, start int) (found, done bool) {
	if q.candidates == maxCandidates {
		q.gaveUp = true
		return false, true
	}
	q.candidates++
	end := start + len(q.Evidence)
	if !cleanAt(value, start) || !cleanAt(value, end) {
		q.cut = true
		return false, false
	}
	q.found, q.At.Start, q.At.End = true, start, end
	return true, true
}
