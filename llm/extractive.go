package llm

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy/evidence"
)

// Bounds of the extractive summary, all below those of the evidence gate or equal to them.
const (
	MaxSentences     = 5                      // in one summary
	MaxSentenceBytes = evidence.MaxClaimBytes // a longer one is not said: a part of it could mean something else
	MinSentenceWords = evidence.MinWords      // for sentences without a digit: shorter values are ids, codes, names and labels
	proseWords       = 5                      // a text of so many words without an end mark counts as a sentence too
	maxTrials        = 1024                   // sentences that the gate is asked about, so that unfit ones cannot buy work
)

// Extractive summarizes a typed payload by its first sentences, verbatim. Each sentence is a claim and its own evidence, so the
// evidence contains every token of the claim. A claim is one line: its line breaks and tabs become spaces.
//
// It says the first [MaxSentences] sentences that the evidence gate locks, in document order. A sentence has at least
// [MinSentenceWords] words and an end mark, or five words, and at most [MaxSentenceBytes] bytes. Repetitions, text of the request (a
// search result echoes its query) and every object whose "status" is NOT_FOUND are skipped. If no sentence is left, it returns
// {"items":[]}, which the gate refuses.
//
// The time is linear in the payload: it is read once for its sentences and at most [MaxSentences] times by the gate, and the gate is
// asked about at most 1,024 sentences alone.
type Extractive struct{}

// Summarize returns the bytes of one strict JSON object {"items":[{"claim","evidence"}…]}. Payloads that are not strict
// JSON have no sentences.
func (x Extractive) Summarize(request string, typed []byte) []byte {
	summary := evidence.Summary{Items: firstSentences(strings.ToLower(request), stringValues(typed))}
	summary.Items = lockable(summary.Items, func(s evidence.Summary) error {
		_, err := evidence.Lock(typed, s)
		return err
	})
	return canonical.MustMarshal(summary)
}

// firstSentences returns the first sentences of the values that the gate locks by themselves. request is in lower case.
func firstSentences(request string, values []string) []evidence.Item {
	items := []evidence.Item{}
	trials := 0
	for _, value := range values {
		for s := range sentences(value) {
			item := itemOf(s)
			switch {
			case len(s) > MaxSentenceBytes, !isSentence(s), slices.Contains(items, item):
				continue
			case strings.Contains(request, strings.ToLower(s)):
				continue
			}
			if trials++; trials > maxTrials {
				return items
			}
			if !speakable(item) {
				continue
			}
			if items = append(items, item); len(items) == MaxSentences {
				return items
			}
		}
	}
	return items
}

// isSentence reports whether s has enough words for a sentence.
func isSentence(s string) bool {
	plain := 0
	for field := range strings.FieldsSeq(s) {
		if isPlainWord(field) {
			plain++
		}
	}
	return plain >= proseWords || plain >= MinSentenceWords && strings.ContainsAny(s[len(s)-1:], ".!?")
}

func itemOf(sentence string) evidence.Item {
	claim := sentence
	if strings.ContainsAny(claim, "\t\n\r") {
		claim = strings.Join(strings.Fields(claim), " ")
	}
	return evidence.Item{Claim: claim, Evidence: sentence}
}

// lockable returns the items without those that lock refuses. It asks once, and once more for each refused item: lock
// reads the whole payload. items is changed.
func lockable(items []evidence.Item, lock func(evidence.Summary) error) []evidence.Item {
	for len(items) > 0 {
		var refused *evidence.RefusedError
		err := lock(evidence.Summary{Items: items})
		switch {
		case err == nil:
			return items
		case !errors.As(err, &refused) || refused.Item == evidence.WholeSummary:
			return items[:0]
		}
		items = slices.Delete(items, refused.Item, refused.Item+1)
	}
	return items
}

// speakable asks the evidence gate about the sentence with only the sentence as payload, which is cheap. The gate judges the chosen sentences again with
// the whole payload.
func speakable(item evidence.Item) bool {
	doc, err := jsontext.AppendQuote(nil, item.Evidence)
	if err == nil {
		_, err = evidence.Lock(doc, evidence.Summary{Items: []evidence.Item{item}})
	}
	return err == nil
}

// isPlainWord reports whether a field holds a letter and no digit or underscore: not an id, a number, or a code.
func isPlainWord(field string) bool {
	letters := false
	for _, r := range field {
		if r == '_' || unicode.IsDigit(r) {
			return false
		}
		letters = letters || unicode.IsLetter(r)
	}
	return letters
}

// stringValues returns the string values of a strict JSON document in document order, without member names and without objects whose status is NOT_FOUND.
// It returns none for a document that is not strict JSON.
func stringValues(doc []byte) []string {
	if canonical.Check(doc, canonical.MaxDepth) != nil {
		return nil
	}
	var values []string
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc))
	var objects []object // one for each open object or array
	for {
		tok, err := dec.ReadToken()
		if err != nil { // the end: the document has been checked
			return values
		}
		switch tok.Kind() {
		case '{', '[':
			objects = append(objects, object{first: len(values)})
		case '}', ']':
			closed := objects[len(objects)-1]
			objects = objects[:len(objects)-1]
			if closed.absent {
				values = values[:closed.first]
			}
		case '"':
			text := tok.String()
			if isName(dec) {
				objects[len(objects)-1].status = text == "status"
				continue
			}
			if len(text) >= 2*MinSentenceWords-1 {
				values = append(values, text)
			}
			if len(objects) > 0 && objects[len(objects)-1].status && isNotFound(text) {
				objects[len(objects)-1].absent = true
			}
		}
	}
}

// object is an open object of the document.
type object struct {
	first  int  // the number of values before it
	status bool // the last name was "status"
	absent bool // the status is NOT_FOUND
}

// isNotFound knows the spellings NOT_FOUND, not-found, Not Found and NotFound.
func isNotFound(status string) bool {
	const longest = len("NOT_FOUND")
	return len(status) <= longest &&
		strings.EqualFold(strings.NewReplacer("_", "", "-", "", " ", "").Replace(status), "notfound")
}
