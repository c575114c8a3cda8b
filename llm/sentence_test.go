package llm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSentences(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"empty", "", nil},
		{"white-space-only", " \n\t ", nil},
		{"two-sentences", "One is here. Two is there.", []string{"One is here.", "Two is there."}},
		{"no-mark-at-the-end", "One. Two", []string{"One.", "Two"}},
		{"question-and-exclamation", "Why? Because! So.", []string{"Why?", "Because!", "So."}},
		{"runs-of-marks", "What?! No... Yes.", []string{"What?!", "No...", "Yes."}},
		{"quotation-closed-after-the-mark", `He said "Stop." Then left.`, []string{`He said "Stop."`, "Then left."}},
		{"bracket-closed-after-the-mark", "(All of it.) Then more.", []string{"(All of it.)", "Then more."}},
		{"lower-case-goes-on", "It is approx. ten. i.e. many.", []string{"It is approx. ten. i.e. many."}},
		{"said-in-the-middle", `"Stop!" he said. Then he left.`, []string{`"Stop!" he said.`, "Then he left."}},
		{"decimal", "Rate 3.14 holds. Next.", []string{"Rate 3.14 holds.", "Next."}},
		{"iso-date-at-the-end", "Since 2024-05-01. Then more.", []string{"Since 2024-05-01.", "Then more."}},
		{"dotted-date", "Since 01.05.2024 it holds.", []string{"Since 01.05.2024 it holds."}},
		{"year-at-the-end", "Since 2024. The rest.", []string{"Since 2024.", "The rest."}},
		{"small-number-at-the-end-is-not-cut", "Keep for 90. The rest.", []string{"Keep for 90. The rest."}},
		{"day-before-a-month", "On 5. May 2024 it ends. Next.", []string{"On 5. May 2024 it ends.", "Next."}},
		{"url-and-version", "See example.com/a.b for v1.2.3 now. Next.",
			[]string{"See example.com/a.b for v1.2.3 now.", "Next."}},
		{"titles-and-initials", "Dr. J. Smith of the U.S. Treasury agreed. Next.",
			[]string{"Dr. J. Smith of the U.S. Treasury agreed.", "Next."}},
		{"for-example", "Logs, e.g. Nginx logs, count. Next.", []string{"Logs, e.g. Nginx logs, count.", "Next."}},
		{"number-sign", "See No. 7 and Art. 5 first. Next.", []string{"See No. 7 and Art. 5 first.", "Next."}},
		{"the-word-no", "The answer is no. We wait.", []string{"The answer is no.", "We wait."}},
		{"month-abbreviation", "By Sept. 30 it ends. Next.", []string{"By Sept. 30 it ends.", "Next."}},
		{"wide-marks", "これは文です。次の文です！", []string{"これは文です。", "次の文です！"}},
		{"wide-quotation", "好。」 Next one.", []string{"好。", "」 Next one."}},
		{"numbered-list", "1. Keep logs.\n2. Drop logs.", []string{"Keep logs.", "Drop logs."}},
		{"numbered-list-without-marks", "1. Keep logs\n2) Drop logs", []string{"Keep logs", "Drop logs"}},
		{"bullets", "Rules:\n- Keep logs\n* Drop copies\n• Tell people",
			[]string{"Rules", "Keep logs", "Drop copies", "Tell people"}},
		{"heading-and-blank-line", "# Scope\n\nAll systems.", []string{"Scope", "All systems."}},
		{"blank-line-with-spaces", "Scope\n  \nAll systems.", []string{"Scope", "All systems."}},
		{"carriage-returns", "Scope\r\n\r\nAll\r\nsystems.", []string{"Scope", "All\r\nsystems."}},
		{"wrapped-line-is-not-cut", "Delete logs\nunless a hold applies. Next.",
			[]string{"Delete logs\nunless a hold applies.", "Next."}},
		{"wrapped-before-a-number", "Keep for\n90 days.", []string{"Keep for\n90 days."}},
		{"wrapped-before-a-sign", "It is\n-5 degrees.", []string{"It is\n-5 degrees."}},
		{"sign-of-a-number-stays", "-5 degrees is cold.", []string{"-5 degrees is cold."}},
		{"marks-alone", ". . .", []string{".", ".", "."}},
		{"not-utf8", "A \xff bee. Cat.", []string{"A \xff bee.", "Cat."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := splitSentences(tt.text)
			if len(got) == 0 && len(tt.want) == 0 {
				return
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("sentences(%q) (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

// FuzzSentences holds sentences to what they are: parts of the text, in order, that do not overlap.
func FuzzSentences(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		rest := text
		for _, s := range splitSentences(text) {
			_, after, found := strings.Cut(rest, s)
			if s == "" || s != strings.TrimSpace(s) || !found {
				t.Fatalf("sentences(%q) yields %q, which is not the next part of it", text, s)
			}
			rest = after
		}
	})
}
