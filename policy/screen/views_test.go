package screen

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestViews(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // the mapped views
	}{
		{"empty", "", []string{""}},
		{"plain", "show policy policy-002", []string{"show poiicy poiicy-002", "show poiicy poiicyoo2"}},
		{"sentence-ends", "one. two: three; four!", []string{"one. two: three; four!"}},
		{"apostrophes", "it's the boss's dog's", []string{"it's the boss's dog's", "its the bosss dogs", "its the bos dogs", "its the boss dogs"}},
		{"one-soft-gap", "and/or", []string{"and/or", "andor"}},
		{"two-soft-gaps", "an/or/ex", []string{"an/or/ex", "anorex", "an or ex"}},
		{"one-hard-gap", "make_me", []string{"make_me", "makeme", "make me"}},
		{"hard-gap-of-several", "make _:me", []string{"make _:me"}},
		{"sign", "ra|n", []string{"rain", "ran"}},
		{"two-equal", "baad", []string{"baad"}},
		{"three-equal", "baaad", []string{"baaad", "bad", "baad"}},
		{"three-digits-equal", "1000", []string{"1000"}},
		{"three-words-equal", "a a a", []string{"a a a"}},
		{"three-pieces", "it is so late", []string{"it is so iate"}},
		{"four-pieces", "ho it is so it", []string{"ho it is so it", "hoitissoit"}},
		{"four-pieces-first", "it is so it has", []string{"it is so it has", "itissoit has"}},
		{"piece-of-three", "it is the so is it", []string{"it is the so is it"}},
		{"invisible-gap", "ab\u200bcd", []string{"abcd", "ab cd"}},
		{"tab", "ab\tcd", []string{"ab cd"}},
		{"wide-spaces", "h a c k   t h e m", []string{"h a c k t h e m", "hackthem", "hack them"}},
		{"capitals", "ΗA", []string{"na", "ha"}},
		{"hidden", "x\U000E0061", []string{"x", "a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, v := range views(tt.text, Fold(tt.text)) {
				if v.mapped {
					got = append(got, v.text)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("views(%q) (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}
