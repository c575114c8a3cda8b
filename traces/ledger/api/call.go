package api

import (
	"cmp"
	"errors"
	"net/http"

	"pgfsm/internal/present"
	"pgfsm/traces/ledger"
)

// A callView is the page of a held call.
type callView struct {
	present.HeldCall
	Modes          []string // risk modes of the run's bundle
	DefinitionText string   // indented
	Open           int      // votes that are still needed
	Last           bool     // one more approval approves the call
	MayVote        bool     // this person may vote now
	Why            string   // reason why this person may not vote, if others may
	Again          []providerLink
	NotCalled      string // reason why the call will not be made even if approvers agree
	Refused        string // reason why the vote that was just sent does not count
	NeedsWhy       bool   // it was a denial without a reason
	GivenReason    string // reason given with that vote
}

// showCall shows a held call.
func (h *Handler) showCall(v *visit) (answer, error) {
	return h.showCallWith(v, callView{}, http.StatusOK)
}

// showCallWith shows a held call, with the reason why a vote does not count.
func (h *Handler) showCallWith(v *visit, body callView, status int) (answer, error) {
	err := h.readLedger(v, func(r ledger.Reader) (err error) {
		if body.HeldCall, err = present.ReadHeldCall(r, h.Replayer, v.id); err != nil {
			return err
		}
		return h.addStanding(v, r, &body)
	})
	if errors.Is(err, ledger.ErrNotHeld) {
		return redirectTo(v.base + "runs/" + v.id), nil
	}
	if err != nil {
		return answer{}, err
	}

	q := &body.Request
	body.DefinitionText = indentJSON(body.Definition)
	body.Modes = riskModes(body.Bundle.Content())
	// The server may have replaced the definition that the call was held with.
	if h.Definition != nil && q.Status == ledger.Pending {
		if now, known := h.Definition(q.Server, q.Tool); known && now != q.Definition {
			body.Signs = append([]present.Sign{{Kind: present.SignReplaced,
				Text: "The server has replaced the definition of this tool since the call was held.",
				Detail: "An approval would not help: pgfsm would refuse the call (tool_definition_changed). " +
					"Deny it; the agent's next call is judged by the new definition."}}, body.Signs...)
		}
	}

	return h.page(v, "call", view{
		Status: status,
		Title:  q.Tool + " on " + q.Server,
		Tab:    "inbox",
		Events: "of=" + v.id,
		CLI:    present.CommandLine("pgfsm", "approvals", "show", v.id),
		Body:   &body,
	}), nil
}

// addStanding adds whether this person may vote, and what a vote would do.
func (h *Handler) addStanding(v *visit, r ledger.Reader, c *callView) error {
	q := &c.Request
	row, err := r.Run(q.Run)
	if err != nil {
		return err
	}
	if c.NotCalled, err = ledger.WhyNotCalled(r, &row); err != nil {
		return err
	}
	if q.Status != ledger.Pending {
		return nil
	}
	c.Open, c.Last = max(max(q.Quorum, 1)-q.Agreed, 0), q.Agreed+1 >= q.Quorum

	refused, err := h.checkVoter(v, r, &row)
	if err != nil {
		return err
	}
	if c.MayVote = refused == ""; !c.MayVote {
		c.Why = cmp.Or(whyNot[refused].whole, string(refused))
	}
	if refused == ledger.RefusedRole {
		c.Why = "You are signed in as " + v.caller.Role() + ", and only approvers vote. An admin never votes."
	}
	if refused == ledger.RefusedFresh {
		c.Again = h.signInAgain(v.caller.Name, "calls/"+v.id, c.Bound.Fresh)
	}
	return nil
}

// whyNot says for people why the vote of a person would not count: in a sentence, and in a list.
var whyNot = map[ledger.RefusalCode]struct{ whole, short string }{
	ledger.RefusedRole: {"Only approvers vote.", "only approvers vote"},
	ledger.RefusedEligible: {"This call is not yours to decide: you asked for it, an agent asked for it on your behalf, " +
		"or you have none of the roles that may decide.", "not yours to decide"},
	ledger.RefusedVoted:   {"You have voted. Another approver's vote is still needed. You cannot take a vote back.", "you have voted"},
	ledger.RefusedFresh:   {"You signed in too long ago for this policy. Sign out, sign in again, and vote.", "sign in again to vote"},
	ledger.RefusedExpired: {"The time to decide is over.", "the time is over"},
}

// checkVoter returns the code with which the ledger would refuse every vote of this person about a
// held call; empty if a vote would count.
func (h *Handler) checkVoter(v *visit, r ledger.Reader, row *ledger.RunRow) (ledger.RefusalCode, error) {
	err := h.Ledger.CheckVoter(r, row, v.caller, v.now)
	var refused *ledger.Refusal
	if errors.As(err, &refused) {
		return refused.Code, nil
	}
	return "", err
}
