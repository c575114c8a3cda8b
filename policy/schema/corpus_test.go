package schema

import (
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/policy/corpus"
)

// TestCorpus judges every document of the corpus by its schema.
func TestCorpus(t *testing.T) {
	cases, err := corpus.Load[corpus.Schema]("schemas")
	check.NoError(t, err)
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			want := c.Want
			if want == "fits" {
				want = fine
			}
			if got := holds(t, string(c.Schema.Bytes()), string(c.Document())); got != want {
				t.Errorf("the verdict is %s, want %s", got, want)
			}
		})
	}
}
