package api

import (
	"errors"
	"net/http"
	"slices"

	"pgfsm/internal/present"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// A callView is the page of a held call.
type callView struct {
	present.Approval
	Rows       []present.Row
	Rules      []string // contribution of each risk rule
	Left       string
	Arguments  argumentsView
	Definition string // indented
	Replaced   bool   // the server has replaced this definition
	Earlier    runList
	MayVote    bool   // this person may vote now
	Why        string // reason why this person may not vote, if others may
	Stale      bool   // this person signed in too long ago
	Again      []providerLink
	NotCalled  string // reason why the call will not be made even if approvers agree
	Refused    string // reason why the vote that was just sent does not count
	NeedsWhy   bool   // it was a denial without a reason
	Reason     string // reason given with that vote
}

// showCall shows a held call.
func (h *Handler) showCall(v *visit) (answer, error) {
	return h.showCallWith(v, callView{}, http.StatusOK)
}

// showCallWith shows a held call, with the reason why a vote does not count.
func (h *Handler) showCallWith(v *visit, body callView, status int) (answer, error) {
	body.Earlier.Base = v.base
	err := h.readLedger(v, func(r ledger.Reader) error {
		b, err := ledger.BoundOf(r, h.Replayer, v.id)
		if err != nil {
			return err
		}
		body.Approval = present.NewApproval(&b)
		if body.NotCalled, err = ledger.WhyNotCalled(r, &b.Row); err != nil {
			return err
		}
		return body.addApproval(r, v.caller, b.Bundle, v.now)
	})
	if errors.Is(err, ledger.ErrNotHeld) {
		return redirectTo(v.base + "runs/" + v.id), nil
	}
	if err != nil {
		return answer{}, err
	}

	// The server may have replaced the definition that the call was held with.
	if h.Definition != nil && body.Request.Status == ledger.Pending {
		current, known := h.Definition(body.Request.Server, body.Request.Tool)
		body.Replaced = known && current != body.Request.Definition
	}

	if body.Stale {
		body.Again = h.signInAgain(v.caller.Name, "calls/"+v.id, body.Bound.Fresh)
	}

	return h.page(v, "call", view{
		Status: status,
		Title:  body.Request.Tool + " on " + body.Request.Server,
		Events: "of=" + v.id,
		CLI:    present.CommandLine("pgfsm", "approvals", "show", v.id),
		Body:   body,
	}), nil
}

// addApproval adds the data about the approval of a call. The bundle is the run's.
func (c *callView) addApproval(r ledger.Reader, who ledger.Caller, bundle *policy.Bundle, now string) (err error) {
	q := &c.Request
	c.Rows, c.Left = c.Approval.Rows(now), timeLeft(now, q.Expires)

	for i := range c.Risk {
		c.Rules = append(c.Rules, present.RiskRule(&c.Risk[i]))
	}

	if c.Arguments, err = newArguments(q.Args); err != nil {
		return err
	}
	c.Arguments.Digest = q.Arguments
	if err := c.compareArguments(r); err != nil {
		return err
	}

	c.Definition = indentJSON(c.Approval.Definition)
	earlier := ledger.Filter{Actor: q.Actor, Task: q.Task, Before: q.Run, Newest: true}
	if c.Earlier.Runs, _, err = present.ReadRuns(r, earlier, maxEarlier); err != nil {
		return err
	}

	// Nobody votes about a decided call. Otherwise say why this person may not.
	ownVote := func(v policy.Vote) bool { return bundle.SamePerson(v.By, who.Name) }
	switch undecided := ledger.CheckUndecided(r, q.Run, now); {
	case undecided != nil:
	case who.Allow(ledger.ActVote) != nil:
		c.Why = "You are signed in as " + who.Role() + ", and only approvers vote. An admin never votes."
	case bundle.SamePerson(q.Actor, who.Name), c.Bound.OnBehalfOf != "" &&
		bundle.SamePerson(c.Bound.OnBehalfOf, who.Name):
		c.Why = "This is your own request: another approver decides."
	case slices.ContainsFunc(c.Votes, ownVote):
		c.Why = "You have voted. Another approver's vote is still needed."
	default:
		err := who.CheckFresh(r, c.Bound.Fresh, now)
		if errors.Is(err, ledger.ErrFresh) {
			c.Why = "You signed in too long ago for this policy. Sign out, sign in again, and vote."
			c.Stale = true
			return nil
		}
		c.MayVote = err == nil
		return err
	}

	return nil
}

// approved lists the statuses of calls that approvers may have approved.
var approved = []ledger.Status{ledger.Approved, ledger.Executed, ledger.Failed, ledger.Indeterminate}

// compareArguments compares the arguments with those of the last approved call of the same tool.
func (c *callView) compareArguments(r ledger.Reader) error {
	f := ledger.Filter{
		Statuses: approved,
		Held:     true,
		Server:   c.Request.Server,
		Tool:     c.Request.Tool,
		Before:   c.Request.Run,
		Newest:   true,
	}

	for q, err := range r.Runs(f) {
		if err != nil {
			return err
		}
		if q.Agreed < max(q.Quorum, 1) {
			continue
		}
		args, err := q.ReadArgs(r)
		if err != nil {
			return err
		}
		return c.Arguments.addChanges(q.RunID, q.Arguments == c.Request.Arguments, args)
	}
	return nil
}

// maxEarlier bounds the earlier calls on a page: those by the same actor, and in the same task if
// the call has one.
const maxEarlier = 10
