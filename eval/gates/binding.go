package gates

import (
	"errors"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/corpus"
	"pgfsm/states"
)

// decidedAt is the time of the decision and of each vote that names no other. The policy of the
// world "agreed" waits an hour.
const decidedAt = "2026-11-21T09:30:00.000Z"

// bindingTrials approves a call, changes one part of the approved call or of the approval, and
// counts the calls that are made.
func bindingTrials(e *evaluation) ([]trial, error) {
	worlds, err := corpus.Worlds()
	if err != nil {
		return nil, err
	}
	return trialsOf("approvals", func(c *corpus.Approval) (trial, error) {
		callWorlds := []corpus.World{worlds["agreed"], {Content: c.Content}}
		return trial{c.ID, c.Want, []byte(c.ID), func([]byte) string {
			answer, err := e.decideApproval(c, callWorlds)
			if err != nil {
				return err.Error()
			}
			return answer
		}}, nil
	})
}

// decideApproval holds the call that approvers are asked about, and runs the call with their
// approval. worlds are those of both calls.
func (e *evaluation) decideApproval(c *corpus.Approval, worlds []corpus.World) (string, error) {
	approved, err := e.holdCall(c, worlds)
	if err != nil {
		return "", err
	}
	decision, err := decisionOf(c, approved)
	if err != nil {
		return "", err
	}

	heldScene, err := newScene(worlds...)
	if err != nil {
		return "", err
	}

	callScene, err := newScene(append(worlds, c.Then)...)
	if err != nil {
		return "", err
	}

	run, w := heldScene.newRun([]byte(fetchPlan))
	w.Listings = append(w.Listings, callScene.listing)
	w.Active = callScene.bundle
	w.Approver = func(*states.Run, canonical.Digest) *states.Decided { return decision }
	o, err := e.subject.play(w, e.runner, run)

	return outcomeText(o, err, w, []byte(fetchPlan)), nil
}

// holdCall runs the call that approvers are asked about, and returns what their approval is bound
// to.
func (e *evaluation) holdCall(c *corpus.Approval, worlds []corpus.World) (canonical.Digest, error) {
	heldScene, err := newScene(append(worlds, c.Asked.World)...)
	if err != nil {
		return "", err
	}
	if c.Asked.Run != "" {
		heldScene.run = c.Asked.Run
	}
	plan := fetchPlan
	if c.Asked.Plan != "" {
		plan = c.Asked.Plan
	}
	run, w := heldScene.newRun([]byte(plan))
	if _, err := e.subject.play(w, e.runner, run); err != nil {
		return "", err
	}
	if run.HeldCall() == nil {
		return "", errors.New("the call is not held")
	}
	return run.HeldCall().Binding, nil
}

// decisionOf is the decision about the call that approvers were asked about.
func decisionOf(c *corpus.Approval, about canonical.Digest) (*states.Decided, error) {
	d := &states.Decided{At: decidedAt, Binding: about}
	if c.Binding != "" {
		d.Binding = canonical.Digest(c.Binding)
	}
	votes := c.Votes
	if votes == nil {
		votes = corpus.Quorum()
	}
	for _, changes := range votes {
		vote := policy.Vote{
			At:      decidedAt,
			Binding: about,
			Outcome: policy.VoteApprove,
			Reason:  "as agreed",
		}
		if err := overlayMembers(&vote, changes); err != nil {
			return nil, err
		}
		d.Votes = append(d.Votes, vote)
	}
	return d, nil
}
