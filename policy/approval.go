package policy

import (
	"fmt"
	"slices"
	"strings"

	"pgfsm/internal/canonical"
	"pgfsm/policy/condition"
)

// Outcomes of a vote. Every other word denies.
const (
	VoteApprove = "approve"
	VoteDeny    = "deny"
)

// A Vote is one approver's decision about a held call.
type Vote struct {
	At      string           `json:"at"` // RFC 3339, UTC
	Binding canonical.Digest `json:"binding"`
	By      string           `json:"by"`
	// The approver's name for people; nothing is decided by it.
	Display string `json:"display,omitempty"`
	// The approver's, as far as [Bundle.RoleGroups] returns them.
	Groups  []string `json:"groups,omitempty"`
	Outcome string   `json:"outcome"`
	Reason  string   `json:"reason"`
}

// Equal reports whether two votes are the same.
func (v Vote) Equal(w Vote) bool {
	return v.At == w.At && v.Binding == w.Binding && v.By == w.By && v.Display == w.Display &&
		slices.Equal(v.Groups, w.Groups) && v.Outcome == w.Outcome && v.Reason == w.Reason
}

// Voter is the approver's name for people.
func (v Vote) Voter() string { return FullName(v.By, v.Display) }

// Denied is the reason of a call that the vote denied.
func (v Vote) Denied() string { return "Denied by " + v.Voter() + ": " + v.Reason }

// Held describes a held call, as far as votes depend on it.
type Held struct {
	Actor      string // the requester
	OnBehalfOf string // the person for whom the requester acts; empty: nobody
	Approvers  []string
	Binding    canonical.Digest
	Expires    string // in [TimeForm]; an empty time is in the past
	Quorum     int
}

// Eligible decides whether an approver may vote on a held call: not on their own call or on that of
// an agent that acts for them, and only with one of the roles that the policy names. Roles come
// from the bundle that judged the call; groups are those of the vote.
func (b *Bundle) Eligible(h *Held, by string, groups []string) Verdict {
	mayVote := func(role string) bool { return slices.Contains(h.Approvers, role) }
	switch {
	case by == "" || b.SamePerson(by, h.Actor):
		return blockedBy(GateApproval, CodeApprovalMismatch, "Requesters cannot decide about their own requests.")
	case h.OnBehalfOf != "" && b.SamePerson(by, h.OnBehalfOf):
		return blockedBy(GateApproval, CodeApprovalMismatch,
			"A person cannot decide about requests of agents that act for them.")
	case len(h.Approvers) > 0 && !slices.ContainsFunc(b.RolesOf(by, &Identity{Groups: &groups}), mayVote):
		return blockedBy(GateApproval, CodeApprovalMismatch,
			fmt.Sprintf("%s has none of the roles that may decide: %s.", clip(by), strings.Join(h.Approvers, ", ")))
	}
	return allowedBy(GateApproval, "This person may decide.")
}

// Agreed judges the votes on a held call at a time. One denial denies. The call is approved if as
// many different eligible approvers approve as the quorum requires. A vote on another call, or
// after the expiry, blocks the call: the ledger should not have accepted it.
func (b *Bundle) Agreed(h *Held, at string, votes []Vote) Verdict {
	var by, names []string
	for i := range votes {
		v := &votes[i]
		switch {
		case v.Binding != h.Binding:
			return blockedBy(GateApproval, CodeApprovalMismatch, "The decision is not for this call.")
		case v.Outcome != VoteApprove:
			return blockedBy(GateApproval, CodeApprovalDenied, v.Denied())
		case !IsBefore(v.At, h.Expires):
			return blockedBy(GateApproval, CodeApprovalExpired, "The decision came after the request had expired.")
		}
		if verdict := b.Eligible(h, v.By, v.Groups); !verdict.Allows() {
			return verdict
		}
		// Two votes of one person, under two names, count once.
		if !slices.ContainsFunc(by, func(other string) bool { return b.SamePerson(other, v.By) }) {
			by, names = append(by, v.By), append(names, v.Voter())
		}
	}

	switch {
	case len(by) >= max(h.Quorum, 1):
		return allowedBy(GateApproval, "Approved by "+strings.Join(names, ", ")+".")
	case !IsBefore(at, h.Expires):
		return blockedBy(GateApproval, CodeApprovalExpired,
			"Nobody decided in time; the request expired at "+h.Expires+".")
	}

	return blockedBy(GateApproval, CodeApprovalMismatch,
		fmt.Sprintf("%d of %d people have agreed.", len(by), max(h.Quorum, 1)))
}

// LocalUser prefixes the name of an actor who is identified as a user of the operating system, and
// not by a token.
const LocalUser = "local:"

// TimeForm is the layout of every recorded time, for package time: RFC 3339, UTC, milliseconds. Such
// times sort as text.
const TimeForm = condition.TimeForm

// SamePerson reports whether two names identify one person. It ignores letter case, and whether the
// name is that of a user of the operating system or of a token. [Bundle.SamePerson] also knows the
// names that the configuration gives to one person.
func SamePerson(a, b string) bool {
	return strings.EqualFold(strings.TrimPrefix(a, LocalUser), strings.TrimPrefix(b, LocalUser))
}

// IsBefore compares two times in [TimeForm]. It is false for anything else, so an empty expiry is
// in the past.
func IsBefore(at, expires string) bool {
	const form = len(TimeForm)
	return len(at) == form && len(expires) == form && at[form-1] == 'Z' && expires[form-1] == 'Z' && at < expires
}
