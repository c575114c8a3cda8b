package evidence

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// Each hostile summary has a benign twin.
var lockTests = []struct {
	name            string
	claim, evidence string
	code            string
	goodClaim       string // "" for claim
	goodEvidence    string // "" for evidence
}{
	{"made-up-evidence", "Logs are kept.", "Logs are never kept anywhere", CodeMissing, "",
		"Logs are kept for 30 days"},
	{"changed-case", "Never log it.", "personal data must never", CodeMissing, "", "Personal data must never"},
	{"changed-space", "Never log it.", "Personal  data must", CodeMissing, "", "Personal data must"},
	{"added-full-stop", "Never log it.", "Personal data must never be.", CodeMissing, "",
		"Personal data must never be"},
	{"across-two-values", "A title.", "PII Logging Personal data", CodeMissing, "A title.", "PII Logging"},
	{"across-members", "A title.", "policy-002\", \"title", CodeMissing, "A title.", "policy-002"},
	{"member-name", "A name.", "title", CodeMissing, "", "PII Logging"},
	{"long-member-name", "A name.", "unchecked words as a name", CodeMissing, "", "x"},
	{"punctuation-brace", "A brace.", "{", CodeMissing, "", "draft"},
	{"punctuation-quote", "A quote.", "\"", CodeMissing, "", "draft"},
	{"punctuation-colon", "A colon.", ": ", CodeMissing, "", "draft"},
	{"white-space", "Nothing.", " ", CodeMissing, "", "draft"},
	{"whole-value-of-marks", "Loud.", "!!!", CodeMissing, "", "draft"},
	{"empty-evidence", "Nothing.", "", CodeMissing, "", "draft"},
	{"one-letter", "A letter.", "e", CodeTooShort, "", "draft"},
	{"one-word", "Data.", "Personal", CodeTooShort, "", "draft"},
	{"two-words", "Data.", "Personal data", CodeTooShort, "", "Personal data must"},
	{"two-words-and-marks", "Owner.", "- data . must ,", CodeMissing, "", "data must never"},
	{"cut-word-begin", "Data.", "ersonal data must never", CodeMissing, "", "Personal data must never"},
	{"cut-word-end", "Data.", "Personal data mus", CodeMissing, "", "Personal data must"},
	{"cut-off-negation", "It is fine.", "compliant with the rules", CodeMissing, "It is not.",
		"non-compliant with the rules"},
	{"cut-number-begin", "Rows.", "00 rows, two hundred", CodeMissing, "", "10 000 rows, two hundred and five users"},
	{"cut-thousands", "Rows.", "10:30, 10", CodeTooShort, "", "10 000 rows, two hundred and five users"},
	{"cut-scale-word", "It costs 10.", "It costs 10", CodeMissing, "It costs 10 million.", "It costs 10 million"},
	{"cut-date", "Version 1.10.", "version 1.10 of March 3", CodeMissing, "", "version 1.10 of March 3, 2024"},
	{"cut-sign", "Cold.", "5 degrees and 1,000 tickets", CodeMissing, "", "-5 degrees and 1,000 tickets"},
	{"cut-number-words", "Users.", "two hundred and", CodeMissing, "", "two hundred and five users"},
	{"cut-mail-address", "Mail.", "the Privacy Office (privacy", CodeMissing, "",
		"the Privacy Office (privacy@example.com"},
	{"cut-accent", "Coffee.", "été and cafe", CodeMissing, "", "été and cafe\u0301 crème"},
	{"composed-differently", "Coffee.", "e\u0301te\u0301 and cafe\u0301", CodeMissing, "", "été and cafe\u0301"},
	{"wrong-number", "Kept for 90 days.", "Logs are kept for 30 days", CodeUnsupported, "Kept for 30 days.", ""},
	{"number-in-longer-one", "It is 10 tickets.", "10.5 hours, 100 tickets, 10%", CodeUnsupported,
		"It is 100 tickets.", ""},
	{"number-in-range", "Up to 10 days.", "between 5-10 days", CodeUnsupported, "Within 5-10 days.", ""},
	{"number-in-decimal", "About 10 hours.", "days, 10.5 hours, 100", CodeUnsupported, "10.5 hours.", ""},
	{"number-of-money", "It is 10.", "10% or $10, v10", CodeUnsupported, "It is $10.", ""},
	{"number-of-percent", "It is 10.", "10% or $10", CodeUnsupported, "It is 10%.", ""},
	{"number-of-time", "At 10 sharp.", "v10, 10:30, 10 000 rows", CodeUnsupported, "At 10:30 sharp.", ""},
	{"number-in-version", "Version 10.", "$10, v10, 10:30", CodeUnsupported, "Version v10.", ""},
	{"number-without-scale", "It costs 10 dollars.", "It costs 10 million dollars", CodeUnsupported,
		"It costs 10 million dollars.", ""},
	{"number-other-scale", "It costs 10 billion.", "It costs 10 million dollars", CodeUnsupported,
		"It costs 10 million.", ""},
	{"number-without-sign", "It is 5 degrees.", "-5 degrees and 1,000 tickets", CodeUnsupported,
		"It is -5 degrees.", ""},
	{"number-without-comma", "It is 1000 tickets.", "-5 degrees and 1,000 tickets", CodeUnsupported,
		"It is 1,000 tickets.", ""},
	{"number-word", "Three of them.", "Personal data must never", CodeUnsupported, "One of them.", ""},
	{"part-of-number-words", "It has five users.", "two hundred and five users", CodeUnsupported,
		"It has Two hundred and  five users.", ""},
	{"number-in-other-digits", "Kept for ３０ days.", "Logs are kept for 30 days", CodeUnsupported,
		"Kept for 30 days.", ""},
	{"number-with-letter-o", "Kept for 3O days.", "Logs are kept for 30 days", CodeUnsupported,
		"Kept for 30 days.", ""},
	{"superscript", "Kept for 30² days.", "Logs are kept for 30 days", CodeUnsupported, "Kept for 30 days.", ""},
	{"wrong-date", "Deleted on 2024-03-02.", "then deleted on 2024-03-01", CodeUnsupported,
		"Deleted on 2024-03-01.", ""},
	{"part-of-date", "Deleted in 2024-03.", "then deleted on 2024-03-01", CodeUnsupported,
		"Deleted on 2024-03-01.", ""},
	{"year-of-date", "Deleted in 2024.", "then deleted on 2024-03-01", CodeUnsupported, "Then deleted.", ""},
	{"wrong-month", "Since April 3, 2024.", "version 1.10 of March 3, 2024", CodeUnsupported,
		"Since march 3, 2024.", ""},
	{"month-alone", "Since April.", "version 1.10 of March 3, 2024", CodeUnsupported, "It may be.", ""},
	{"wrong-identifier", "See INC0010024.", "tickets of type INC0010023", CodeUnsupported, "See INC0010023.", ""},
	{"part-of-identifier", "See INC.", "tickets of type INC0010023", CodeUnsupported, "See INC0010023.", ""},
	{"identifier-in-other-case", "See inc0010023.", "tickets of type INC0010023", CodeUnsupported,
		"See INC0010023.", ""},
	{"wrong-policy", "It is policy-003.", "policy-002", CodeUnsupported, "It is policy-002.", ""},
	{"acronym", "See HIPAA.", "tickets of type INC0010023; see GDPR", CodeUnsupported, "See GDPR.", ""},
	{"mail-address", "Ask root@example.com.", "the Privacy Office (privacy@example.com", CodeUnsupported,
		"Ask privacy@example.com.", ""},
	{"host-name", "See evil.example.", "Personal data must never", CodeUnsupported, "See, e.g., this.", ""},
	{"mixed-case-name", "Set maxAge.", "Personal data must never", CodeUnsupported, "Set Maxage.", ""},
	{"snake-case-name", "Set max_age.", "Personal data must never", CodeUnsupported, "Set max age.", ""},
	{"claim-script", "Never <script>log</script>.", "Personal data must never", CodeNotStrict, "Never a < b.", ""},
	{"claim-closing-tag", "Never </p>.", "Personal data must never", CodeNotStrict, "Never < / p >.", ""},
	{"claim-comment", "Never <!-- x -->.", "Personal data must never", CodeNotStrict, "Never <- x.", ""},
	{"claim-markdown-link", "See [this](http:x).", "Personal data must never", CodeNotStrict, "See [this] (x).", ""},
	{"claim-markdown-image", "![](http:x)", "Personal data must never", CodeNotStrict, "See this!", ""},
	{"claim-newline", "Never\nlog.", "Personal data must never", CodeNotStrict, "Never log.", ""},
	{"claim-escape-sequence", "Never \x1b[31mlog.", "Personal data must never", CodeNotStrict, "Never log.", ""},
	{"claim-nul", "Never\x00log.", "Personal data must never", CodeNotStrict, "Never log.", ""},
	{"claim-c1-control", "Never\u0085log.", "Personal data must never", CodeNotStrict, "Never log.", ""},
	{"claim-bidi", "Never \u202elog.", "Personal data must never", CodeNotStrict, "Never log.", ""},
	{"claim-bidi-isolate", "Never \u2066log\u2069.", "Personal data must never", CodeNotStrict, "Never log.", ""},
	{"claim-zero-width-space", "Never\u200blog.", "Personal data must never", CodeNotStrict, "Never log.", ""},
	{"claim-tags", "Never\U000E0041.", "Personal data must never", CodeNotStrict, "Never ❤.", ""},
	{"claim-hidden-selectors", "Never\U000E0141.", "Personal data must never", CodeNotStrict, "Never.", ""},
	{"claim-line-separator", "Never\u2028log.", "Personal data must never", CodeNotStrict, "Never log.", ""},
	{"claim-not-utf-8", "Never\xff.", "Personal data must never", CodeNotStrict, "Never.", ""},
	{"evidence-markup", "Bold.", "bold text here</b>", CodeNotStrict, "", "bold text here"},
	{"evidence-markdown-link", "More.", "[the handbook](https://example.com) for more", CodeNotStrict, "", "see [the handbook]"},
	{"evidence-zero-width", "Hidden.", "zero\u200bwidth text is here", CodeNotStrict, "", "text is here, and"},
	{"evidence-bidi", "Hidden.", "and \u202ereversed\u202c text", CodeNotStrict, "", "text is here, and"},
	{"evidence-nul", "Data.", "Personal data\x00must", CodeNotStrict, "", "2024-03-01.\nOwner: the Privacy Office"},
	{"escaped-newline", "Owner.", `2024-03-01.\nOwner: the`, CodeMissing, "", "2024-03-01.\nOwner: the"},
	{"escaped-letter", "Summer.", `\u00e9t\u00e9 and cafe`, CodeMissing, "", "\"quoted\" word été"},
	{"claim-empty", "", "draft", CodeNotStrict, "A draft.", ""},
	{"claim-blank", " \u00a0 ", "draft", CodeNotStrict, "A draft.", ""},
	{"claim-only-marks", "...", "draft", CodeNotStrict, "A draft.", ""},
	{"claim-past-limit", strings.Repeat("x", MaxClaimBytes+1), "draft", CodeTooLarge, strings.Repeat("x",
		MaxClaimBytes), ""},
	{"claim-past-limit-in-bytes", strings.Repeat("é", MaxClaimBytes/2) + "x", "draft", CodeTooLarge,
		strings.Repeat("é", MaxClaimBytes/2), ""},
	{"evidence-past-limit", "Data.", strings.Repeat("x", MaxEvidenceBytes+1), CodeTooLarge, "", "draft"},
	{"null-is-no-evidence", "None.", "null", CodeMissing, "True.", "true"},
	{"false-is-not-there", "False.", "false", CodeMissing, "True.", "true"},
	{"part-of-number-literal", "It is 4.", "4", CodeTooShort, "It is 42.", "42"},
	{"number-in-another-spelling", "Minus.", "-1500", CodeMissing, "It is -1.50e3.", "-1.50e3"},
	{"han-two-characters", "記録。", "個人", CodeTooShort, "", "個人情報を記録しない"},
}

func lock(claim, evidence string) ([]Located, *RefusedError, error) {
	located, err := Lock([]byte(payload), Summary{[]Item{{Claim: claim, Evidence: evidence}}})
	var refused *RefusedError
	errors.As(err, &refused)
	return located, refused, err
}

func TestLock_HostileAndItsBenignTwin(t *testing.T) {
	for _, tt := range lockTests {
		t.Run(tt.name, func(t *testing.T) {
			located, refused, err := lock(tt.claim, tt.evidence)
			if refused == nil || refused.Code != tt.code || located != nil {
				t.Errorf("Lock(%q, %q) = %v, %v, want code %s", tt.claim, tt.evidence, located, err, tt.code)
			} else if refused.Reason == "" || refused.Item != 0 {
				t.Errorf("Lock(%q, %q): item %d, reason %q, want item 0 and a reason",
					tt.claim, tt.evidence, refused.Item, refused.Reason)
			}
			claim, evidence := tt.goodClaim, tt.goodEvidence
			if claim == "" {
				claim = tt.claim
			}
			if evidence == "" {
				evidence = tt.evidence
			}
			if claim == tt.claim && evidence == tt.evidence {
				t.Fatal("there is no benign twin")
			}
			located, _, err = lock(claim, evidence)
			if err != nil || len(located) != 1 {
				t.Errorf("Lock(%q, %q) = %v, %v, want it located", claim, evidence, located, err)
			}
		})
	}
	if len(lockTests) < 60 {
		t.Errorf("there are %d cases, want at least 60", len(lockTests))
	}
}

func at(pointer string, start, end int) Place { return Place{Pointer: pointer, Start: start, End: end} }

func TestLock_Place(t *testing.T) {
	tests := []struct {
		name, payload, evidence string
		want                    Place
	}{
		{"first-in-document-order", payload, "Personal data must never be written to logs", at("/body", 0, 43)},
		{"later-in-document", payload, "never be written to paper", at("/list/0", 0, 25)},
		{"escaped-pointer", payload, "written to logs, again", at("/list/1/deep~1er~0", 28, 50)},
		{"decoded-offsets", payload, `"quoted" word été`, at("/quote", 2, 21)},
		{"number", payload, "42", at("/number", 0, 2)},
		{"boolean", payload, "true", at("/yes", 0, 4)},
		{"top-level-string", `"red green blue grey"`, "green blue grey", at("", 4, 19)},
		{"top-level-number", `7`, "7", at("", 0, 1)},
		{"second-occurrence-is-clean", `["xone two three, one two three"]`, "one two three", at("/0", 16, 29)},
		{"part-before-whole", `["so one two three", "one two three"]`, "one two three", at("/0", 3, 16)},
		{"too-short-part-before-whole", `["one two", "one"]`, "one", at("/1", 0, 3)},
		{"big-number-keeps-its-literal", `[9007199254740993]`, "9007199254740993", at("/0", 0, 16)},
		{"huge-exponent", `[1E400]`, "1E400", at("/0", 0, 5)},
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
		{"items-at-limit", payload, items(MaxItems), "", 0},
		{"items-past-limit", payload, items(MaxItems + 1), CodeTooLarge, WholeSummary},
		{"second-item", payload, Summary{[]Item{good, {Claim: "A draft.", Evidence: "made up"}}}, CodeMissing, 1},
		{"empty-payload", "", items(1), CodeMissing, WholeSummary},
		{"payload-not-json", `{"a":draft}`, items(1), CodeMissing, WholeSummary},
		{"payload-cut-off", `["draft"`, items(1), CodeMissing, WholeSummary},
		{"payload-with-duplicate-names", `{"a":"draft","a":1}`, items(1), CodeMissing, WholeSummary},
		{"payload-two-values", `"draft" "draft"`, items(1), CodeMissing, WholeSummary},
		{"payload-trailing-text", `"draft" x`, items(1), CodeMissing, WholeSummary},
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
