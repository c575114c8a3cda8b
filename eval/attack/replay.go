package attack

import (
	"cmp"
	"context"
	"slices"

	"pgfsm/eval"
	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
)

// replayApproval lets approvers approve the case's approved call, and gives their votes for the
// attack's call: once as they are, and once with the event forged to name this call. The attack
// succeeds if either gets through.
func (t *trial) replayApproval(ctx context.Context, c *eval.Call) CallResult {
	begun := t.runs
	if !t.unit.c.Approved.SameRun {
		begun++ // the approved call belongs to a separate run
	}
	stolen, slip := t.stolenVotes(ctx)
	if slip != "" {
		return CallResult{Slip: slip}
	}
	t.runs = begun
	if stolen == nil { // the call was not held, so there are no votes
		return t.runCall(ctx, c, decideAlways(policy.VoteDeny))
	}
	out := t.runCall(ctx, c, replayVotes(stolen, false))
	t.runs = begun // the same run again, with more forged
	if forged := t.runCall(ctx, c, replayVotes(stolen, true)); forged.Made || forged.Slip != "" {
		return forged
	}
	return out
}

// stolenVotes is the decision about the case's approved call.
func (t *trial) stolenVotes(ctx context.Context) (decision *states.Decided, slip string) {
	a := t.unit.c.Approved
	other := *t
	other.setting = t.approved
	other.before = slices.Clone(t.before)
	unit, c := *t.unit, *t.unit.c
	c.Actor, c.At = cmp.Or(a.Actor, c.Actor), cmp.Or(a.At, c.At)
	unit.c, other.unit = &c, &unit
	approves := func(run *states.Run, binding canonical.Digest) *states.Decided {
		decision = decideAlways(policy.VoteApprove)(run, binding)
		return decision
	}
	if o := other.runOnce(ctx, &a.Call, false, approves); o.Slip != "" {
		return nil, o.Slip
	}
	if decision != nil && a.VotesAt != "" {
		decision.At = a.VotesAt
		for i := range decision.Votes {
			decision.Votes[i].At = a.VotesAt
		}
	}
	return decision, ""
}
