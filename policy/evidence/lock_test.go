package evidence

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/policy/corpus"
)

const payload = `{
  "id": "policy-002",
  "title": "PII Logging",
  "body": "Personal data must never be written to logs. Logs are kept for 30 days, then deleted on 2024-03-01.` +
	`\nOwner: the Privacy Office (privacy@example.com), version 1.10 of March 3, 2024. ` +
	`It costs 10 million dollars, -5 degrees and 1,000 tickets of type INC0010023; see GDPR.",
  "quote": "a \"quoted\" word \u00e9t\u00e9 and cafe\u0301 crème <b>bold text here</b>",
  "markdown": "see [the handbook](https://example.com) for more",
  "hidden": "zero\u200bwidth text is here, and \u202ereversed\u202c text",
  "empty": "",
  "mark": "!!!",
  "word": "draft",
  "cjk": "個人情報を記録しない",
  "number": 42,
  "float": -1.50e3,
  "yes": true,
  "none": null,
  "list": ["never be written to paper", {"deep/er~": "Personal data must never be written to logs, again"}],
  "unchecked words as a name": "x",
  "ranges": "between 5-10 days, 10.5 hours, 100 tickets, 10% or $10, v10, 10:30, 10 000 rows, two hundred and five users",
  "no": "non-compliant with the rules of the house"
}`

// TestCorpus locks every summary of the corpus. A refusal has a reason.
func TestCorpus(t *testing.T) {
	for _, c := range summaries(t) {
		t.Run(c.ID, func(t *testing.T) {
			s, err := Parse(c.Bytes())
			var located []Located
			if err == nil {
				located, err = Lock(c.PayloadOf(), s)
			}
			var refused *RefusedError
			switch errors.As(err, &refused); {
			case c.Want == "locked" && (err != nil || len(located) != len(s.Items)):
				t.Errorf("%d of %d items are located: %v", len(located), len(s.Items), err)
			case c.Want != "locked" && (refused == nil || refused.Code != c.Want || refused.Reason == "" || located != nil):
				t.Errorf("Lock() = %v, %v, want %s", located, err, c.Want)
			}
		})
	}
}

func summaries(tb testing.TB) []corpus.Summary {
	tb.Helper()
	all, err := corpus.Load[corpus.Summary]("summaries")
	check.NoError(tb, err)
	return all
}

func at(pointer string, start, end int) Place { return Place{Pointer: pointer, Start: start, End: end} }

func TestLock_Place(t *testing.T) {
	tests := []struct {
		name, payload, evidence string
		want                    Place
	}{
		{"first-in-document-order", payload, "Personal data must never be written to logs", at("/body", 0, 43)},
		{"escaped-pointer", payload, "written to logs, again", at("/list/1/deep~1er~0", 28, 50)},
		{"decoded-offsets", payload, `"quoted" word été`, at("/quote", 2, 21)},
		{"number", payload, "42", at("/number", 0, 2)},
		{"top-level-string", `"red green blue grey"`, "green blue grey", at("", 4, 19)},
		{"second-occurrence-is-clean", `["xone two three, one two three"]`, "one two three", at("/0", 16, 29)},
		{"part-before-whole", `["so one two three", "one two three"]`, "one two three", at("/0", 3, 16)},
		{"too-short-part-before-whole", `["one two", "one"]`, "one", at("/1", 0, 3)},
		{"big-number-keeps-its-literal", `[9007199254740993]`, "9007199254740993", at("/0", 0, 16)},
		{"evidence-with-spaces-at-its-ends", `["red green blue grey"]`, " green blue grey", at("/0", 3, 19)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Lock([]byte(tt.payload), Summary{[]Item{{Claim: "A claim.", Evidence: tt.evidence}}})
			want := []Located{{Claim: "A claim.", Evidence: tt.evidence, At: tt.want}}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("Lock(%q) = %v (-want +got):\n%s", tt.evidence, err, diff)
			}
		})
	}
}

func TestLock_Bounds(t *testing.T) {
	good := Item{Claim: "A draft.", Evidence: "draft"}
	items := func(n int) Summary {
		var s Summary
		for range n {
			s.Items = append(s.Items, good)
		}
		return s
	}
	tests := []struct {
		name    string
		payload string
		s       Summary
		code    string
		item    int
	}{
		{"zero-summary", payload, Summary{}, CodeEmpty, WholeSummary},
		{"second-item", payload, Summary{[]Item{good, {Claim: "A draft.", Evidence: "made up"}}}, CodeMissing, 1},
		{"empty-payload", "", items(1), CodeMissing, WholeSummary},
		{"payload-cut-off", `["draft"`, items(1), CodeMissing, WholeSummary},
		{"payload-with-duplicate-names", `{"a":"draft","a":1}`, items(1), CodeMissing, WholeSummary},
		{"payload-past-limit", `"draft"` + strings.Repeat(" ", MaxPayloadBytes-6), items(1), CodeTooLarge,
			WholeSummary},
		{"payload-at-limit", `"draft"` + strings.Repeat(" ", MaxPayloadBytes-7), items(1), "", 0},
		{"too-many-candidates", `"` + strings.Repeat("one two threes ", maxCandidates) + `one two three"`,
			Summary{[]Item{{Claim: "Count.", Evidence: "one two three"}}}, CodeMissing, 0},
		{"candidates-at-limit", `"` + strings.Repeat("one two threes ", maxCandidates-1) + `one two three"`,
			Summary{[]Item{{Claim: "Count.", Evidence: "one two three"}}}, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Lock([]byte(tt.payload), tt.s)
			var refused *RefusedError
			switch {
			case tt.code == "" && err != nil:
				t.Errorf("Lock() = %v, want no error", err)
			case tt.code != "" && (!errors.As(err, &refused) || refused.Code != tt.code || refused.Item != tt.item):
				t.Errorf("Lock() = %v, want code %s for item %d", err, tt.code, tt.item)
			}
		})
	}
}
