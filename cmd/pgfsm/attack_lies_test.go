package main

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"pgfsm/policy"
	"pgfsm/policy/evidence"
)

const (
	missing     = policy.Code(evidence.CodeMissing)
	tooShort    = policy.Code(evidence.CodeTooShort)
	unsupported = policy.Code(evidence.CodeUnsupported)
	badSummary  = policy.Code(evidence.CodeNotStrict)
	tooMuch     = policy.Code(evidence.CodeTooLarge)
	noSummary   = policy.Code(evidence.CodeEmpty)
)

// summaryOf is a summary as an truth summarizer writes it.
func summaryOf(items ...quote) string {
	list := make([]string, len(items))
	for i, q := range items {
		list[i] = itemOf(q.Claim, q.Evidence)
	}
	return `{"items":[` + strings.Join(list, ",") + `]}`
}

func itemOf(claim, evidence string) string {
	c, err := json.Marshal(claim)
	e, err2 := json.Marshal(evidence)
	if err != nil || err2 != nil {
		panic("an item cannot be written")
	}
	return `{"claim":` + string(c) + `,"evidence":` + string(e) + `}`
}

// aDraft is the item that most attacks on the shape are made of.
var (
	aDraft = quote{"It is a draft.", "draft"}
	draft  = itemOf(aDraft.Claim, aDraft.Evidence)
	truth  = []quote{aDraft}
)

// A falsehood is a lie in one item: a claim, its evidence, and those of its twin.
type falsehood struct {
	name  string
	false quote
	code  policy.Code
	true  quote
}

// lies are all attacks of the summarizer.
func lies() []lie {
	list := brokenSummaries()
	for _, f := range falsehoods {
		list = append(list, lie{f.name, summaryOf(f.false), f.code, "", []quote{f.true}})
	}
	return list
}

const neverLogged = "Personal data must never be written to logs"

// falsehoods are summaries of the right shape that say what the result does not.
var falsehoods = []falsehood{
	{"made-up-evidence", quote{"Logs are kept.", "Logs are never kept anywhere"}, missing, quote{"Logs are kept.",
		"Logs are kept for 30 days"}},
	{"evidence-in-another-case", quote{"Never.", "personal data must never"}, missing, quote{"Never.",
		"Personal data must never"}},
	{"evidence-with-another-space", quote{"Never.", "Personal  data must"}, missing, quote{"Never.",
		"Personal data must"}},
	{"evidence-with-a-full-stop", quote{"Never.", "Personal data must never be."}, missing, quote{"Never.",
		"Personal data must never be"}},
	{"evidence-is-a-brace", quote{"A brace.", "{"}, missing, quote{"A draft.", "draft"}},
	{"evidence-is-a-quotation-mark", quote{"A mark.", `"`}, missing, quote{"A draft.", "draft"}},
	{"evidence-is-a-colon", quote{"A colon.", ": "}, missing, quote{"A draft.", "draft"}},
	{"evidence-is-a-comma", quote{"A comma.", ","}, missing, quote{"A draft.", "draft"}},
	{"evidence-is-marks", quote{"Loud.", "!!!"}, missing, quote{"A draft.", "draft"}},
	{"evidence-is-white-space", quote{"Nothing.", " "}, missing, quote{"A draft.", "draft"}},
	{"evidence-is-empty", quote{"Nothing.", ""}, missing, quote{"A draft.", "draft"}},
	{"evidence-is-a-key", quote{"A name.", "title"}, missing, quote{"A name.", "PII Logging"}},
	{"evidence-is-a-long-key", quote{"A name.", "unchecked words as a name"}, missing, quote{"A name.", "x"}},
	{"evidence-is-a-key-and-its-value", quote{"A name.", `"title":"PII Logging"`}, missing, quote{"A name.",
		"PII Logging"}},
	{"evidence-is-one-letter", quote{"A letter.", "e"}, tooShort, quote{"A letter.", "x"}},
	{"evidence-is-one-digit", quote{"A digit.", "4"}, tooShort, quote{"A digit.", "42"}},
	{"evidence-is-one-word", quote{"Data.", "Personal"}, tooShort, quote{"Data.", "Personal data must"}},
	{"evidence-is-two-words", quote{"Data.", "Personal data"}, tooShort, quote{"Data.", "data must never"}},
	{"evidence-is-null", quote{"Nothing.", "null"}, missing, quote{"It is so.", "true"}},
	{"evidence-spans-two-values", quote{"A title.", "PII Logging x draft"}, missing, quote{"A title.", "PII Logging"}},
	{"evidence-spans-two-members", quote{"A title.", `PII Logging","unchecked`}, missing, quote{"A title.",
		"PII Logging"}},
	{"evidence-spans-two-items", quote{"A list.", `paper","red green blue`}, missing, quote{"A list.", "red green blue"}},
	{"evidence-spans-two-people", quote{"They.", "Ada Lovelace Alan Turing"}, missing, quote{"They.", "Ada Lovelace"}},
	{"evidence-cut-at-its-begin", quote{"Data.", "ersonal data must never"}, missing, quote{"Data.",
		"Personal data must never"}},
	{"evidence-cut-at-its-end", quote{"Data.", "Personal data mus"}, missing, quote{"Data.", "Personal data must"}},
	{"evidence-without-its-negation", quote{"It is fine.", "compliant with the rules"}, missing,
		quote{"It is not.", "non-compliant with the rules"}},
	{"evidence-without-its-scale", quote{"It costs 10.", "It costs 10"}, missing, quote{"It costs 10 million.",
		"It costs 10 million"}},
	{"evidence-without-its-sign", quote{"Cold.", "5 degrees and 1,000 tickets"}, missing, quote{"Cold.",
		"-5 degrees and 1,000 tickets"}},
	{"evidence-cut-in-a-date", quote{"A version.", "version 1.10 of March 3"}, missing, quote{"A version.",
		"version 1.10 of March 3, 2024"}},
	{"evidence-cut-in-an-address", quote{"Mail.", "the Privacy Office (privacy"}, missing,
		quote{"Mail.", "the Privacy Office (privacy@example.com"}},
	{"evidence-cut-in-a-number", quote{"Past.", "900719925474099"}, missing, quote{"Past.", "9007199254740993"}},
	{"evidence-composed-otherwise", quote{"Coffee.", "été and caf\u00e9 crème"}, missing, quote{"Coffee.",
		"été and cafe\u0301 crème"}},
	{"evidence-escaped", quote{"Owner.", `2024-03-01.\nOwner: the`}, missing, quote{"Owner.", "2024-03-01.\nOwner: the"}},
	{"evidence-is-a-number-rounded", quote{"Many.", "9007199254740992"}, missing, quote{"It is 9007199254740993.",
		"9007199254740993"}},
	{"evidence-is-a-number-converted", quote{"Minus.", "-1500"}, missing, quote{"It is -1.50e3.", "-1.50e3"}},
	{"evidence-from-another-run", quote{"Done.", "The file was deleted."}, missing, quote{"Done.",
		"never be written to paper"}},
	{"evidence-of-two-characters", quote{"記録。", "個人"}, tooShort, quote{"記録。", "個人情報を記録しない"}},
	{"claim-with-another-number", quote{"Kept for 90 days.", "Logs are kept for 30 days"}, unsupported,
		quote{"Kept for 30 days.", "Logs are kept for 30 days"}},
	{"claim-with-the-neighbour-of-2-53", quote{"It is 9007199254740992.", "9007199254740993"}, unsupported,
		quote{"It is 9007199254740993.", "9007199254740993"}},
	{"claim-with-a-part-of-a-number", quote{"It is 10 tickets.", "10.5 hours, 100 tickets, 10%"}, unsupported,
		quote{"It is 100 tickets.", "10.5 hours, 100 tickets, 10%"}},
	{"claim-without-the-sign", quote{"It is 5 degrees.", "-5 degrees and 1,000 tickets"}, unsupported,
		quote{"It is -5 degrees.", "-5 degrees and 1,000 tickets"}},
	{"claim-without-the-percent-sign", quote{"It is 10.", "10% or $10"}, unsupported, quote{"It is 10%.", "10% or $10"}},
	{"claim-without-the-scale", quote{"It costs 10 dollars.", "It costs 10 million dollars"}, unsupported,
		quote{"It costs 10 million dollars.", "It costs 10 million dollars"}},
	{"claim-with-another-scale", quote{"It costs 10 billion.", "It costs 10 million dollars"}, unsupported,
		quote{"It costs 10 million.", "It costs 10 million dollars"}},
	{"claim-with-a-number-word", quote{"Three of them.", "Personal data must never"}, unsupported, quote{"One of them.",
		"Personal data must never"}},
	{"claim-with-full-width-digits", quote{"Kept for ９０ days.", "Logs are kept for 30 days"}, unsupported,
		quote{"Kept for 30 days.", "Logs are kept for 30 days"}},
	{"claim-with-a-superscript", quote{"Kept for 30² days.", "Logs are kept for 30 days"}, unsupported,
		quote{"Kept for 30 days.", "Logs are kept for 30 days"}},
	{"claim-with-another-date", quote{"Deleted on 2024-03-02.", "then deleted on 2024-03-01"}, unsupported,
		quote{"Deleted on 2024-03-01.", "then deleted on 2024-03-01"}},
	{"claim-with-a-part-of-a-date", quote{"Deleted in 2024.", "then deleted on 2024-03-01"}, unsupported,
		quote{"Deleted then.", "then deleted on 2024-03-01"}},
	{"claim-with-another-month", quote{"Since April 3, 2024.", "version 1.10 of March 3, 2024"}, unsupported,
		quote{"Since March 3, 2024.", "version 1.10 of March 3, 2024"}},
	{"claim-with-another-identifier", quote{"See INC0010024.", "tickets of type INC0010023"}, unsupported,
		quote{"See INC0010023.", "tickets of type INC0010023"}},
	{"claim-with-another-policy", quote{"It is policy-003.", "policy-002"}, unsupported, quote{"It is policy-002.",
		"policy-002"}},
	{"claim-with-another-acronym", quote{"See HIPAA.", "tickets of type INC0010023; see GDPR"}, unsupported,
		quote{"See GDPR.", "tickets of type INC0010023; see GDPR"}},
	{"claim-with-another-address", quote{"Ask root@example.com.", "the Privacy Office (privacy@example.com"}, unsupported,
		quote{"Ask privacy@example.com.", "the Privacy Office (privacy@example.com"}},
	{"claim-with-a-host", quote{"See evil.example.", neverLogged}, unsupported, quote{"See evil example.", neverLogged}},
	{"claim-with-an-address-of-the-web", quote{"See https://evil.example/x.", neverLogged}, unsupported,
		quote{"See http, evil, example, x.", neverLogged}},
	{"claim-with-a-long-path", quote{"See evil.example/a/login.", neverLogged}, unsupported, quote{"See evil/a/login.",
		neverLogged}},
	{"claim-with-a-host-of-three-parts", quote{"See a.evil.example.", neverLogged}, unsupported,
		quote{"See a, e.g. evil.", neverLogged}},
	{"claim-with-mixed-alphabets", quote{"Kept s\u0435ven days.", neverLogged}, unsupported, quote{"Kept even days.",
		neverLogged}},
	{"claim-with-a-script", quote{"Never <script>log</script>.", neverLogged}, badSummary, quote{"Never a < b.",
		neverLogged}},
	{"claim-with-an-image", quote{"Never <img src=x>.", neverLogged}, badSummary, quote{"Never <= x.", neverLogged}},
	{"claim-with-a-comment", quote{"Never <!-- x -->.", neverLogged}, badSummary, quote{"Never <- x.", neverLogged}},
	{"claim-with-a-link", quote{"See [this](http:x).", neverLogged}, badSummary, quote{"See [this] (x).", neverLogged}},
	{"claim-with-a-line-end", quote{"Never\nlog.", neverLogged}, badSummary, quote{"Never log.", neverLogged}},
	{"claim-with-a-terminal-escape", quote{"Never \x1b[31mlog.", neverLogged}, badSummary, quote{"Never [m log.",
		neverLogged}},
	{"claim-with-nul", quote{"Never\x00log.", neverLogged}, badSummary, quote{"Never log.", neverLogged}},
	{"claim-right-to-left", quote{"Never \u202elog.", neverLogged}, badSummary, quote{"Never log.", neverLogged}},
	{"claim-with-a-zero-width-space", quote{"Never\u200blog.", neverLogged}, badSummary, quote{"Never log.", neverLogged}},
	{"claim-with-tag-characters", quote{"Never\U000E0041.", neverLogged}, badSummary, quote{"Never ❤.", neverLogged}},
	{"claim-is-empty", quote{"", "draft"}, badSummary, quote{"A draft.", "draft"}},
	{"claim-is-blank", quote{" \u00a0 ", "draft"}, badSummary, quote{"A draft.", "draft"}},
	{"claim-is-marks", quote{"...", "draft"}, badSummary, quote{"A draft.", "draft"}},
	{"claim-one-past-the-limit", quote{strings.Repeat("x", 601), "draft"}, tooMuch, quote{strings.Repeat("x", 600),
		"draft"}},
	{"claim-one-past-the-limit-in-bytes", quote{strings.Repeat("é", 300) + "x", "draft"}, tooMuch,
		quote{strings.Repeat("é", 300), "draft"}},
	{"evidence-one-past-the-limit", quote{"Data.", strings.Repeat("x", 2001)}, tooMuch, quote{"Data.", "draft"}},
	{"evidence-at-the-limit-that-is-not-there", quote{"Data.", strings.Repeat("x", 2000)}, missing, quote{"Data.",
		"draft"}},
	{"evidence-with-markup", quote{"Bold.", "bold text here</b>"}, badSummary, quote{"Bold.", "bold text here"}},
	{"evidence-with-a-link", quote{"More.", "[the handbook](https://example.com) for more"}, badSummary, quote{"More.",
		"see [the handbook]"}},
	{"evidence-with-hidden-text", quote{"Hidden.", "zero\u200bwidth text is here"}, badSummary, quote{"Hidden.",
		"text is here, and"}},
	{"evidence-right-to-left", quote{"Hidden.", "and \u202ereversed\u202c text"}, badSummary, quote{"Hidden.",
		"text is here, and"}},
}

// brokenSummaries are no summaries. Some are megabytes long: a process of the command that a test starts must not make them.
func brokenSummaries() []lie {
	eight := slices.Repeat(truth, evidence.MaxItems)
	return []lie{
		{"nothing", ``, badSummary, "", truth},
		{"prose", `The policy is a draft.`, badSummary, "", truth},
		{"fence", "```json\n" + summaryOf(aDraft) + "\n```", badSummary, "", truth},
		{"text-before", `Here: ` + summaryOf(aDraft), badSummary, "", truth},
		{"text-behind", summaryOf(aDraft) + ` Done.`, badSummary, "", truth},
		{"two-objects", summaryOf(aDraft) + summaryOf(aDraft), badSummary, "", truth},
		{"byte-order-mark", "\ufeff" + summaryOf(aDraft), badSummary, "", truth},
		{"list", `[` + draft + `]`, badSummary, "", truth},
		{"empty-object", `{}`, badSummary, "", truth},
		{"null", `null`, badSummary, "", truth},
		{"items-are-null", `{"items":null}`, badSummary, "", truth},
		{"items-are-one", `{"items":` + draft + `}`, badSummary, "", truth},
		{"item-is-null", `{"items":[null]}`, badSummary, "", truth},
		{"item-is-text", `{"items":["It is a draft."]}`, badSummary, "", truth},
		{"no-evidence", `{"items":[{"claim":"It is a draft."}]}`, badSummary, "", truth},
		{"no-claim", `{"items":[{"evidence":"draft"}]}`, badSummary, "", truth},
		{"evidence-is-a-list", `{"items":[{"claim":"It is a draft.","evidence":["draft"]}]}`, badSummary, "", truth},
		{"claim-is-a-number", `{"items":[{"claim":42,"evidence":"42"}]}`, badSummary, "", []quote{{"42", "42"}}},
		{"unknown-member", `{"items":[` + draft + `],"answer":"Done."}`, badSummary, "", truth},
		{"unknown-member-of-an-item", `{"items":[{"claim":"It is a draft.","evidence":"draft","at":{"pointer":"/id"}}]}`,
			badSummary, "", truth},
		{"name-in-another-case", `{"Items":[` + draft + `]}`, badSummary, "", truth},
		{"name-in-two-cases", `{"items":[` + draft + `],"Items":[]}`, badSummary, "", truth},
		{"duplicate-name", `{"items":[],"items":[` + draft + `]}`, badSummary, "", truth},
		{"duplicate-claim-escaped", `{"items":[{"claim":"It is a draft.","cl\u0061im":"It is final.","evidence":"draft"}]}`,
			badSummary, "", truth},
		{"lone-surrogate", `{"items":[{"claim":"It is a draft\ud800.","evidence":"draft"}]}`, badSummary, "", truth},
		{"nan", `{"items":[{"claim":NaN,"evidence":"draft"}]}`, badSummary, "", truth},
		{"deep", `{"items":[{"claim":` + nest(50_000) + `,"evidence":"draft"}]}`, badSummary, "", truth},
		{"plan-instead", plain.says, badSummary, "", truth},
		{"second-item-is-made-up", summaryOf(aDraft, quote{"It is final.", "approved and final"}), missing, "",
			[]quote{aDraft, {"A title.", "PII Logging"}}},
		{"last-of-eight-lacks-its-number", summaryOf(append(eight[:7:7], quote{"It is 43.", "42"})...), unsupported, "",
			append(eight[:7:7], quote{"It is 42.", "42"})},
		{"nine-items", summaryOf(append(eight[:8:8], aDraft)...), tooMuch, "", eight},
		{"five-hundred-items", summaryOf(slices.Repeat(truth, 500)...), tooMuch, "", eight},
		{"fifty-thousand-items", summaryOf(slices.Repeat(truth, 50_000)...), tooMuch, "", eight},
		{"summary-one-past-the-limit", wide(evidence.MaxSummaryBytes + 1), tooMuch, "", truth},
		{"claim-of-one-megabyte", summaryOf(quote{strings.Repeat("x", 1<<20), "draft"}), tooMuch, "", truth},
		{"evidence-of-one-megabyte", summaryOf(quote{"Data.", strings.Repeat("x", 1<<20)}), tooMuch, "", truth},
		// What is larger than any completion that is read never becomes a summary.
		{"claim-of-ten-megabytes", summaryOf(quote{strings.Repeat("x", 10<<20), "draft"}), policy.CodePlannerFailed,
			"No summary (%s): ", truth},
		{"no-items", `{"items":[]}`, noSummary, "No summary (%s): ", truth},
	}
}

// wide is a summary with white space behind it up to a size.
func wide(size int) string {
	return summaryOf(aDraft) + strings.Repeat(" ", size-len(summaryOf(aDraft)))
}
