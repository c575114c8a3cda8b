package llm

import (
	"bytes"
	"context"
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
	MaxSentences = 5 // in one summary
	// A longer one is not said: a part of it could mean something else.
	MaxSentenceBytes = evidence.MaxClaimBytes
	// For sentences without a digit: shorter values are ids, codes, names and labels.
	MinSentenceWords = evidence.MinWords
	// A text of so many words without an end mark counts as a sentence too.
	proseWords  = 5
	maxSearched = 1 << 20 // bytes of text that are searched for sentences
	// Sentences that the gate is asked about, so that unfit ones cannot buy work.
	maxTrials = 1024
)

// Extractive summarizes a typed payload by its first sentences, verbatim. Each sentence is a claim
// and its own evidence, so the evidence contains every token of the claim. A claim is one line: its
// line breaks and tabs become spaces.
//
// It says the first [MaxSentences] sentences that the evidence gate locks, in document order. A
// sentence has at least [MinSentenceWords] words and an end mark, or five words, and at most
// [MaxSentenceBytes] bytes. Repetitions, text of the request (a search result echoes its query) and
// every object whose "status" is NOT_FOUND are skipped. If no sentence is left, it returns
// {"items":[]}, which the gate refuses.
//
// The time is linear in the payload: the gate reads it at most [MaxSentences] times. Sentences are
// looked for in the first values of together 1 MiB, and the gate is asked about at most 1,024 of
// them alone.
type Extractive struct{}

// Summarize returns the bytes of one strict JSON object {"items":[{"claim","evidence"}…]}. Payloads
// that are not strict JSON have no sentences. The only error is that of a context already done.
func (Extractive) Summarize(ctx context.Context, request string, typed []byte) (Completion, error) {
	if err := ctx.Err(); err != nil {
		return Completion{}, err
	}
	items := firstSentences(strings.ToLower(request), stringValues(typed))
	return Completion{Content: canonical.MustMarshal(evidence.Summary{Items: lockableItems(typed, items)})}, nil
}

// firstSentences returns the first sentences of the values that the gate locks by themselves.
// request is in lower case.
func firstSentences(request string, values []string) []evidence.Item {
	items := []evidence.Item{}
	trials, searched := 0, 0

	for _, value := range values {
		if searched += len(value); searched > maxSearched {
			return items
		}
		for _, s := range splitSentences(value) {
			item := evidence.Item{Claim: strings.Join(strings.Fields(s), " "), Evidence: s}
			if len(s) > MaxSentenceBytes || !isSentence(s) || slices.Contains(items, item) ||
				strings.Contains(request, strings.ToLower(s)) {
				continue
			}
			if trials++; trials > maxTrials {
				return items
			}
			if !isSpeakable(item) {
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
	words := 0
	for field := range strings.FieldsSeq(s) {
		if isPlainWord(field) {
			words++
		}
	}
	return words >= proseWords || words >= MinSentenceWords && strings.ContainsAny(s[len(s)-1:], ".!?")
}

// isPlainWord reports whether a field holds a letter and no digit or underscore: not an id, a
// number, or a code.
func isPlainWord(field string) bool {
	isCode := func(r rune) bool { return r == '_' || unicode.IsDigit(r) }
	return strings.ContainsFunc(field, unicode.IsLetter) && !strings.ContainsFunc(field, isCode)
}

// lockableItems returns the items without those that the gate refuses. It asks once, and once more
// for each refused item: the gate reads the whole payload. items is changed.
func lockableItems(typed []byte, items []evidence.Item) []evidence.Item {
	for len(items) > 0 {
		_, err := evidence.Lock(typed, evidence.Summary{Items: items})
		var refused *evidence.RefusedError
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

// isSpeakable asks the evidence gate about the sentence with only the sentence as payload, which is
// cheap. The gate judges the chosen sentences again with the whole payload.
func isSpeakable(item evidence.Item) bool {
	doc, err := jsontext.AppendQuote(nil, item.Evidence)
	if err != nil {
		return false
	}
	_, err = evidence.Lock(doc, evidence.Summary{Items: []evidence.Item{item}})
	return err == nil
}

// stringValues returns the string values of a strict JSON document in document order, without
// member names and without objects whose status is NOT_FOUND. It returns none for a document that
// is not strict JSON.
func stringValues(doc []byte) []string {
	if canonical.Check(doc, canonical.MaxDepth) != nil {
		return nil
	}

	var values []string
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc))
	var open []container

	for {
		tok, err := dec.ReadToken()
		if err != nil { // the end: the document has been checked
			return values
		}

		switch tok.Kind() {
		case '{', '[':
			open = append(open, container{first: len(values)})
		case '}', ']':
			closed := open[len(open)-1]
			open = open[:len(open)-1]
			if closed.absent {
				values = values[:closed.first]
			}
		case '"':
			if canonical.IsName(dec) {
				open[len(open)-1].status = tok.String() == "status"
				continue
			}
			values = append(values, tok.String())
			if len(open) > 0 && open[len(open)-1].status && tok.String() == "NOT_FOUND" {
				open[len(open)-1].absent = true
			}
		}
	}
}

// container is an open object or array of the document.
type container struct {
	first  int  // the number of values before it
	status bool // the last name was "status"
	absent bool // the status is NOT_FOUND
}
