package llm

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/policy/evidence"
)

// said summarizes and returns the claims. It fails if the summary is not one that the evidence gate accepts, or is
// empty in another spelling than {"items":[]}.
func said(tb testing.TB, request string, typed []byte) []string {
	tb.Helper()
	got, err := Extractive{}.Summarize(tb.Context(), request, typed)
	check.NoError(tb, err)
	doc := got.Content
	if string(doc) == `{"items":[]}` {
		return nil
	}
	summary, err := evidence.Parse(doc)
	if err != nil {
		tb.Fatalf("Summarize(%q) = %s, which is refused: %v", request, doc, err)
	}
	if _, err := evidence.Lock(typed, summary); err != nil {
		tb.Fatalf("Summarize(%q) = %s, which is refused: %v", request, doc, err)
	}
	if len(summary.Items) > MaxSentences {
		tb.Fatalf("Summarize(%q) says %d sentences, at most %d are said", request, len(summary.Items), MaxSentences)
	}
	var claims []string
	for _, item := range summary.Items {
		if item.Claim != strings.Join(strings.Fields(item.Evidence), " ") && item.Claim != item.Evidence {
			tb.Fatalf("claim %q is not its evidence %q", item.Claim, item.Evidence)
		}
		claims = append(claims, item.Claim)
	}
	return claims
}

func TestSummarize(t *testing.T) {
	longest := strings.Repeat("word ", 119) + "end.."
	tooLong := strings.Repeat("word ", 119) + "end..."
	if len(longest) != MaxSentenceBytes {
		t.Fatalf("the longest sentence has %d bytes, want %d", len(longest), MaxSentenceBytes)
	}
	many := "Alpha comes first here. Bravo comes second here. Charlie comes third here. Delta comes fourth here. " +
		"Echo comes fifth here. Foxtrot comes sixth here."
	for _, tt := range []struct {
		name, request, typed string
		want                 []string
	}{
		{"sentences-in-document-order", "Summarize it",
			`{"b":"Logs are kept here. Copies are dropped soon.","a":["Owners review this yearly."]}`,
			[]string{"Logs are kept here.", "Copies are dropped soon.", "Owners review this yearly."}},
		{"the-first-five", "x", fmt.Sprintf(`{"body":%q}`, many),
			[]string{"Alpha comes first here.", "Bravo comes second here.", "Charlie comes third here.",
				"Delta comes fourth here.", "Echo comes fifth here."}},
		{"labels-are-not-said", "x",
			`{"a":["Security Operations Team One","Alpha comes first."],"b":"Text of five plain words"}`,
			[]string{"Alpha comes first.", "Text of five plain words"}},
		{"ids-and-codes-are-not-said", "x",
			`{"id":"policy-002","status":"OK","owner":"Jane Doe","n":5,"t":true,` +
				`"when":"2024-05-01 at 10:00","refs":"INC0010001 INC0010002 INC0010003","blob":"` +
				base64.StdEncoding.EncodeToString([]byte(many)) + `"}`, nil},
		{"member-names-are-not-said", "x", `{"this is a name.":1}`, nil},
		{"numbers-and-dates-in-a-sentence", "x", `{"b":"Logs are kept for 3.5 years from 2024-05-01. They are then erased."}`,
			[]string{"Logs are kept for 3.5 years from 2024-05-01.", "They are then erased."}},
		{"longest-sentence", "x", fmt.Sprintf(`{"b":%q}`, longest), []string{longest}},
		{"one-byte-too-long-is-not-cut", "x", fmt.Sprintf(`{"b":%q}`, tooLong), nil},
		{"repetition-is-said-once", "x", `{"a":"Logs are kept here.","b":"Logs are kept here."}`,
			[]string{"Logs are kept here."}},
		{"echo-of-the-request-is-not-said", "Search for PII Logging in Production",
			`{"query":"pii logging in production","hits":[` +
				`{"snippet":"PII must never reach production logs."}]}`, []string{"PII must never reach production logs."}},
		{"markup-is-passed-over", "x", `{"b":"Click <a href=x>here</a> right now. Logs are kept here."}`,
			[]string{"Logs are kept here."}},
		{"bidi-control-is-passed-over", "x", "{\"b\":\"Logs are \u202ekept here. Copies are dropped soon.\"}",
			[]string{"Copies are dropped soon."}},
		{"control-character-is-passed-over", "x", `{"b":"Logs are \u0007 kept here. Copies are dropped soon."}`,
			[]string{"Copies are dropped soon."}},
		{"wrapped-line-is-one-claim", "x", `{"b":"Delete all the logs\r\n  unless a hold applies."}`,
			[]string{"Delete all the logs unless a hold applies."}},
		{"not-found", "x", `{"status":"NOT_FOUND","doc":null}`, nil},
		{"not-found-with-prose-before-it", "x", `{"message":"The document could not be located.","status":"NOT_FOUND"}`, nil},
		{"not-found-with-prose-behind-it", "x", `{"status":"NOT_FOUND","doc":{"body":"Logs are kept here."}}`, nil},
		{"not-found-inside-takes-only-its-object", "x",
			`{"a":"Logs are kept here.","b":[{"c":"No such thing here.","status":"NOT_FOUND"},` +
				`{"c":"Copies are dropped soon.","status":"OK"}]}`, []string{"Logs are kept here.", "Copies are dropped soon."}},
		{"not-found-under-another-name", "x", `{"state":"NOT_FOUND","b":"Logs are kept here."}`,
			[]string{"Logs are kept here."}},
		{"status-that-is-no-string", "x", `{"status":["NOT_FOUND"],"b":"Logs are kept here."}`,
			[]string{"Logs are kept here."}},
		{"value-behind-a-status-that-is-null", "x", `{"status":null,"c":"NOT_FOUND","b":"Logs are kept here."}`,
			[]string{"Logs are kept here."}},
		{"a-bare-string", "x", `"Logs are kept here."`, []string{"Logs are kept here."}},
		{"a-number", "x", `5`, nil},
		{"not-json", "x", `{"b":"Logs are kept here."`, nil},
		{"duplicate-name", "x", `{"b":"Logs are kept here.","b":"Logs are kept here."}`, nil},
		{"nothing", "x", ``, nil},
		{"empty-request", "", `{"b":"Logs are kept here."}`, []string{"Logs are kept here."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, said(t, tt.request, []byte(tt.typed))); diff != "" {
				t.Errorf("Summarize(%q, %s) (-want +got):\n%s", tt.request, tt.typed, diff)
			}
		})
	}
}

// TestSummarizeTrials shows the bound on the sentences that the gate is asked about, at it and one past it.
func TestSummarizeTrials(t *testing.T) {
	for _, tt := range []struct {
		name    string
		refused int
		want    []string
	}{
		{"one-trial-left", maxTrials - 1, []string{"Logs are kept here."}},
		{"no-trial-left", maxTrials, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := strings.Repeat("This has <b>bold</b> text. ", tt.refused) + "Logs are kept here."
			if diff := cmp.Diff(tt.want, said(t, "x", payload(t, body))); diff != "" {
				t.Errorf("Summarize (-want +got):\n%s", diff)
			}
		})
	}
}

func payload(tb testing.TB, body string) []byte {
	tb.Helper()
	doc, err := json.Marshal(map[string]string{"body": body})
	check.NoError(tb, err)
	return doc
}

// isSoak is set by make soak: long tests run in full.
var isSoak = os.Getenv("PGFSM_SOAK") != ""

// TestSummarizeLarge summarizes large payloads, friendly and not. A scan that looks back or ahead again and again takes minutes.
func TestSummarizeLarge(t *testing.T) {
	const size = 128 << 10
	spaces := strings.Repeat(" ", 64)
	for _, unit := range []string{
		"logs are kept ", "Logs <b>are</b> kept here. ", ". ", "5. May ", "A. ", `.")`, "\n", "a\n" + spaces, "1", "\n1", "\n-", spaces, "x",
		". a", "。", ".”", spaces + "1. ", "\r",
	} {
		if got := said(t, "logs retention", payload(t, strings.Repeat(unit, size/len(unit)))); len(got) != 0 {
			t.Errorf("Summarize of %.20q again and again says %q, want nothing", unit, got)
		}
	}
	once := said(t, "logs retention", payload(t, strings.Repeat("Logs are kept for 90 days here. ", size/32)))
	many := said(t, "logs retention", []byte("["+strings.Repeat(`"a b c",`, size/8)+`"Logs are kept here."]`))
	none := said(t, "logs retention", []byte(`["`+strings.Repeat("a ", maxSearched/2)+`","Logs are kept here."]`))
	if len(once) != 1 || len(many) != 1 || len(none) != 0 {
		t.Errorf("Summarize says %q of one sentence, %q behind many values, %q behind 1 MiB; want one, one and none", once, many, none)
	}
}

// FuzzExtractive holds the summarizer to its promise: everything it says passes the evidence gate.
func FuzzExtractive(f *testing.F) {
	f.Fuzz(func(t *testing.T, request, body string, typed []byte) {
		if doc, err := json.Marshal(map[string]string{"body": body}); err == nil {
			said(t, request, doc)
		}
		said(t, request, typed)
	})
}
