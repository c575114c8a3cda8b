package present_test

import (
	"slices"
	"strings"
	"testing"

	"pgfsm/internal/present"
	"pgfsm/traces/ledger"
)

func TestDisplayEscapesWhatDoesNotShow(t *testing.T) {
	got, err := present.Display([]byte("{\"a\":\"x\u202Ey\\u001b[2J\u200b\"}"))
	if err != nil || strings.ContainsAny(got, "\u202E\x1b\u200b") || !strings.Contains(got, `\u202e`) {
		t.Errorf("Display() = %q, %v", got, err)
	}
}

func TestStanding(t *testing.T) {
	const now = "2026-11-21T09:00:00.000Z"
	for _, c := range []struct {
		name string
		q    ledger.RunRow
		want string
	}{
		{"executed", ledger.RunRow{Status: ledger.Executed, Quorum: 2}, "executed"},
		{"pending", ledger.RunRow{Status: ledger.Pending, Quorum: 2, Agreed: 1, Approvers: []string{"owners", "security"},
			Expires: "2026-11-21T09:00:01.000Z"}, "pending, 1 of 2 by owners or security, until 2026-11-21T09:00:01.000Z"},
		{"any-approver", ledger.RunRow{Status: ledger.Pending, Quorum: 1, Expires: "2026-11-21T09:00:01.000Z"},
			"pending, 0 of 1, until 2026-11-21T09:00:01.000Z"},
		{"overdue", ledger.RunRow{Status: ledger.Pending, Quorum: 1, Expires: now}, "pending, 0 of 1, expired " + now},
		{"approver-with-controls", ledger.RunRow{Status: ledger.Pending, Quorum: 1, Approvers: []string{"\x1b[2J"}, Expires: now},
			`pending, 0 of 1 by \u001b[2J, expired ` + now},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := present.NewRun(&c.q)
			if got := run.StatusText(now); got != c.want {
				t.Errorf("Standing() = %q, want %q", got, c.want)
			}
		})
	}
}

// People see for whom an agent asks: a vote decides about that person's request, too.
func TestRowsSayForWhomAnAgentAsks(t *testing.T) {
	for _, person := range []string{"", "https://login.example.com#eve"} {
		run := present.NewRun(&ledger.RunRow{Actor: "https://login.example.com#app", OnBehalfOf: person})
		approval, details := present.Approval{Request: run}, present.Details{Request: run}
		for what, rows := range map[string][]present.Row{"Approval": approval.Rows(""), "Details": details.Rows(nil, "")} { // in any order
			has := slices.Contains(rows, present.Row{Name: "On behalf of", Value: person})
			if has != (person != "") || person == "" && slices.ContainsFunc(rows, func(r present.Row) bool { return r.Name == "On behalf of" }) {
				t.Errorf("%s for %q: %v", what, person, rows)
			}
		}
	}
}

// TestShortName: the end of a name stays, also behind a long display name.
func TestShortName(t *testing.T) {
	const subject = "https://login.example.com/realms/corp#8f1c2d3e"
	for _, tc := range []struct {
		name, subject, display string
		width                  int
		want                   string
	}{
		{"fits", "https://x#1", "alice", 19, "alice (https://x#1)"},
		{"subject-alone", subject, "", 12, "…rp#8f1c2d3e"},
		{"display-name", subject, "alice@example.com", 30, "alice@example.com (…8f1c2d3e)"},
		{"display-name-too-long", subject, "alice@example.com", 20, "alice@e… (…8f1c2d3e)"},
		{"hidden-characters", subject, "a\u202eb", 30, `a\u202eb (…8f1c2d3e)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := present.ShortName(tc.subject, tc.display, tc.width); got != tc.want {
				t.Errorf("ShortName() = %q, want %q", got, tc.want)
			}
		})
	}
}

// TestSameDisplay: a name that several actors have is said to be one.
func TestSameDisplay(t *testing.T) {
	run := func(actor string) present.Run { return present.Run{Call: present.Call{Actor: actor}} }
	if got := present.SameDisplay("alice", []present.Run{run("x#2"), run("x#1"), run("x#2")}); !strings.Contains(got, "alice is the name of 2 actors of these runs: x#1, x#2.") {
		t.Errorf("two actors: %q", got)
	}
	for name, got := range map[string]string{
		"one-actor": present.SameDisplay("alice", []present.Run{run("x#1"), run("x#1")}),
		"no-filter": present.SameDisplay("", []present.Run{run("x#1"), run("x#2")}),
	} {
		if got != "" {
			t.Errorf("%s: %q, want nothing", name, got)
		}
	}
}
