package evidence

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xeipuuv/gojsonschema"

	"pgfsm/internal/test/check"
)

func summaryOf(claim, evidence string) string {
	return fmt.Sprintf(`{"items":[{"claim":%q,"evidence":%q}]}`, claim, evidence)
}

// TestParse has the bounds in bytes; shapes and characters are cases of package corpus.
func TestParse(t *testing.T) {
	pad := strings.Repeat(" ", MaxSummaryBytes-len(summaryOf("c", "e")))
	fullest := `{"claim":"` + strings.Repeat(`\u0063`, MaxClaimBytes) + `","evidence":"` + strings.Repeat(`\u0065`, MaxEvidenceBytes) + `"}`
	for _, tt := range []struct{ name, doc, code string }{
		{"claim-at-limit", summaryOf(strings.Repeat("c", MaxClaimBytes), "e"), ""},
		{"claim-past-limit", summaryOf(strings.Repeat("c", MaxClaimBytes+1), "e"), CodeTooLarge},
		{"claim-past-limit-in-bytes", summaryOf(strings.Repeat("é", MaxClaimBytes/2+1), "e"), CodeTooLarge},
		{"evidence-at-limit", summaryOf("c", strings.Repeat("e", MaxEvidenceBytes)), ""},
		{"evidence-past-limit", summaryOf("c", strings.Repeat("e", MaxEvidenceBytes+1)), CodeTooLarge},
		{"document-at-limit", summaryOf("c", "e") + pad, ""},
		{"document-past-limit", summaryOf("c", "e") + pad + " ", CodeTooLarge},
		{"fullest", `{"items":[` + fullest + strings.Repeat(","+fullest, MaxItems-1) + `]}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Parse([]byte(tt.doc))
			var refused *RefusedError
			switch {
			case tt.code == "" && (err != nil || len(s.Items) == 0):
				t.Errorf("Parse() = %v, %v, want items", s, err)
			case tt.code != "" && (!errors.As(err, &refused) || refused.Code != tt.code || s.Items != nil):
				t.Errorf("Parse() = %v, %v, want code %s", s, err, tt.code)
			}
		})
	}
}

// TestSchemaAndDecoderAgree: what Parse accepts fits the schema that summarizers receive, and a shape that Parse refuses does not.
func TestSchemaAndDecoderAgree(t *testing.T) {
	published, err := gojsonschema.NewSchema(gojsonschema.NewBytesLoader(Schema()))
	check.NoError(t, err)
	lenient := []string{"twice", "surrogate", "cut", "trailing", "two", "comment"} // not strict JSON, which the validator's decoder accepts
	shapes := 0
	for _, c := range summaries(t) {
		result, err := published.Validate(gojsonschema.NewBytesLoader(c.Bytes()))
		fits := err == nil && result.Valid()
		_, refused := Parse(c.Bytes())
		if refused == nil && !fits {
			t.Errorf("%s: the decoder accepts it, the schema says %v, %v", c.ID, result, err)
		}
		shape, ok := strings.CutPrefix(c.ID, "shape_")
		if !ok || refused == nil || slices.ContainsFunc(lenient, func(word string) bool { return strings.Contains(shape, word) }) {
			continue
		}
		if shapes++; fits {
			t.Errorf("%s: the schema accepts it, the decoder says %v", c.ID, refused)
		}
	}
	if shapes < 10 {
		t.Errorf("only %d shapes were compared", shapes)
	}
}
