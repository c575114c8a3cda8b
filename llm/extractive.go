package llm

import (
	"bytes"
	"cmp"
	"errors"
	"math/bits"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy/evidence"
)

// Bounds of the extractive summary, all below those of the evidence gate or equal to them.
const (
	MaxSentences     = 5                      // of one summary
	MaxSentenceBytes = evidence.MaxClaimBytes // a longer one is not said: a part of it could mean something else
	MinSentenceWords = evidence.MinWords      // without a digit: shorter values are ids, codes, names and labels
	proseWords       = 5                      // from here on a text without an end mark counts as prose too
	maxTrials        = 1024                   // sentences looked at closely, so that unfit ones cannot buy work
	maxRequestWords  = 64                     // distinct words of the request that count; the score is a bit set
)

// Extractive summarizes a typed payload by verbatim sentences of its string values. Each sentence is a claim and its own evidence, so the evidence contains
// every token of the claim. A claim is one line: its line breaks and tabs become spaces.
//
// It chooses the [MaxSentences] best sentences, and returns them in document order. A sentence is better if it shares more distinct words with the request,
// then if it is prose (an end mark, or five words), then if it is earlier. Extractive skips sentences of fewer than [MinSentenceWords] words or more than
// [MaxSentenceBytes] bytes, repetitions, text of the request (a search result echoes its query), text that the evidence gate refuses, and every object
// whose "status" is NOT_FOUND. If no sentence is left, it returns {"items":[]}, which the gate refuses.
//
// The time is linear in the payload: it is read once for its sentences and at most [MaxSentences] times by the gate, at most 1,024 sentences, each of at
// most [MaxSentenceBytes], are compared with the request and shown to the gate alone, and the gate bounds what it looks at. Words are runs of letters and
// digits in lower case; a text without spaces between words has too few words.
type Extractive struct{}

// Summarize returns the bytes of one strict JSON object {"items":[{"claim","evidence"}…]}. Payloads that are not strict
// JSON have no sentences.
func (x Extractive) Summarize(request string, typed []byte) []byte {
	summary := evidence.Summary{Items: []evidence.Item{}}
	best := newChoice(request)
	for _, value := range stringValues(typed) {
		for s := range sentences(value) {
			best.consider(s)
		}
	}
	slices.SortFunc(best.kept, func(a, b candidate) int { return cmp.Compare(a.order, b.order) })
	for _, c := range best.kept {
		summary.Items = append(summary.Items, itemOf(c.text))
	}
	summary.Items = lockable(summary.Items, func(s evidence.Summary) error {
		_, err := evidence.Lock(typed, s)
		return err
	})
	return canonical.MustMarshal(summary)
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

// choice has the best sentences so far, best first.
type choice struct {
	request string         // in lower case
	words   map[string]int // of the request, numbered
	kept    []candidate
	seen    int
	trials  int
}

type candidate struct {
	text  string
	rank  int
	order int
}

func newChoice(request string) *choice {
	c := &choice{request: strings.ToLower(request), words: make(map[string]int)}
	for word := range words(c.request) {
		if _, known := c.words[word]; !known && len(c.words) < maxRequestWords && len(word) > 1 && !stopWords[word] {
			c.words[word] = len(c.words)
		}
	}
	return c
}

// consider keeps s if it is among the best.
func (c *choice) consider(s string) {
	c.seen++
	if len(s) > MaxSentenceBytes || c.trials >= maxTrials {
		return
	}
	rank, ok := c.rank(s)
	full := len(c.kept) == MaxSentences
	if !ok || full && rank <= c.kept[MaxSentences-1].rank {
		return
	}
	if slices.ContainsFunc(c.kept, func(k candidate) bool { return k.text == s }) {
		return
	}
	c.trials++
	if strings.Contains(c.request, strings.ToLower(s)) || !speakable(s) {
		return
	}
	if full {
		c.kept = c.kept[:MaxSentences-1]
	}
	at := len(c.kept)
	for at > 0 && c.kept[at-1].rank < rank {
		at--
	}
	c.kept = slices.Insert(c.kept, at, candidate{s, rank, c.seen})
}

// rank weighs a sentence: two for each distinct word of the request, one for prose. ok is false if it has too few
// words.
func (c *choice) rank(s string) (rank int, ok bool) {
	var shared uint64
	for word := range words(s) {
		if n, asked := c.words[strings.ToLower(word)]; asked {
			shared |= 1 << n
		}
	}
	plain := 0
	for field := range strings.FieldsSeq(s) {
		if plain < proseWords && isPlainWord(field) {
			plain++
		}
	}
	rank = 2 * bits.OnesCount64(shared)
	if plain >= proseWords || strings.ContainsAny(s[len(s)-1:], ".!?") {
		rank++
	}
	return rank, plain >= MinSentenceWords
}

// speakable asks the evidence gate about the sentence with only the sentence as payload, which is cheap. The gate judges the chosen sentences again with
// the whole payload.
func speakable(s string) bool {
	doc, err := jsontext.AppendQuote(nil, s)
	if err == nil {
		_, err = evidence.Lock(doc, evidence.Summary{Items: []evidence.Item{itemOf(s)}})
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

func words(s string) func(yield func(string) bool) {
	return strings.FieldsFuncSeq(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// stopWords are words of a request that do not describe its subject.
var stopWords = set("a about all an and any are as at be by can do does find for from get give how i in into is " +
	"it its me my of on or our please read say search show summarise summarize tell " +
	"that the there this to us was we what when which " +
	"who with you your fetch")

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
	status bool // its last name was "status"
	absent bool // its status is NOT_FOUND
}

// isNotFound knows the spellings NOT_FOUND, not-found, Not Found and NotFound.
func isNotFound(status string) bool {
	const longest = len("NOT_FOUND")
	return len(status) <= longest &&
		strings.EqualFold(strings.NewReplacer("_", "", "-", "", " ", "").Replace(status), "notfound")
}
