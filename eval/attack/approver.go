package attack

import (
	"fmt"
	"slices"

	"pgfsm/eval/world"
	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
)

// decides gives the same decision about every call, with as many votes as the call needs.
func decides(outcome string) world.Approver {
	return func(run *states.Run, binding canonical.Digest) *states.Decided {
		return &states.Decided{At: run.Request().At, Binding: binding, Votes: votes(run, binding, outcome)}
	}
}

// expires lets the request for approval expire, because nobody answers it.
func expires(run *states.Run, binding canonical.Digest) *states.Decided {
	return &states.Decided{At: run.HeldCall().Expires, Binding: binding}
}

// votes returns the votes that a held call needs: as many as the quorum, each by another actor of a
// role that may decide, and none by the requester. If the bundle names too few actors, there are
// too few votes.
func votes(run *states.Run, binding canonical.Digest, outcome string) []policy.Vote {
	held := run.HeldCall()
	if held == nil {
		return nil
	}

	var actors []string
	if len(held.Approvers) == 0 {
		for i := range max(held.Quorum, 1) {
			actors = append(actors, fmt.Sprintf("approver-%d@example.com", i+1))
		}
	}

	for _, role := range run.Bundle().Content().Roles {
		if !slices.Contains(held.Approvers, role.Role) {
			continue
		}
		for _, who := range role.Actors {
			isCandidate := func(other string) bool { return policy.SamePerson(other, who) }
			if len(actors) < max(held.Quorum, 1) && !isCandidate(held.Actor) &&
				!slices.ContainsFunc(actors, isCandidate) {
				actors = append(actors, who)
			}
		}
	}

	all := make([]policy.Vote, len(actors))
	for i, who := range actors {
		all[i] = policy.Vote{
			At:      run.Request().At,
			Binding: binding,
			By:      who,
			Outcome: outcome,
			Reason:  "as the evaluation says",
		}
	}

	return all
}

// replays is an attacker with the votes about another call. With forged, the event claims to be
// about this call, and only the votes name the other.
func replays(stolen *states.Decided, forged bool) world.Approver {
	return func(_ *states.Run, binding canonical.Digest) *states.Decided {
		d := &states.Decided{At: stolen.At, Binding: stolen.Binding, Votes: slices.Clone(stolen.Votes)}
		if forged {
			d.Binding = binding
		}
		return d
	}
}
