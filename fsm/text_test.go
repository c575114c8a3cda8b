package fsm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrap(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"empty", "", nil},
		{"one-line-at-the-limit", "abc def gh", []string{"abc def gh"}},
		{"one-column-more", "abc def ghi", []string{"abc def", "ghi"}},
		{"lines-at-the-limit", "aaaaaa bbbbbb", []string{"aaaaaa", "bbbbbb"}},
		{"one-line-more", "aaaaaa bbbbbb cccccc", []string{"aaaaaa", "bbbbbb…"}},
		{"one-line-more-and-full", "aaaaaa bbbbbbbbbb cccccc", []string{"aaaaaa", "bbbbbbbbb…"}},
		{"word-at-the-limit", strings.Repeat("a", 10), []string{"aaaaaaaaaa"}},
		{"word-too-long", strings.Repeat("a", 11), []string{"aaaaaaaaa…"}},
		{"wide-script", "漢字漢字漢字", []string{"漢字漢字…"}},
		{"invisible", "a\u202eb\x00", []string{"a\ufffdb\ufffd"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, wrap(test.text, 10, 2)); diff != "" {
				t.Errorf("wrap(%q, 10, 2) (-want +got):\n%s", test.text, diff)
			}
		})
	}
}

func TestStepped(t *testing.T) {
	tests := []struct {
		name  string
		steps []int
		want  string
	}{
		{"never-taken", nil, "plan"}, {"taken-once", []int{3}, "plan (3)"}, {"taken-twice", []int{3, 10}, "plan (3, 10)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := stepped("plan", test.steps); got != test.want {
				t.Errorf("stepped(plan, %v) = %q, want %q", test.steps, got, test.want)
			}
		})
	}
}
