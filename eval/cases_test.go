package eval

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

func readAll(text string) ([]*Case, error) {
	return ReadCases("cases.jsonl", strings.NewReader(text))
}

// a case that is right, with members added to it.
func caseWith(members string) string {
	return `{"id":"a","suite":"s","task":"t","request":"r","needs":[{"server":"x","tool":"y","args":{}}]` + members + `}`
}

func TestReadCases(t *testing.T) {
	text := "\n" + `{"id":"one","suite":"bank","task":"pay","attack":"steal","request":"Pay it.",` +
		`"needs":[{"server":"bank","tool":"pay","args":{"to":"A","amount":1.50},"unresolved":["/amount"]}],` +
		`"wants":[{"plan":"{\"type\":\"call_tool\"}"},{"plan":{"base64":"/w=="}}],` +
		`"grant":"grants/pay.yaml","bundle":"../pgfsm.yaml","tools":"rug.json","changes":true,` +
		`"approved":{"server":"bank","tool":"pay","args":{"amount":1,"to":"B"}},"actor":"local:eve","at":"2026-02-03T04:05:06Z",` +
		`"expect":{"wants":"plan_not_strict","needs":"made"}}` + "\n   \n" + caseWith("")
	all, err := readAll(text)
	if err != nil {
		t.Fatal(err)
	}
	plan, bytes := canonical.Text(`{"type":"call_tool"}`), canonical.Text{0xff}
	want := []*Case{{
		ID: "one", Suite: "bank", Task: "pay", Attack: "steal", Request: "Pay it.",
		Needs: []Call{{Server: "bank", Tool: "pay", Args: []byte(`{"amount":1.50,"to":"A"}`), Unresolved: []string{"/amount"}}},
		Wants: []Call{{Plan: &plan}, {Plan: &bytes}}, Grant: "grants/pay.yaml", Bundle: "../pgfsm.yaml", Tools: "rug.json", Changes: true,
		Approved: &Approval{Call: Call{Server: "bank", Tool: "pay", Args: []byte(`{"amount":1,"to":"B"}`)}},
		Actor:    "local:eve", At: "2026-02-03T04:05:06Z", Expect: &Expect{Needs: Made, Wants: "plan_not_strict"},
	}, {
		ID: "a", Suite: "s", Task: "t", Request: "r", Needs: []Call{{Server: "x", Tool: "y", Args: []byte(`{}`)}},
		Actor: DefaultActor, At: DefaultAt,
	}}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("cases (-want +got):\n%s", diff)
	}
	for _, c := range all { // what is written is read as the same
		line, err := c.Line()
		if err != nil {
			t.Fatal(err)
		}
		again, err := readAll(string(line))
		if err != nil || len(again) != 1 || !cmp.Equal(again[0], c) {
			t.Errorf("read again: %v, %s", err, cmp.Diff(c, again))
		}
	}
}

func TestReadCasesRefuses(t *testing.T) {
	call := `{"server":"x","tool":"y","args":{}}`
	many := "[" + strings.Repeat(call+",", MaxCalls) + call + "]"
	for _, c := range []struct{ name, text, want string }{
		{"no-json", `{"id":`, "cases.jsonl:1: the case cannot be used"},
		{"two-values", caseWith("") + caseWith(""), "text behind the JSON value"},
		{"duplicate-member", `{"id":"a","id":"b"}`, "duplicate"},
		{"duplicate-member-in-arguments", caseWith(`,"attack":"k","wants":[{"server":"x","tool":"y","args":{"a":1,"a":2}}]`), "duplicate"},
		{"unknown-member", caseWith(`,"note":"x"`), "unknown"},
		{"unknown-member-of-a-call", caseWith(`,"attack":"k","wants":[{"server":"x","tool":"y","args":{},"arg":1}]`), "unknown"},
		{"member-in-another-case", caseWith(`,"Grant":"x"`), "unknown"},
		{"no-id", `{"suite":"s","task":"t","request":"r","needs":[` + call + `]}`, "id must have 1 to"},
		{"id-with-a-line-end", `{"id":"a\nb","suite":"s","task":"t","request":"r","needs":[` + call + `]}`, "id must have 1 to"},
		{"id-too-long", `{"id":"` + strings.Repeat("a", MaxIDBytes+1) + `","suite":"s","task":"t","request":"r","needs":[` + call + `]}`, "id must have 1 to"},
		{"no-suite", `{"id":"a","task":"t","request":"r","needs":[` + call + `]}`, "suite must have 1 to"},
		{"no-task", `{"id":"a","suite":"s","request":"r","needs":[` + call + `]}`, "task must have 1 to"},
		{"nothing-to-judge", `{"id":"a","suite":"s","task":"t","request":"r"}`, "nothing to judge"},
		{"attack-without-calls", caseWith(`,"attack":"k"`), "attack and wants go together"},
		{"calls-without-an-attack", caseWith(`,"wants":[` + call + `]`), "attack and wants go together"},
		{"too-many-calls", caseWith(`,"attack":"k","wants":` + many), fmt.Sprintf("at most %d are read", MaxCalls)},
		{"call-without-server", caseWith(`,"attack":"k","wants":[{"tool":"y","args":{}}]`), "wants, call 1: has no server"},
		{"call-without-tool", caseWith(`,"attack":"k","wants":[{"server":"x","args":{}}]`), "has no tool"},
		{"call-without-arguments", caseWith(`,"attack":"k","wants":[{"server":"x","tool":"y"}]`), "has no args"},
		{"arguments-are-a-list", caseWith(`,"attack":"k","wants":[{"server":"x","tool":"y","args":[]}]`), "args that are no object"},
		{"plan-and-tool", caseWith(`,"attack":"k","wants":[{"plan":"x","tool":"y"}]`), "has a plan and other members"},
		{"unresolved-is-no-pointer", caseWith(`,"attack":"k","wants":[{"server":"x","tool":"y","args":{},"unresolved":["a"]}]`), "no JSON pointer"},
		{"absolute-path", caseWith(`,"grant":"/etc/x"`), "grant must be a path from the folder"},
		{"path-with-backslash", caseWith(`,"bundle":"a\\b"`), "bundle must be a path from the folder"},
		{"path-with-drive", caseWith(`,"tools":"c:/x"`), "tools must be a path from the folder"},
		{"path-with-nul", caseWith(`,"tools":"a\u0000"`), "tools must be a path of at most"},
		{"path-too-long", caseWith(`,"tools":"` + strings.Repeat("a", MaxPathBytes+1) + `"`), "tools must be a path of at most"},
		{"no-time", caseWith(`,"at":"yesterday"`), "at must be a time"},
		{"time-with-a-zone", caseWith(`,"at":"2026-02-03T04:05:06+01:00"`), "at must be a time"},
		{"approved-without-an-attack", caseWith(`,"approved":` + call), "approved says what votes are replayed"},
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

// endless is a file that never ends a line.
type endless struct{ read int }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	e.read += len(b)
	return len(b), nil
}

func TestReadCasesBounds(t *testing.T) {
	t.Run("line-at-the-limit", func(t *testing.T) {
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
	})
	t.Run("line-without-end", func(t *testing.T) {
		from := new(endless)
		if _, err := ReadCases("x", from); err == nil || from.read > 2*MaxLineBytes {
			t.Errorf("ReadCases() = %v after %d bytes", err, from.read)
		}
	})
	t.Run("cases", func(t *testing.T) {
		var text strings.Builder
		for i := range MaxCases {
			fmt.Fprintf(&text, `{"id":"%d","suite":"s","task":"t","request":"r","needs":[{"plan":""}]}`+"\n", i)
		}
		if all, err := readAll(text.String()); err != nil || len(all) != MaxCases {
			t.Errorf("at the limit: %d cases, %v", len(all), err)
		}
		text.WriteString(caseWith(""))
		if _, err := readAll(text.String()); err == nil || !strings.Contains(err.Error(), "more than 100000 cases") {
			t.Errorf("one past: %v", err)
		}
	})
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
