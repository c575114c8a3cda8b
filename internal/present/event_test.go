package present

import (
	"strings"
	"testing"

	"pgfsm/traces/ledger"
)

func TestEventLineMovesNoCursor(t *testing.T) {
	e := Event{Type: "x\x1b[2J", Run: "r\n", By: "b\u202e", Payload: []byte(`{"reason":"a\u001b[31m"}`)}
	e.Type = ledger.ApprovalDenied
	if got := e.Line(true); strings.ContainsAny(got, "\x1b\n\u202e") || !strings.Contains(got, `a\u001b[31m`) {
		t.Errorf("Line() = %q", got)
	}
}

func TestLinesHaveDetailsOfEveryType(t *testing.T) {
	for _, kind := range ledger.Types() {
		if kind != ledger.RunClaimed && kind != ledger.LedgerContinued && len(details[kind]) == 0 { // their types say all
			t.Errorf("a line about %s has no details", kind)
		}
	}
}

// TestEventsAreFoundByDisplayNames: of who asked, and of who voted.
func TestEventsAreFoundByDisplayNames(t *testing.T) {
	f := EventFilter{By: "alice"}
	for _, tt := range []struct {
		name, payload string
		kind          ledger.Type
		want          bool
	}{
		{"request", `{"request":{"actor":"https://x#1","identity":{"display":"alice"}}}`, ledger.RequestCreated, true},
		{"vote", `{"display":"alice"}`, ledger.ApprovalApproved, true},
		{"vote-of-another", `{"display":"bob","reason":"alice"}`, ledger.ApprovalApproved, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := f.Matches(&ledger.Event{Type: tt.kind, By: "https://x#1", Payload: []byte(tt.payload)}); got != tt.want {
				t.Errorf("Matches() = %t, want %t", got, tt.want)
			}
		})
	}
}

func TestValueAt(t *testing.T) {
	for _, c := range []struct{ name, doc, pointer, want string }{
		{"string", `{"a":"b\u0041"}`, "/a", "bA"},
		{"number", `{"a":{"b":1.50}}`, "/a/b", "1.50"},
		{"list", `{"a":["x"]}`, "/a", `["x"]`},
		{"nothing", `{"a":null}`, "/a/b", ""},
		{"no-member", `{"a":1}`, "/b", ""},
		{"of-no-object", `[1]`, "/0", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := valueAt([]byte(c.doc), c.pointer); got != c.want {
				t.Errorf("valueAt() = %q, want %q", got, c.want)
			}
		})
	}
}
