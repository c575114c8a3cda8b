package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pgfsm/policy"
)

// withdrawn is the reason of a denial that the requester recorded by a withdrawal.
const withdrawn = "taken back by who asked for it"

// Withdraw takes a held call back for its requester. It is recorded as a denial and decides like
// one. No requester approves their own request, but every requester may withdraw it. The error is a
// [*Refusal] if there is nothing to withdraw: [ErrUnknown], [ErrNotHeld], [ErrDecided],
// [ErrExpired], [ErrToken], [ErrRole] or [ErrBlocked].
func (l *Ledger) Withdraw(ctx context.Context, run string, by Caller) error {
	return l.commit(ctx, func(b *batch) error {
		if err := by.recheckCalls(b, ActCall); err != nil {
			return err
		}

		q, err := b.Run(run)
		if err != nil {
			return explainNotFound(run, err)
		}
		if !by.IsRequester(&q) || by.TokenID == "" && !policy.HasNoToken(by.Name) {
			return explainNotFound(run, ErrNotFound) // another requester's run counts as missing
		}

		cast, err := readVotes(b, run)
		if err != nil {
			return err
		}
		if err := checkOpen(&q, cast); err != nil {
			return err
		}
		if !policy.IsBefore(b.now, q.Expires) {
			return refusedExpired(&q)
		}

		return b.addEventAndRow(&q, by.Name, &approvalVote{
			Binding: q.Binding,
			Decides: true,
			Reason:  withdrawn,
			Token:   by.TokenID,
		})
	})
}

// checkWithdrawal checks a recorded withdrawal.
func (s *runVerifier) checkWithdrawal(e *Event, p *approvalVote) error {
	switch {
	case p.Reason != withdrawn || !p.Decides:
		return ruleWithdrawal.Broken("a vote about one's own request")
	case p.Token == "" && policy.HasNoToken(e.By):
		return ruleWithdrawal.Wrap(s.verifier.checkNotBlocked(e.Index, e.By, s.row.OnBehalfOf))
	}
	return ruleWithdrawal.Wrap(s.verifier.checkToken(p.Token, e.By, ActCall, e))
}

// checkToken checks that somebody had a token that allowed an action at the time of an event. The tokens may
// be those of that time, or those of the end of the log.
func (v *verifier) checkToken(id, name string, a Action, e *Event) error {
	token, known := v.tokens[id]
	switch {
	case !known || token.Name != name || !slices.Contains(mayDo[a], token.Role):
		return fmt.Errorf("the token %q is not one of %s with the role %s", id, name, strings.Join(mayDo[a], " or "))
	case token.Expires != "" && !policy.IsBefore(e.At, token.Expires), (token.Revoked != "") == (token.Entry < e.Index), e.At < token.Created:
		return fmt.Errorf("the token %s was not valid then", id)
	}
	return nil
}
