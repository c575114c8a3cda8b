package attack

import (
	"fmt"
	"slices"

	"pgfsm/eval/world"
	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
)

// decideAlways gives the same decision about every call, with as many votes as the call needs.
func decideAlways(outcome string) world.Approver {
	return func(run *states.Run, binding canonical.Digest) *states.Decided {
		return &states.Decided{At: run.Request().At, Binding: binding, Votes: votesFor(run, binding, outcome)}
	}
}

// expireApproval lets the request for approval expire, because nobody answers it.
func expireApproval(run *states.Run, binding canonical.Digest) *states.Decided {
	return &states.Decided{At: run.HeldCall().Expires, Binding: binding}
}

// votesFor returns the votes that a held call needs: as many as the quorum, each by another actor
// of a role that may decide, and none by the requester. If the bundle names too few actors, there
// are too few votes.
func votesFor(run *states.Run, binding canonical.Digest, outcome string) []policy.Vote {
	call := run.HeldCall()
	if call == nil {
		return nil
	}

	var actors []string
	if len(call.Approvers) == 0 {
		for i := range max(call.Quorum, 1) {
			actors = append(actors, fmt.Sprintf("approver-%d@example.com", i+1))
		}
	}

	for _, role := range run.Bundle().Content().Roles {
		if !slices.Contains(call.Approvers, role.Role) {
			continue
		}
		for _, who := range role.Actors {
			isCandidate := func(other string) bool { return policy.SamePerson(other, who) }
			if len(actors) < max(call.Quorum, 1) && !isCandidate(call.Actor) &&
				!slices.ContainsFunc(actors, isCandidate) {
				actors = append(actors, who)
			}
		}
	}

	votes := make([]policy.Vote, len(actors))
	for i, who := range actors {
		votes[i] = policy.Vote{
			At:      run.Request().At,
			Binding: binding,
			By:      who,
			Outcome: outcome,
			Reason:  "as the evaluation says",
		}
	}

	return votes
}

// replayVotes is an attacker with the votes about another call. With forged, the event claims to be
// about this call, and only the votes name the other.
func replayVotes(stolen *states.Decided, forged bool) world.Approver {
	return func(_ *states.Run, binding canonical.Digest) *states.Decided {
		d := &states.Decided{At: stolen.At, Binding: stolen.Binding, Votes: slices.Clone(stolen.Votes)}
		if forged {
			d.Binding = binding
		}
		return d
	}
}
