package demo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// maxSentence keeps a sentence within what a summary may quote and what an output type allows for a snippet.
const maxSentence = 200

func TestContent(t *testing.T) {
	must := map[string][]string{
		SharePoint: {"doc-001", "doc-999"}, ServiceNow: {"INC0010001"}, PolicyKB: {"policy-001", "policy-002"},
	}
	for _, spec := range readData[[]spec]("servers.json") {
		s := newContentStore(spec)
		var ids []string
		for _, r := range s.records {
			ids = append(ids, r.id)
			if r.title == "" || len(r.tags) == 0 || len(r.sentences) == 0 {
				t.Errorf("%s: title %q, %d tags, %d sentences: want all", r.id, r.title, len(r.tags), len(r.sentences))
			}
			for _, sentence := range r.sentences {
				if len(sentence) > maxSentence || strings.TrimSpace(sentence) != sentence || len(strings.Fields(sentence)) < 3 {
					t.Errorf("%s: %q is not a sentence of 3 words to %d bytes", r.id, sentence, maxSentence)
				}
				if strings.ContainsAny(sentence, "<>\n\t") {
					t.Errorf("%s: %q contains markup or control characters", r.id, sentence)
				}
			}
		}
		if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) || len(ids) < 6 {
			t.Errorf("ids of %s = %q, want at least 6, sorted, each once", spec.Name, ids)
		}
		for _, id := range must[spec.Name] {
			if !slices.Contains(ids, id) {
				t.Errorf("%s has no entry %s", spec.Name, id)
			}
		}
	}
}

func TestSearch(t *testing.T) {
	content := &contentStore{spec: spec{ID: "id"}, records: []record{
		{id: "a", title: "Café and bar", tags: []string{"food"},
			sentences: []string{"Open from 9.", "The bar closes at 23."}},
		{id: "b", title: "Bars of gold", tags: []string{"metal"},
			sentences: []string{"Gold is heavy.", "Gold bars weigh more."}},
		{id: "c", title: "Food law", tags: []string{"law"}, sentences: []string{"No gold in food."}},
		{id: "d", title: "Food law", tags: []string{"law"}, sentences: []string{"No gold in food."}},
	}}
	tests := []struct {
		name, query string
		want        []string // id, score, snippet
	}{
		{"one-word", "gold", []string{"b 7 Gold is heavy.", "c 1 No gold in food.", "d 1 No gold in food."}},
		{"all-words-must-occur", "gold food", []string{"c 7 No gold in food.", "d 7 No gold in food."}},
		{"best-sentence", "bars gold", []string{"b 13 Gold bars weigh more."}},
		{"first-sentence-if-none", "metal", []string{"b 3 Gold is heavy."}},
		{"beginning-of-a-word", "clos", []string{"a 1 The bar closes at 23."}},
		{"not-the-middle-of-a-word", "loses", nil},
		{"any-case", "CAFÉ", []string{"a 5 Open from 9."}},
		{"punctuation-is-not-part", "\"food-law\"", []string{"c 14 No gold in food.", "d 14 No gold in food."}},
		{"nothing", "silver", nil},
		{"no-words", " ?! ", nil},
		{"empty", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, h := range content.search(tt.query) {
				got = append(got, fmt.Sprint(h["id"], " ", h["score"], " ", h["snippet"]))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("search(%q) (-want +got):\n%s", tt.query, diff)
			}
		})
	}
}
