package policy

import (
	"fmt"
	"slices"
	"strings"

	"pgfsm/policy/canonical"
)

// Outcomes of a vote. Every other word denies.
const (
	VoteApprove = "approve"
	VoteDeny    = "deny"
)

// A Vote is what one person says about a held call.
type Vote struct {
	At      string           `json:"at"` // RFC 3339, UTC
	Binding canonical.Digest `json:"binding"`
	By      string           `json:"by"`
	Outcome string           `json:"outcome"`
	Reason  string           `json:"reason"`
}

// Held is a call that waits for people, as far as their votes are judged by it.
type Held struct {
	Actor     string // who asked
	Approvers []string
	Binding   canonical.Digest
	Expires   string // 2006-01-02T15:04:05Z; empty has passed
	Quorum    int
}

// Eligible says whether a person may decide about a held call: not about their own, and only in one of the roles that
// the policy names. Roles are those of the bundle that the call was judged by.
func (b *Bundle) Eligible(h *Held, by string) Verdict {
	mine := func(role string) bool { return slices.Contains(h.Approvers, role) }
	switch {
	case by == "" || SamePerson(by, h.Actor):
		return blocked(GateApproval, CodeApprovalMismatch, "Nobody decides about their own request.")
	case len(h.Approvers) > 0 && !slices.ContainsFunc(b.RolesOf(by), mine):
		return blocked(GateApproval, CodeApprovalMismatch,
			fmt.Sprintf("%s has none of the roles that may decide: %s.", clip(by), strings.Join(h.Approvers, ", ")))
	}
	return allowed(GateApproval, "They may decide.")
}

// Agreed judges the votes about a held call as of a time. One denial denies. As many different people as the quorum says,
// each of whom may decide, agree. A vote about anything else, or too late, spoils the whole: it should not have been taken.
func (b *Bundle) Agreed(h *Held, at string, votes []Vote) Verdict {
	var by []string
	for i := range votes {
		v := &votes[i]
		switch {
		case v.Binding != h.Binding:
			return blocked(GateApproval, CodeApprovalMismatch, "The decision is about something else than this call.")
		case v.Outcome != VoteApprove:
			return blocked(GateApproval, CodeApprovalDenied, "Denied by "+v.By+": "+v.Reason)
		case !Before(v.At, h.Expires):
			return blocked(GateApproval, CodeApprovalExpired, "The decision came after the request had expired.")
		}
		if verdict := b.Eligible(h, v.By); !verdict.Allows() {
			return verdict
		}
		if !slices.ContainsFunc(by, func(other string) bool { return SamePerson(other, v.By) }) {
			by = append(by, v.By)
		}
	}
	switch {
	case len(by) >= max(h.Quorum, 1):
		return allowed(GateApproval, "Approved by "+strings.Join(by, ", ")+".")
	case !Before(at, h.Expires):
		return blocked(GateApproval, CodeApprovalExpired, "Nobody decided in time; the request expired at "+h.Expires+".")
	}
	return blocked(GateApproval, CodeApprovalMismatch,
		fmt.Sprintf("%d of %d people have agreed.", len(by), max(h.Quorum, 1)))
}

// LocalUser is what stands before the name of an actor who is known as a user of the operating system and not by a token.
const LocalUser = "local:"

// TimeForm is the one form of every time that is recorded and compared, as package time writes it: RFC 3339, UTC, whole
// seconds, so that times are ordered as their text is.
const TimeForm = "2006-01-02T15:04:05Z"

// SamePerson reports whether two names mean one person: letter case does not make another, nor does it matter whether a
// name is that of a user of the operating system or of a token.
func SamePerson(a, b string) bool {
	return strings.EqualFold(strings.TrimPrefix(a, LocalUser), strings.TrimPrefix(b, LocalUser))
}

// Before compares two times of the one form, [TimeForm]. Anything else is never before anything: the zero
// expiry has passed.
func Before(at, expires string) bool {
	const form = len(TimeForm)
	return len(at) == form && len(expires) == form && at[form-1] == 'Z' && expires[form-1] == 'Z' && at < expires
}
