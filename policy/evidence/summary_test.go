package evidence

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func item(claim, evidence string) string {
	return fmt.Sprintf(`{"claim":%q,"evidence":%q}`, claim, evidence)
}

func summaryOf(items ...string) string { return `{"items":[` + strings.Join(items, ",") + `]}` }

var parseTests = []struct {
	name, doc, code string
	bytesOnly       bool // refused for what JSON Schema cannot say
}{
	{"one-item", summaryOf(item("c", "e")), "", false},
	{"members-in-another-order", `{"items":[{"evidence":"e","claim":"c"}]}`, "", false},
	{"items-at-limit", summaryOf(strings.Split(strings.Repeat(item("c", "e")+" ", MaxItems-1)+item("c",
		"e"), " ")...), "", false},
	{"items-past-limit", summaryOf(strings.Split(strings.Repeat(item("c", "e")+" ", MaxItems)+item("c", "e"), " ")...),
		CodeTooLarge, false},
	{"no-items", `{"items":[]}`, CodeEmpty, false},
	{"empty-document", ``, CodeNotStrict, true},
	{"empty-object", `{}`, CodeNotStrict, false},
	{"null", `null`, CodeNotStrict, false},
	{"null-items", `{"items":null}`, CodeNotStrict, false},
	{"null-item", `{"items":[null]}`, CodeNotStrict, false},
	{"null-claim", `{"items":[{"claim":null,"evidence":"e"}]}`, CodeNotStrict, false},
	{"no-claim", `{"items":[{"evidence":"e"}]}`, CodeNotStrict, false},
	{"no-evidence", `{"items":[{"claim":"c"}]}`, CodeNotStrict, false},
	{"number-claim", `{"items":[{"claim":1,"evidence":"e"}]}`, CodeNotStrict, false},
	{"list-evidence", `{"items":[{"claim":"c","evidence":["e"]}]}`, CodeNotStrict, false},
	{"object-items", `{"items":{}}`, CodeNotStrict, false},
	{"list", `[]`, CodeNotStrict, false},
	{"string", `"items"`, CodeNotStrict, false},
	{"unknown-member", `{"items":[{"claim":"c","evidence":"e"}],"note":"x"}`, CodeNotStrict, false},
	{"unknown-item-member", `{"items":[{"claim":"c","evidence":"e","x":1}]}`, CodeNotStrict, false},
	{"other-case", `{"Items":[{"claim":"c","evidence":"e"}]}`, CodeNotStrict, false},
	{"other-case-of-item", `{"items":[{"Claim":"c","evidence":"e"}]}`, CodeNotStrict, false},
	{"empty-claim", summaryOf(item("", "e")), CodeNotStrict, false},
	{"blank-claim", summaryOf(item(" ", "e")), CodeNotStrict, false},
	{"empty-evidence", summaryOf(item("c", "")), CodeMissing, false},
	{"claim-at-limit", summaryOf(item(strings.Repeat("c", MaxClaimBytes), "e")), "", false},
	{"claim-past-limit", summaryOf(item(strings.Repeat("c", MaxClaimBytes+1), "e")), CodeTooLarge, false},
	{"claim-past-limit-in-bytes", summaryOf(item(strings.Repeat("é", MaxClaimBytes/2+1), "e")), CodeTooLarge, true},
	{"evidence-at-limit", summaryOf(item("c", strings.Repeat("e", MaxEvidenceBytes))), "", false},
	{"evidence-past-limit", summaryOf(item("c", strings.Repeat("e", MaxEvidenceBytes+1))), CodeTooLarge, false},
	{"markup", summaryOf(item("<b>", "e")), CodeNotStrict, true},
	{"duplicate-name", `{"items":[],"items":[{"claim":"c","evidence":"e"}]}`, CodeNotStrict, true},
	{"duplicate-escaped-name", `{"items":[{"claim":"c","cl\u0061im":"d","evidence":"e"}]}`, CodeNotStrict, true},
	{"trailing-text", summaryOf(item("c", "e")) + "x", CodeNotStrict, true},
	{"two-documents", summaryOf(item("c", "e")) + summaryOf(item("c", "e")), CodeNotStrict, true},
	{"fence", "```json\n" + summaryOf(item("c", "e")) + "\n```", CodeNotStrict, true},
	{"byte-order-mark", "\ufeff" + summaryOf(item("c", "e")), CodeNotStrict, true},
	{"not-utf-8", `{"items":[{"claim":"` + "\xff" + `","evidence":"e"}]}`, CodeNotStrict, true},
	{"lone-surrogate", `{"items":[{"claim":"\ud800","evidence":"e"}]}`, CodeNotStrict, true},
	{"too-deep", `{"items":[{"claim":[[1]],"evidence":"e"}]}`, CodeNotStrict, false},
	{"document-at-limit", summaryOf(item("c", "e")) + strings.Repeat(" ", MaxSummaryBytes-len(summaryOf(item("c",
		"e")))), "", false},
	{"document-past-limit", summaryOf(item("c", "e")) + strings.Repeat(" ",
		MaxSummaryBytes-len(summaryOf(item("c", "e")))+1),
		CodeTooLarge, true},
}

func TestParse(t *testing.T) {
	for _, tt := range parseTests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Parse([]byte(tt.doc))
			var refused *RefusedError
			switch {
			case tt.code == "" && (err != nil || len(s.Items) == 0):
				t.Errorf("Parse() = %v, %v, want items", s, err)
			case tt.code != "" && (!errors.As(err, &refused) || refused.Code != tt.code):
				t.Errorf("Parse() = %v, want code %s", err, tt.code)
			case tt.code != "" && s.Items != nil:
				t.Errorf("Parse() returns items with an error")
			}
		})
	}
}

func TestParse_FullestSummaryFits(t *testing.T) {
	escaped := `{"claim":"` + strings.Repeat(`\u0063`, MaxClaimBytes) + `","evidence":"` +
		strings.Repeat(`\u0065`, MaxEvidenceBytes) + `"}`
	var items []string
	for range MaxItems {
		items = append(items, escaped)
	}
	doc := summaryOf(items...)
	if s, err := Parse([]byte(doc)); err != nil || len(s.Items) != MaxItems {
		t.Errorf("Parse(%d bytes) = %d items, %v, want %d", len(doc), len(s.Items), err, MaxItems)
	}
}

// The schema that is published and the decoder refuse the same shapes.
func TestSchemaAndDecoderAgree(t *testing.T) {
	compared := 0
	for _, tt := range parseTests {
		if tt.bytesOnly {
			continue
		}
		compared++
		_, byDecoder := decode([]byte(tt.doc))
		bySchema := fitsSchema([]byte(tt.doc))
		if (byDecoder == nil) != (bySchema == nil) {
			t.Errorf("%s: decoder says %v, schema says %v", tt.name, byDecoder, bySchema)
		}
	}
	if compared < 20 {
		t.Errorf("only %d documents were compared", compared)
	}
}

func TestSchema_IsACopy(t *testing.T) {
	Schema()[0] = 'x'
	if got := Schema()[0]; got != '{' {
		t.Errorf("Schema()[0] = %q, want '{'", got)
	}
}

func TestRefusedError_Error(t *testing.T) {
	got := []string{refuse(CodeEmpty, WholeSummary, "no %s", "items").Error(), refuse(CodeMissing, 2, "gone").Error()}
	if diff := cmp.Diff([]string{"summary_empty: no items", "evidence_missing: item 2: gone"}, got); diff != "" {
		t.Errorf("Error() (-want +got):\n%s", diff)
	}
}
