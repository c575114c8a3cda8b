package demo

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

//go:embed data/*.json
var data embed.FS

func mustRead(doc []byte, err error) jsontext.Value {
	if err != nil {
		panic(fmt.Sprintf("demo: content that is built in cannot be read: %v", err))
	}
	return doc
}

// readData reads a file under data.
func readData[T any](name string) (v T) {
	doc := mustRead(data.ReadFile("data/" + name))
	mustRead(nil, canonical.Unmarshal(doc, &v))
	return v
}

// A record is an entry with the words that find it. The text of an entry is kept as sentences, so that a search can show a whole sentence.
type record struct {
	id, title string
	tags      []string
	sentences []string
	entry     map[string]any // entry as a tool returns it
}

// A shelf holds the content of one server. It is safe for concurrent use.
type shelf struct {
	mu      sync.Mutex
	id      string   // member that identifies an entry
	records []record // sorted by id
}

func newShelf(spec spec) *shelf {
	s := &shelf{id: spec.ID}
	for _, entry := range readData[[]map[string]any](spec.Content) {
		sentences := texts(entry["sentences"])
		r := record{
			id:        entry[spec.ID].(string),
			title:     entry["title"].(string),
			tags:      texts(entry["tags"]),
			sentences: slices.Concat(sentences, texts(entry[spec.Also])),
			entry:     entry,
		}
		delete(entry, "sentences")
		delete(entry, "tags")
		entry[spec.Body] = strings.Join(sentences, " ")
		s.records = append(s.records, r)
	}
	return s
}

func texts(list any) (all []string) {
	items, _ := list.([]any)
	for _, item := range items {
		all = append(all, item.(string))
	}
	return all
}

// get returns a copy of the entry, or nil if there is none.
func (s *shelf) get(id string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(id); i >= 0 {
		return maps.Clone(s.records[i].entry)
	}
	return nil
}

// remove removes the entry and reports whether it was there.
func (s *shelf) remove(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(id)
	if i >= 0 {
		s.records = slices.Delete(s.records, i, i+1)
	}
	return i >= 0
}

// close marks the entry as closed, adds the resolution, and reports whether the entry was there.
func (s *shelf) close(id, resolution string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(id)
	if i < 0 {
		return false
	}
	entry := s.records[i].entry
	entry["state"] = "Closed"
	if resolution != "" {
		entry["resolution"] = resolution
	}
	return true
}

// list returns "id  title" for each entry, a line each.
func (s *shelf) list() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b []byte
	for _, r := range s.records {
		b = fmt.Appendf(b, "%s  %s\n", r.id, r.title)
	}
	return b
}

func (s *shelf) find(id string) int {
	return slices.IndexFunc(s.records, func(r record) bool { return r.id == id })
}

// A hit is one entry that a search found, as the tool returns it.
type hit map[string]any

// Weights of the places in which a word of a query may occur.
const (
	weightTitle    = 5
	weightTag      = 3
	weightSentence = 1
)

// search returns the records in which every word of the query begins a word of the title, a tag or the text, in any
// case: the highest score first, equal scores by id. A query without words finds nothing.
func (s *shelf) search(query string) []hit {
	wanted, hits := words(query), []hit{}
	if len(wanted) == 0 {
		return hits
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		if score, snippet := r.match(wanted); score > 0 {
			hits = append(hits, hit{s.id: r.id, "title": r.title, "snippet": snippet, "score": score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b["score"].(int) - a["score"].(int) })
	return hits
}

// match returns the score and the sentence with most of the wanted words, the
// first of equals. The score is 0 unless every wanted word occurs.
func (r record) match(wanted []string) (score int, snippet string) {
	found := make([]int, len(r.sentences))
	for _, w := range wanted {
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
	return slices.ContainsFunc(words(text), func(w string) bool { return strings.HasPrefix(w, prefix) })
}

// words returns the sequences of letters and digits in s, in lower case.
func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
