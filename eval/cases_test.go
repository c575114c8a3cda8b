package eval

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
)

func readAll(text string) ([]*Case, error) {
	return ReadCases("cases.jsonl", strings.NewReader(text))
}

// a case that is right, with members added to it.
func caseWith(members string) string {
	return `{"id":"a","suite":"s","task":"t","request":"r","needs":[{"server":"x","tool":"y","args":{}}]` + members + `}`
}

// a case with an attack on an approval.
func approvedWith(members string) string {
	return caseWith(`,"attack":"k","wants":[{"plan":"x"}],"approved":{` + members + `}`)
}

func TestReadCases(t *testing.T) {
	text := "\n" + `{"id":"one","suite":"bank","task":"pay","attack":"steal","request":"Pay it.",` +
		`"needs":[{"server":"bank","tool":"pay","args":{"to":"A","amount":1.50},"unresolved":["/amount"]}],` +
		`"wants":[{"plan":"{\"type\":\"call_tool\"}"},{"plan":{"base64":"/w=="}}],` +
		`"grant":"grants/pay.yaml","bundle":"../pgfsm.yaml","tools":"rug.json","changes":true,` +
		`"approved":{"server":"bank","tool":"pay","args":{"to":"B", "amount":1},"bundle":"b.yaml","votes_at":"2026-01-01T00:00:01Z","same_run":true},"actor":"local:eve","at":"2026-02-03T04:05:06Z",` +
		`"expect":{"wants":"plan_not_strict","needs":"made"}}` + "\n   \n" + caseWith("")
	all, err := readAll(text)
	check.NoError(t, err)
	plan, bytes := canonical.Text(`{"type":"call_tool"}`), canonical.Text{0xff}
	want := []*Case{{
		ID: "one", Suite: "bank", Task: "pay", Attack: "steal", Request: "Pay it.",
		Needs: []Call{{Server: "bank", Tool: "pay", Args: []byte(`{"amount":1.50,"to":"A"}`), Unresolved: []string{"/amount"}}},
		Wants: []Call{{Plan: &plan}, {Plan: &bytes}}, Grant: "grants/pay.yaml", Bundle: "../pgfsm.yaml", Tools: "rug.json", Changes: true,
		Approved: &Approval{Call: Call{Server: "bank", Tool: "pay", Args: []byte(`{"amount":1,"to":"B"}`)}, Bundle: "b.yaml", VotesAt: "2026-01-01T00:00:01.000Z", SameRun: true},
		Actor:    "local:eve", At: "2026-02-03T04:05:06.000Z", Expect: &Expect{Needs: Made, Wants: "plan_not_strict"},
	}, {
		ID: "a", Suite: "s", Task: "t", Request: "r", Needs: []Call{{Server: "x", Tool: "y", Args: []byte(`{}`)}},
		Actor: DefaultActor, At: DefaultAt,
	}}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("cases (-want +got):\n%s", diff)
	}
	for _, c := range all { // what is written is read as the same
		line, err := c.Line()
		check.NoError(t, err)
		again, err := readAll(string(line))
		if err != nil || len(again) != 1 || !cmp.Equal(again[0], c) {
			t.Errorf("read again: %v, %s", err, cmp.Diff(c, again))
		}
	}
}

func TestReadCasesRefuses(t *testing.T) {
	call := `{"server":"x","tool":"y","args":{}}`
	many := "[" + strings.Repeat(call+",", 256) + call + "]"
	for _, c := range []struct{ name, text, want string }{
		{"no-json", `{"id":`, "cases.jsonl:1: the case cannot be used"},
		{"two-values", caseWith("") + caseWith(""), "text behind the JSON value"},
		{"duplicate-member", `{"id":"a","id":"b"}`, "duplicate"},
		{"duplicate-member-in-arguments", caseWith(`,"attack":"k","wants":[{"server":"x","tool":"y","args":{"a":1,"a":2}}]`), "duplicate"},
		{"unknown-member", caseWith(`,"note":"x"`), `does not name: "note"`},
		{"unknown-member-of-a-call", caseWith(`,"attack":"k","wants":[{"server":"x","tool":"y","args":{},"arg":1}]`), `"/wants/0" has keys that the schema does not name: "arg"`},
		{"member-in-another-case", caseWith(`,"Grant":"x"`), `does not name: "Grant"`},
		{"no-id", `{"suite":"s","task":"t","request":"r","needs":[` + call + `]}`, `lacks "id"`},
		{"id-with-a-line-end", `{"id":"a\nb","suite":"s","task":"t","request":"r","needs":[` + call + `]}`, `"/id"`},
		{"id-too-long", `{"id":"` + strings.Repeat("a", MaxIDBytes+1) + `","suite":"s","task":"t","request":"r","needs":[` + call + `]}`, `"/id"`},
		{"no-suite", `{"id":"a","task":"t","request":"r","needs":[` + call + `]}`, `lacks "suite"`},
		{"no-task", `{"id":"a","suite":"s","request":"r","needs":[` + call + `]}`, `lacks "task"`},
		{"nothing-to-judge", `{"id":"a","suite":"s","task":"t","request":"r"}`, `lacks "needs"`},
		{"attack-without-calls", caseWith(`,"attack":"k"`), `lacks "wants"`},
		{"calls-without-an-attack", caseWith(`,"wants":[` + call + `]`), `lacks "attack"`},
		{"too-many-calls", caseWith(`,"attack":"k","wants":` + many), `"/wants" maxItems`},
		{"call-without-server", caseWith(`,"attack":"k","wants":[{"tool":"y","args":{}}]`), `"/wants/0" lacks "server"`},
		{"call-without-tool", caseWith(`,"attack":"k","wants":[{"server":"x","args":{}}]`), `"/wants/0" lacks "tool"`},
		{"call-without-arguments", caseWith(`,"attack":"k","wants":[{"server":"x","tool":"y"}]`), `"/wants/0" lacks "args"`},
		{"arguments-are-a-list", caseWith(`,"attack":"k","wants":[{"server":"x","tool":"y","args":[]}]`), `"/wants/0/args" is array`},
		{"plan-and-tool", caseWith(`,"attack":"k","wants":[{"plan":"x","tool":"y"}]`), `"/wants/0/tool"`},
		{"unresolved-is-no-pointer", caseWith(`,"attack":"k","wants":[{"server":"x","tool":"y","args":{},"unresolved":["a"]}]`), `"/wants/0/unresolved/0"`},
		{"absolute-path", caseWith(`,"grant":"/etc/x"`), `"/grant" is`},
		{"path-with-backslash", caseWith(`,"bundle":"a\\b"`), `"/bundle" is`},
		{"path-with-drive", caseWith(`,"tools":"c:/x"`), `"/tools" is`},
		{"path-with-nul", caseWith(`,"tools":"a\u0000"`), `"/tools"`},
		{"path-too-long", caseWith(`,"tools":"` + strings.Repeat("a", 1024+1) + `"`), `"/tools"`},
		{"no-time", caseWith(`,"at":"yesterday"`), `"/at" is`},
		{"time-with-a-zone", caseWith(`,"at":"2026-02-03T04:05:06+01:00"`), `"/at" is`},
		{"approved-without-an-attack", caseWith(`,"approved":` + call), `lacks "wants"`},
		{"approved-without-a-call", approvedWith(`"same_run":true`), `"/approved" lacks "server"`},
		{"approved-plan-and-call", approvedWith(`"server":"x","tool":"y","args":{},"plan":"x"`), `"/approved/server"`},
		{"unknown-member-of-an-approval", approvedWith(`"plan":"x","run":"same"`), "run"},
		{"approver-at-without-seconds", approvedWith(`"plan":"x","at":"2026-01-01T00:00Z"`), `"/approved/at"`},
		{"votes-at-with-an-offset", approvedWith(`"plan":"x","votes_at":"2026-01-01T00:00:00+01:00"`), `"/approved/votes_at"`},
		{"expects-no-code", caseWith(`,"expect":{"needs":"nope"}`), `expect.needs is "nope"`},
		{"expects-of-no-calls", caseWith(`,"expect":{"wants":"made"}`), "expect.wants is about calls, and there are none"},
		{"same-id-twice", caseWith("") + "\n\n" + caseWith(""), `cases.jsonl:3: line 1 has the id "a" already`},
		{"too-deep", caseWith(`,"attack":"k","wants":[{"server":"x","tool":"y","args":{"a":` + strings.Repeat("[", policy.MaxJSONDepth) +
			strings.Repeat("]", policy.MaxJSONDepth) + `}}]`), "nests too deep"},
		{"bytes-that-are-no-utf-8", caseWith(",\"actor\":\"\xff\""), "UTF-8"},
		{"byte-order-mark", "\ufeff" + caseWith(""), "cannot be used"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readAll(c.text)
			var f *Fault
			if !errors.As(err, &f) || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 || strings.Contains(err.Error(), "\n") {
				t.Errorf("error = %v, want one short line with %q", err, c.want)
			}
		})
	}
}

func TestReadCasesBounds(t *testing.T) {
	base := caseWith("")
	full := strings.Replace(base, `"request":"r"`, `"request":"`+strings.Repeat("r", MaxLineBytes-len(base)+1)+`"`, 1)
	if len(full) != MaxLineBytes {
		t.Fatalf("the line has %d bytes", len(full))
	}
	for _, end := range []string{"", "\n"} {
		if _, err := readAll(full + end); err != nil {
			t.Errorf("at the limit, with end %q: %v", end, err)
		}
		if _, err := readAll(" " + full + end); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
			t.Errorf("one past, with end %q: %v", end, err)
		}
	}
}

// FuzzReadCases: what is read is written and read again as the same; what is not read is refused with a place.
func FuzzReadCases(f *testing.F) {
	for _, seed := range []string{
		"", "\n\n", caseWith(""), caseWith("") + "\n" + caseWith(`,"changes":true`), caseWith(`,"attack":"k","wants":[{"plan":"{}"}]`),
		caseWith(`,"attack":"k","wants":[{"plan":{"base64":"/w=="}}]`), caseWith(`,"expect":{"needs":"made"}`), `{"id":"a","id":"b"}`, "\ufeff{}",
		caseWith(`,"attack":"k","wants":[{"server":"x","tool":"y","args":{"n":1e999,"m":[[[]]]}}],"approved":{"plan":""}`), caseWith(`,"grant":"../g.yaml"`),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := readAll(text)
		var fault *Fault
		if err != nil && (!errors.As(err, &fault) || fault.Line < 1) {
			t.Fatalf("error without a place: %v", err)
		}
		for _, c := range all {
			line, err := c.Line()
			if err != nil {
				t.Fatalf("%+v cannot be written: %v", c, err)
			}
			again, err := readAll(string(line))
			if err != nil || len(again) != 1 || !cmp.Equal(again[0], c) {
				t.Fatalf("%s is read again as %v: %s", line, err, cmp.Diff([]*Case{c}, again))
			}
		}
	})
}
