package gates

import (
	"strings"
	"testing"

	"pgfsm/policy"
)

// TestSecondReader holds the second reader to plans whose answer a person wrote down, so that it is more than the gates' echo.
func TestSecondReader(t *testing.T) {
	const good = `{"type":"call_tool","server":"kb","tool":"fetch_entry","args":{"entry_id":"entry-002"}}`
	with := func(from, to string) string { return strings.Replace(good, from, to, 1) }
	for _, tc := range []struct{ name, doc, want string }{
		{"good", good, permitted},
		{"spaced", " \n" + good + "\t", permitted},
		{"escaped", with(`"tool"`, `"t\u006Fol"`), permitted},
		{"pair-of-surrogates", with(`{"entry_id"`, `{"filter":{"owner":"\uD83D\ude00"},"entry_id"`), permitted},
		{"backslash-before-u", with(`{"entry_id"`, `{"filter":{"owner":"\\ud800"},"entry_id"`), permitted},
		{"colon-and-brackets-in-a-text", with(`{"entry_id"`, `{"filter":{"owner":"a:b{[\":"},"entry_id"`), permitted},
		{"number-in-another-spelling", with(`}}`, `,"version":90e-1}}`), permitted},
		{"exponent-at-the-limit", with(`}}`, `,"weight":1e-512}}`), permitted},
		{"question", `{"type":"final_answer","answer":"?","needs_more_info":true}`, askedBack},

		{"empty", "", refused},
		{"list", "[" + good + "]", refused},
		{"twice", good + good, refused},
		{"behind", good + "x", refused},
		{"duplicate", with(`"tool"`, `"tool":"x","tool"`), refused},
		{"duplicate-escaped", with(`"tool"`, `"t\u006fol":"x","tool"`), refused},
		{"duplicate-deep", with(`{"entry_id"`, `{"filter":{"owner":"a","owner":"a"},"entry_id"`), refused},
		{"lone-high", with("entry-002", `\ud800`), refused},
		{"lone-low", with("entry-002", `\udc00`), refused},
		{"halves-reversed", with(`{"entry_id"`, `{"filter":{"owner":"\ude00\ud83d"},"entry_id"`), refused},
		{"lone-high-at-the-end", with("entry-002", `entry-002\udbff`), refused},
		{"not-utf8", with("entry-002", "\xff"), refused},
		{"too-deep", with(`{"entry_id"`, `{"filter":`+nested(64)+`,"entry_id"`), refused},
		{"another-case", with(`"tool"`, `"Tool"`), refused},
		{"not-allowed", with("fetch_entry", "delete_entry"), refused},
		{"server-of-another", with(`"kb"`, `"desk"`), refused},
		{"closed-world", with(`}}`, `,"x":1}}`), refused},
		{"version-broken", with(`}}`, `,"version":1.5}}`), refused},
		{"weight-just-above", with(`}}`, `,"weight":1.00000000000000000001}}`), refused},
		{"exponent-one-past", with(`}}`, `,"weight":1e-513}}`), refused},
		{"number-too-long", with(`}}`, `,"weight":0.`+strings.Repeat("1", 255)+`}}`), refused},
		{"question-that-is-none", `{"type":"final_answer","answer":"?","needs_more_info":false}`, refused},
		{"question-blank", `{"type":"final_answer","answer":"\u200b","needs_more_info":true}`, refused},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := read([]byte(tc.doc)).want; got != tc.want {
				t.Errorf("read(%s) = %s, want %s", tc.doc, got, tc.want)
			}
		})
	}
	r := read([]byte(good))
	if !r.calls(serverKB, toolFetch, []byte(`{ "entry_id": "entry-002" }`)) || r.calls(serverKB, toolFetch, []byte(`{"entry_id":"entry-003"}`)) ||
		r.calls(serverDesk, toolFetch, []byte(`{"entry_id":"entry-002"}`)) || r.calls(serverKB, toolFetch, []byte(`{`)) {
		t.Error("calls() does not tell the plan's call from others")
	}
}

// TestSecondReaderAgreesWithTheTable: for every case of plan_parse the second reader gives the answer of the table.
func TestSecondReaderAgreesWithTheTable(t *testing.T) {
	plans, err := load[parseCase]("plan_parse")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range plans {
		doc, err := c.bytes()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{policy.PlanCallTool: permitted, policy.PlanFinalAnswer: askedBack}[c.Want]
		if want == "" {
			want = refused
		}
		if got := readShape(doc).want; got != want {
			t.Errorf("plan_parse %s: the second reader says %s, the table %s", c.ID, got, c.Want)
		}
	}
}
