package policy_test

import (
	"strings"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
)

var (
	boundHere  = canonical.Sum("binding", []byte("this call"))
	boundThere = canonical.Sum("binding", []byte("another call"))
)

// The times of the tests: a vote, the last second in which one counts, and the expiry.
const (
	voted   = "2026-11-21T09:00:00.000Z"
	atLast  = "2026-11-21T09:59:59.000Z"
	expires = "2026-11-21T10:00:00.000Z"
)

// councilBundle has owners and auditors; "ALICE" is not "alice" to roles.
func councilBundle(t *testing.T) *policy.Bundle {
	t.Helper()
	b, err := policy.Compile(policy.Content{
		Format: policy.ContentFormat, Input: policy.Input{MaxBytes: policy.DefaultInputBytes}, Limits: policy.DefaultLimits(),
		Planner: policy.Planner{Mode: policy.PlannerRouter}, Summary: policy.SummaryNever,
		Roles: []policy.Role{
			{Role: "owners", Actors: []string{"alice", "bob", "local:dave", "carol"}}, {Role: "auditors", Actors: []string{"erin", "alice"}},
		},
	})
	check.NoError(t, err)
	return b
}

func heldCall(change func(*policy.Held)) *policy.Held {
	h := &policy.Held{Actor: "carol", Approvers: []string{"owners"}, Binding: boundHere, Expires: expires, Quorum: 1}
	if change != nil {
		change(h)
	}
	return h
}

func yes(by string) policy.Vote {
	return policy.Vote{At: voted, Binding: boundHere, By: by, Outcome: policy.VoteApprove, Reason: "as agreed"}
}

func vote(by string, change func(*policy.Vote)) policy.Vote {
	v := yes(by)
	change(&v)
	return v
}

func TestAgreed(t *testing.T) {
	quorum := func(n int) func(*policy.Held) { return func(h *policy.Held) { h.Quorum = n } }
	list := func(votes ...policy.Vote) []policy.Vote { return votes }
	no := func(v *policy.Vote) { v.Outcome, v.Reason = policy.VoteDeny, "not now" }
	tests := []struct {
		name   string
		held   func(*policy.Held)
		at     string
		votes  []policy.Vote
		code   policy.Code // empty: allowed
		reason string
	}{
		{"one-of-one", nil, voted, list(yes("alice")), "", "Approved by alice."},
		{"two-of-two", quorum(2), voted, list(yes("alice"), yes("bob")), "", "alice, bob"},
		{"one-of-two", quorum(2), voted, list(yes("alice")), policy.CodeApprovalMismatch, "1 of 2"},
		{"nobody", nil, voted, nil, policy.CodeApprovalMismatch, "0 of 1"},
		{"quorum-of-zero-is-one", quorum(0), voted, nil, policy.CodeApprovalMismatch, "0 of 1"},

		{"same-person-twice", quorum(2), voted, list(yes("alice"), yes("alice")), policy.CodeApprovalMismatch, "1 of 2"},
		{"another-spelling-has-no-role", quorum(2), voted, list(yes("alice"), yes("ALICE")), policy.CodeApprovalMismatch, "ALICE has none"},
		{"two-people-where-anybody-may", func(h *policy.Held) { h.Approvers, h.Quorum = nil, 2 }, voted,
			list(yes("alice"), yes("mallory")), "", "mallory"},

		{"denied", nil, voted, list(vote("alice", no)), policy.CodeApprovalDenied, "Denied by alice: not now"},
		{"unknown-outcome-denies", nil, voted, list(vote("alice", func(v *policy.Vote) { v.Outcome = "Approve" })), policy.CodeApprovalDenied, ""},
		{"zero-vote", nil, voted, list(policy.Vote{}), policy.CodeApprovalMismatch, "not for this call"},

		{"another-binding", nil, voted, list(vote("alice", func(v *policy.Vote) { v.Binding = boundThere })), policy.CodeApprovalMismatch, "not for this call"},
		{"one-of-another-binding-spoils-all", nil, voted, list(yes("alice"), vote("bob", func(v *policy.Vote) { v.Binding = boundThere })),
			policy.CodeApprovalMismatch, "not for this call"},

		{"own-request", nil, voted, list(yes("carol")), policy.CodeApprovalMismatch, "own request"},
		{"by-nobody", nil, voted, list(yes("")), policy.CodeApprovalMismatch, "own request"},

		{"at-the-expiry", nil, expires, list(vote("alice", func(v *policy.Vote) { v.At = expires })), policy.CodeApprovalExpired, "after the request had expired"},
		{"nobody-in-time", nil, expires, nil, policy.CodeApprovalExpired, "expired at " + expires},
		{"too-few-one-second-left", quorum(2), atLast, list(yes("alice")), policy.CodeApprovalMismatch, "1 of 2"},
		{"judged-later-than-decided", nil, "2027-01-01T00:00:00.000Z", list(yes("alice")), "", "alice"},
		{"no-expiry-has-passed", func(h *policy.Held) { h.Expires = "" }, voted, list(yes("alice")), policy.CodeApprovalExpired, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := councilBundle(t).Agreed(heldCall(tt.held), tt.at, tt.votes)
			if v.Allows() != (tt.code == "") || v.Code != tt.code || !strings.Contains(v.Reason, tt.reason) || v.Gate != policy.GateApproval {
				t.Errorf("Agreed() = %+v, want code %q, reason … %s", v, tt.code, tt.reason)
			}
		})
	}
	if v := new(policy.Bundle).Agreed(&policy.Held{}, voted, []policy.Vote{{At: voted, By: "alice", Outcome: policy.VoteApprove}}); v.Allows() {
		t.Errorf("the zero value agrees: %+v", v)
	}
}

func TestEligible(t *testing.T) {
	roles := func(names ...string) func(*policy.Held) { return func(h *policy.Held) { h.Approvers = names } }
	for _, tt := range []struct {
		name string
		held func(*policy.Held)
		by   string
		want bool
	}{
		{"role", nil, "alice", true},
		{"local-user-with-role", nil, "local:dave", true},
		{"local-user-by-another-name", nil, "dave", false}, // roles are of names as they are verified
		{"one-of-two-roles", roles("auditors", "owners"), "bob", true},
		{"anybody", roles(), "mallory", true},
		{"anybody-but-who-asked", roles(), "carol", false},
		{"anybody-but-who-asked-as-local-user", roles(), "local:CAROL", false},
		{"nobody", roles(), "", false},
		{"local-nobody", roles(), "local:", true}, // a name like another: no token and no user has it
		{"who-asked-is-nobody", func(h *policy.Held) { h.Actor, h.Approvers = "", nil }, "local:", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := councilBundle(t).Eligible(heldCall(tt.held), tt.by, nil)
			if v.Allows() != tt.want || !tt.want && v.Code != policy.CodeApprovalMismatch {
				t.Errorf("Eligible(%q) = %+v, want %t", tt.by, v, tt.want)
			}
		})
	}
}

func TestSamePerson(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"alice", "alice", true},
		{"alice", "Alice", true},
		{"alice", "local:alice", true},
		{"local:Alice", "alice", true},
		{"local:alice", "local:ALICE", true},
		{"Ärger", "äRGER", true},
		{"K", "\u212a", true}, // the Kelvin sign folds to k
		{"alice", "alice ", false},
		{"alice", "bob", false},
		{"alice", "LOCAL:alice", false}, // no token may begin so, and the system's users begin with local:
		{"local:local:alice", "alice", false},
		{"", "", true},
		{"", "alice", false},
	} {
		if got := policy.SamePerson(tt.a, tt.b); got != tt.want {
			t.Errorf("SamePerson(%q, %q) = %t", tt.a, tt.b, got)
		}
		if got := policy.SamePerson(tt.b, tt.a); got != tt.want {
			t.Errorf("SamePerson(%q, %q) = %t", tt.b, tt.a, got)
		}
	}
}

func TestBefore(t *testing.T) {
	for _, tt := range []struct {
		name, at, expires string
		want              bool
	}{
		{"earlier", voted, expires, true},
		{"one-second-earlier", atLast, expires, true},
		{"same", expires, expires, false},
		{"no-expiry", voted, "", false},
		{"no-time", "", expires, false},
		{"one-millisecond-earlier", "2026-11-21T09:59:59.999Z", expires, true},
		{"expiry-in-whole-seconds", voted, "2026-11-21T10:00:00Z", false},
		{"time-in-whole-seconds", "2026-11-21T09:00:00Z", expires, false},
		{"expiry-in-microseconds", voted, "2026-11-21T10:00:00.000000Z", false},
		{"time-of-the-length-without-z", "2026-11-21T09:00:00.000 ", expires, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := policy.IsBefore(tt.at, tt.expires); got != tt.want {
				t.Errorf("Before(%q, %q) = %t", tt.at, tt.expires, got)
			}
		})
	}
}
