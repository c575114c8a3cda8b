package storetest

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/traces/ledger"
)

// choice fills a store with requests to choose from.
func choice(t *testing.T, s ledger.Store) {
	t.Helper()
	large := entry(1, id(1))
	large.Body = jsontext.Value(`{"events":[{"call":{"args":{"note":"Quarterly REPORT of Žofie","nul":"\u0000"}}}]}`)
	update(t, s, func(tx ledger.Tx) error {
		return errors.Join(add(tx, large), addRuns(tx,
			row(4, ledger.RunRow{At: later, Status: ledger.Pending, Actor: "ann", Task: "t1", Server: "files", Tool: "read", Binding: digest("b"),
				Policy: "asks", Args: `{"path":"/srv/Report.txt"}`}),
			row(1, ledger.RunRow{At: early, Status: ledger.Executed, Actor: "ann", Task: "t1", Server: "files", Tool: "read", Sent: early, Ended: early,
				Policy: "reads", Args: ledger.ArgsInEntry}),
			row(2, ledger.RunRow{At: early, Status: ledger.Denied, Actor: "ann", Task: "t2", Server: "files", Tool: "write", Ended: early,
				Policy: "writes", Code: "policy_denied", Args: `{"say":"\"hi\" 100%","to":"C:\\a_b"}`}),
			row(3, ledger.RunRow{At: later, Status: ledger.Allowed, Actor: "bob", Display: "ann", Task: "t1", Server: "mail", Tool: "read", Sent: later,
				Session: "claude/s-1", ClientCall: "c-1"}),
			row(5, ledger.RunRow{At: late, Status: ledger.Proposed, Actor: "bob", Session: "claude/s-1", ClientCall: "c-2"}),
			row(6, ledger.RunRow{At: late, Status: ledger.Indeterminate, Actor: "ann", Task: "t1", Server: "files", Tool: "read", Sent: late, Ended: late, Binding: digest("b"),
				Policy: "asks", Code: "indeterminate", Args: ledger.ArgsInEntry}), // its entry is missing
		))
	})
}

func filters(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	choice(t, s)
	for _, tc := range []struct {
		name string
		f    ledger.Filter
		want []int
	}{
		{"all-oldest-first", ledger.Filter{}, []int{1, 2, 3, 4, 5, 6}},
		{"newest-first", ledger.Filter{Newest: true}, []int{6, 5, 4, 3, 2, 1}},
		{"limit", ledger.Filter{Limit: 2}, []int{1, 2}},
		{"session", ledger.Filter{Session: "claude/s-1"}, []int{3, 5}},
		{"call-of-a-session", ledger.Filter{Session: "claude/s-1", ClientCall: "c-2", Limit: 1}, []int{5}},
		{"session-of-none", ledger.Filter{Session: "claude"}, nil},
		{"limit-of-all", ledger.Filter{Limit: 6}, []int{1, 2, 3, 4, 5, 6}},
		{"newest-limit", ledger.Filter{Newest: true, Limit: 2}, []int{6, 5}},
		{"after", ledger.Filter{After: id(4)}, []int{5, 6}},
		{"after-none", ledger.Filter{After: id(6)}, nil},
		{"after-newest-limit", ledger.Filter{After: id(2), Newest: true, Limit: 3}, []int{6, 5, 4}},
		{"before", ledger.Filter{Before: id(3)}, []int{1, 2}},
		{"before-none", ledger.Filter{Before: id(1)}, nil},
		{"short-id-of-none", ledger.Filter{Short: "ffff"}, nil},
		{"before-newest-limit", ledger.Filter{Before: id(5), Newest: true, Limit: 2}, []int{4, 3}},
		{"one-status", ledger.Filter{Statuses: []ledger.Status{ledger.Denied}}, []int{2}},
		{"two-statuses", ledger.Filter{Statuses: []ledger.Status{ledger.Pending, ledger.Executed}}, []int{1, 4}},
		{"status-of-none", ledger.Filter{Statuses: []ledger.Status{ledger.Approved}}, nil},
		{"open", ledger.Filter{Open: true}, []int{3, 4, 5}},
		{"held", ledger.Filter{Held: true}, []int{4, 6}},
		{"held-newest-limit", ledger.Filter{Held: true, Newest: true, Limit: 1}, []int{6}},
		{"held-and-denied", ledger.Filter{Held: true, Statuses: []ledger.Status{ledger.Denied}}, nil},
		{"held-of-two-statuses", ledger.Filter{Held: true, Statuses: []ledger.Status{ledger.Denied, ledger.Indeterminate}}, []int{6}},
		{"held-and-open", ledger.Filter{Held: true, Open: true}, []int{4}},
		{"held-after", ledger.Filter{Held: true, After: id(4)}, []int{6}},
		{"actor", ledger.Filter{Actor: "bob"}, []int{3, 5}},
		{"actor-in-other-case", ledger.Filter{Actor: "Bob"}, nil},
		{"actor-or-display-name", ledger.Filter{Who: "ann"}, []int{1, 2, 3, 4, 6}},
		{"display-name-of-none", ledger.Filter{Who: "cat"}, nil},
		{"task", ledger.Filter{Task: "t1"}, []int{1, 3, 4, 6}},
		{"server", ledger.Filter{Server: "mail"}, []int{3}},
		{"tool", ledger.Filter{Tool: "read"}, []int{1, 3, 4, 6}},
		{"policy", ledger.Filter{Policy: "asks"}, []int{4, 6}},
		{"code", ledger.Filter{Code: "policy_denied"}, []int{2}},
		{"policy-and-code", ledger.Filter{Policy: "asks", Code: "indeterminate"}, []int{6}},
		{"until-is-exclusive", ledger.Filter{Until: later}, []int{1, 2}},
		{"since-and-until", ledger.Filter{Since: later, Until: late}, []int{3, 4}},
		{"text-in-either-case", ledger.Filter{Text: "rePOrt"}, []int{1, 4}},
		{"text-in-a-row", ledger.Filter{Text: "/srv/"}, []int{4}},
		{"text-in-an-entry", ledger.Filter{Text: "quarterly"}, []int{1}},
		{"text-beyond-ascii", ledger.Filter{Text: "OF Žofie"}, []int{1}},
		{"text-beyond-ascii-in-other-case", ledger.Filter{Text: "žofie"}, nil},
		{"text-is-no-pattern", ledger.Filter{Text: "%"}, []int{2}},
		{"text-is-no-pattern-of-one", ledger.Filter{Text: "a_b"}, []int{2}},
		{"text-as-in-json", ledger.Filter{Text: `\"HI\"`}, []int{2}},
		{"text-is-not-a-reference", ledger.Filter{Text: "@"}, nil},
		{"text-newest-limit", ledger.Filter{Text: "report", Newest: true, Limit: 1}, []int{4}},
		{"since-is-inclusive", ledger.Filter{Since: later}, []int{3, 4, 5, 6}},
		{"counted", ledger.Filter{Counted: true}, []int{1, 3, 4, 5, 6}},
		{"counted-calls-of-actor", ledger.Filter{Counted: true, Actor: "ann", Server: "files", Tool: "read", Since: later}, []int{4, 6}},
		{"counted-calls-of-task", ledger.Filter{Counted: true, Task: "t1", Server: "files", Tool: "read"}, []int{1, 4, 6}},
		{"counted-of-task-with-denial", ledger.Filter{Counted: true, Task: "t2"}, nil},
		{"open-of-actor-newest", ledger.Filter{Open: true, Actor: "bob", Newest: true}, []int{5, 3}},
		{"status-and-actor", ledger.Filter{Statuses: []ledger.Status{ledger.Pending, ledger.Allowed}, Actor: "ann"}, []int{4}},
		{"everything-at-once", ledger.Filter{
			Statuses: []ledger.Status{ledger.Pending, ledger.Executed}, Open: true, Actor: "ann", Task: "t1", Server: "files", Tool: "read",
			Policy: "asks", Since: later, Until: late, Text: "report", Counted: true, After: id(1), Before: id(6), Newest: true, Limit: 9,
		}, []int{4}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			view(t, s, func(r ledger.Reader) { wantEqual(t, "runs", tc.want, runs(list(t, r.Runs(tc.f)))) })
		})
	}
	findsRuns(t, s)
}

// findsRuns looks for runs by the last characters of their ids.
func findsRuns(t *testing.T, s ledger.Store) {
	t.Helper()
	const one, other = "01a217a1-1f5b-748e-9ba1-41e0562c29e3", "01a217a1-17ad-7b56-b58c-2559562c2a00"
	first, second := request(7), request(8)
	first.RunID, second.RunID = one, other
	update(t, s, func(tx ledger.Tx) error { return addRuns(tx, first, second) })
	for text, want := range map[string]string{ // in any order
		"562c29e3": one, "562c29": one, "562c2a00": other, "41e0562c29e3": "41e0562c29e3", "29e3": "29e3", "562": "562", one: one,
	} {
		view(t, s, func(r ledger.Reader) {
			if got, err := ledger.FindRun(r, text); err != nil || got != want {
				t.Errorf("FindRun(%s) = %s, %v, want %s", text, got, err, want)
			}
		})
	}
	view(t, s, func(r ledger.Reader) {
		if _, err := ledger.FindRun(r, "562c"); !errors.Is(err, ledger.ErrUnknown) {
			t.Errorf("FindRun() of two runs = %v, want %v", err, ledger.ErrUnknown)
		}
	})
}
