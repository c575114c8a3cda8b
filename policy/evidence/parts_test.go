package evidence_test

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/test/check"
	"pgfsm/policy/evidence"
)

// Evidence of fewer than three words is found only where it is a whole line, bullet or cell.
func TestLock_ShortParts(t *testing.T) {
	const list = "# Rules\n\n- Mask emails\n* Never log passwords\n+ Drop\ttables\r\n  12) Rotate keys  \n• Ask first\n" +
		"1234567890. Too long\n-Not marked\n- **Bold text**\n-\nLast line"
	const table = "| Rule | Note |\n|---|:--:|\n| Mask emails | a \\| b |\n  |Drop tables||\t\n| open row | here\nbare | cell |"
	for _, tt := range []struct{ name, value, claim, evidence, code string }{
		{"bullet", list, "Emails are masked.", "Mask emails", ""},
		{"bullet-with-its-marker", list, "Emails are masked.", "- Mask emails", ""},
		{"numbered-and-indented", list, "Keys are rotated.", "Rotate keys", ""},
		{"markup-and-all", list, "It is bold.", "**Bold text**", ""},
		{"cell", table, "Emails are masked.", "Mask emails", ""},
		{"cell-with-an-escaped-bar", table, "Both.", `a \| b`, ""},

		{"part-of-a-line", "You must not mask emails here", "Emails are masked.", "mask emails", evidence.CodeTooShort},
		{"part-of-a-bullet", list, "Log them.", "log passwords", evidence.CodeTooShort},
		{"markup-left-out", list, "It is bold.", "Bold text", evidence.CodeTooShort},
		{"marker-with-too-many-digits", list, "It is long.", "Too long", evidence.CodeTooShort},
		{"over-two-lines", "Mask\nemails or not", "Emails are masked.", "Mask\nemails", evidence.CodeTooShort},
		{"row-without-its-last-bar", table, "It is open.", "open row", evidence.CodeTooShort},
		{"bars-within-a-line", "never |log| this", "Log it.", "log", evidence.CodeTooShort},
		{"carriage-return-is-no-line-end", "never\rlog it\rhere", "Log it.", "log it", evidence.CodeTooShort},

		{"number-goes-on-in-the-next-line", "It costs\n10\nmillion a year", "It costs 10.", "10", evidence.CodeMissing},
		{"date-goes-on-in-the-next-line", "Since\n3 March\n2024", "Since 3 March.", "3 March", evidence.CodeMissing},
		{"number-of-the-marker", list, "There are 12.", "Rotate keys", evidence.CodeUnsupported},
		{"sign-is-no-marker", "-5", "It is 5.", "5", evidence.CodeTooShort},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := json.Marshal(map[string]string{"body": tt.value})
			check.NoError(t, err)
			located, err := evidence.Lock(doc, evidence.Summary{Items: []evidence.Item{{Claim: tt.claim, Evidence: tt.evidence}}})
			var refused *evidence.RefusedError
			switch {
			case tt.code != "" && (!errors.As(err, &refused) || refused.Code != tt.code):
				t.Errorf("Lock(%q, %q) = %v, want code %s", tt.claim, tt.evidence, err, tt.code)
			case tt.code == "" && err != nil:
				t.Errorf("Lock(%q, %q) = %v, want it located", tt.claim, tt.evidence, err)
			case tt.code == "" && tt.value[located[0].At.Start:located[0].At.End] != tt.evidence:
				t.Errorf("Lock(%q) points at %q", tt.evidence, tt.value[located[0].At.Start:located[0].At.End])
			}
		})
	}
}
