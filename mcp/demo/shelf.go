package toy

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"pgfsm/internal/canonical"
)

//go:embed data/*.json
var data embed.FS

// Statuses of a result that is about one entry.
const (
	statusOK       = "OK"
	statusNotFound = "NOT_FOUND"
	statusDeleted  = "DELETED"
	statusClosed   = "CLOSED"
)

// A record is an entry and what it is found by. The text of an entry is kept as sentences, so that a search can show
// one of them whole.
type record[T any] struct {
	id, title string
	tags      []string
	sentences []string
	entry     T
}

// A shelf is the content of one server. It is safe for concurrent use.
type shelf[T any] struct {
	mu      sync.Mutex
	records []record[T] // sorted by id
}

// load reads data/NAME, a list of F, and puts each of them on a shelf as the record that it describes.
func load[T, F any](name string, describe func(F) record[T]) *shelf[T] {
	doc, err := data.ReadFile("data/" + name)
	var entries []F
	if err == nil {
		err = canonical.Unmarshal(doc, &entries)
	}
	if err != nil {
		panic(fmt.Sprintf("toy: content that is built in cannot be read: %s: %v", name, err))
	}
	s := &shelf[T]{}
	for _, e := range entries {
		s.records = append(s.records, describe(e))
	}
	return s
}

// get returns a copy of the entry, or nil if there is none.
func (s *shelf[T]) get(id string) *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(id); i >= 0 {
		entry := s.records[i].entry
		return &entry
	}
	return nil
}

// remove takes the entry away and reports whether it was there.
func (s *shelf[T]) remove(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(id)
	if i >= 0 {
		s.records = slices.Delete(s.records, i, i+1)
	}
	return i >= 0
}

// change lets f alter the entry and reports whether it was there.
func (s *shelf[T]) change(id string, f func(*T)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(id)
	if i >= 0 {
		f(&s.records[i].entry)
	}
	return i >= 0
}

// list returns "id  title" for each entry, a line each.
func (s *shelf[T]) list() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b []byte
	for _, r := range s.records {
		b = fmt.Appendf(b, "%s  %s\n", r.id, r.title)
	}
	return b
}

func (s *shelf[T]) find(id string) int {
	return slices.IndexFunc(s.records, func(r record[T]) bool { return r.id == id })
}

// A hit is one entry that a search found.
type hit struct {
	id, title, snippet string
	score              int
}

// Weights of the places in which a word of a query may occur.
const (
	weightTitle    = 5
	weightTag      = 3
	weightSentence = 1
)

// search returns the records in which every word of the query begins a word of the title, a tag or the text, in any
// case: the highest score first, equal scores by id. A query without words finds nothing.
func (s *shelf[T]) search(query string) []hit {
	wanted := words(query)
	if len(wanted) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var hits []hit
	for _, r := range s.records {
		if score, snippet := r.match(wanted); score > 0 {
			hits = append(hits, hit{r.id, r.title, snippet, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.score - a.score })
	return hits
}

// match returns 0 unless every wanted word occurs, and the sentence with most of them: the first of equals.
func (r record[T]) match(wanted []string) (score int, snippet string) {
	found := make([]int, len(r.sentences))
	for _, w := range wanted {
		sum := 0
		if begins(r.title, w) {
			sum += weightTitle
		}
		if begins(strings.Join(r.tags, " "), w) {
			sum += weightTag
		}
		for i, sentence := range r.sentences {
			if begins(sentence, w) {
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

// begins reports whether a word of text begins with prefix.
func begins(text, prefix string) bool {
	return slices.ContainsFunc(words(text), func(w string) bool { return strings.HasPrefix(w, prefix) })
}

// words returns the runs of letters and digits in s, in lower case.
func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
