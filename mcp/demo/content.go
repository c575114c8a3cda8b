package demo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// A record is an entry with the words that find it. The text of an entry is kept as sentences, so
// that a search can show a whole sentence.
type record struct {
	id, title string
	tags      []string
	sentences []string
	entry     map[string]any // entry as a tool returns it
}

// A contentStore holds the content of one server. It is safe for concurrent use.
type contentStore struct {
	spec    spec
	mu      sync.Mutex
	records []record // sorted by id
}

func newContentStore(spec spec) *contentStore {
	s := &contentStore{spec: spec}
	for _, entry := range readData[[]map[string]any](spec.Content) {
		sentences := stringList(entry["sentences"])
		r := record{
			id:        entry[spec.ID].(string),
			title:     entry["title"].(string),
			tags:      stringList(entry["tags"]),
			sentences: slices.Concat(sentences, stringList(entry[spec.Also])),
			entry:     entry,
		}
		delete(entry, "sentences")
		delete(entry, "tags")
		entry[spec.Body] = strings.Join(sentences, " ")
		s.records = append(s.records, r)
	}
	return s
}

func stringList(list any) (texts []string) {
	items, _ := list.([]any)
	for _, item := range items {
		texts = append(texts, item.(string))
	}
	return texts
}

// runTool executes a tool and returns its result.
func (s *contentStore) runTool(does string, args map[string]string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if does == "search" {
		hits := s.search(args["query"])
		return map[string]any{"query": args["query"], "count": len(hits), "hits": hits}
	}

	// All other tools work on one entry.
	id := args[s.spec.ID]
	i := slices.IndexFunc(s.records, func(r record) bool { return r.id == id })

	switch {
	case does == "fetch" && i < 0:
		return map[string]any{"status": "NOT_FOUND", s.spec.Member: nil}
	case does == "fetch":
		return map[string]any{"status": "OK", s.spec.Member: maps.Clone(s.records[i].entry)}
	case i < 0:
		return map[string]any{"status": "NOT_FOUND", s.spec.ID: id}
	case does == "delete":
		s.records = slices.Delete(s.records, i, i+1)
		return map[string]any{"status": "DELETED", s.spec.ID: id}
	}

	entry := s.records[i].entry
	entry["state"] = "Closed"
	if resolution := args["resolution"]; resolution != "" {
		entry["resolution"] = resolution
	}

	return map[string]any{"status": "CLOSED", s.spec.ID: id}
}

// titleIndex returns "id  title" for each entry, a line each.
func (s *contentStore) titleIndex() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, r := range s.records {
		fmt.Fprintf(&b, "%s  %s\n", r.id, r.title)
	}
	return b.String()
}

// A hit is one entry that a search found, as the tool returns it.
type hit map[string]any

// Weights of the places in which a word of a query may occur.
const (
	weightTitle    = 5
	weightTag      = 3
	weightSentence = 1
)

// search returns the records in which every word of the query begins a word of the title, a tag or
// the text, in any case: the highest score first, equal scores by id. A query without words finds
// nothing. The caller has the lock.
func (s *contentStore) search(query string) []hit {
	queryWords, hits := wordsOf(query), []hit{}
	if len(queryWords) == 0 {
		return hits
	}
	for _, r := range s.records {
		if score, snippet := r.scoreQuery(queryWords); score > 0 {
			hits = append(hits, hit{s.spec.ID: r.id, "title": r.title, "snippet": snippet, "score": score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b["score"].(int) - a["score"].(int) })
	return hits
}

// scoreQuery returns the score and the sentence with most of the query's words, the first of
// equals. The score is 0 unless every word occurs.
func (r record) scoreQuery(queryWords []string) (score int, snippet string) {
	found := make([]int, len(r.sentences))
	for _, w := range queryWords {
		sum := 0
		if hasWordWithPrefix(r.title, w) {
			sum += weightTitle
		}
		if hasWordWithPrefix(strings.Join(r.tags, " "), w) {
			sum += weightTag
		}
		for i, sentence := range r.sentences {
			if hasWordWithPrefix(sentence, w) {
				sum += weightSentence
				found[i]++
			}
		}
		if sum == 0 {
			return 0, ""
		}
		score += sum
	}
	return score, r.sentences[slices.Index(found, slices.Max(found))]
}

// hasWordWithPrefix reports whether a word of text begins with prefix.
func hasWordWithPrefix(text, prefix string) bool {
	return slices.ContainsFunc(wordsOf(text), func(w string) bool { return strings.HasPrefix(w, prefix) })
}

// wordsOf returns the sequences of letters and digits in s, in lower case.
func wordsOf(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
