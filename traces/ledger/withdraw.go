package ledger

import (
	"context"
	"errors"
	"slices"

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
		if err := by.recheckCalls(b); err != nil {
			return err
		}

		q, err := b.Run(run)
		if err != nil {
			return explainNotFound(run, err)
		}
		if !by.IsRequester(&q) || by.TokenID == "" && !hasNoToken(by.Name) {
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
	token, known := s.verifier.tokens[p.Token]
	switch {
	case p.Reason != withdrawn || !p.Decides:
		return errors.New("a vote about one's own request")
	case p.Token == "" && hasNoToken(e.By):
		return s.verifier.checkNotBlocked(e.Index, e.By, s.row.OnBehalfOf)
	case !known || token.Name != e.By || !slices.Contains(mayDo[ActCall], token.Role):
		return errors.New("a call was taken back with a token that is not one of who asked")
	}
	return checkTokenAt(&token, e)
}

// checkTokenAt returns an error if a token was not valid at the time of an event.
func checkTokenAt(t *Token, e *Event) error {
	if t.Expires != "" && !policy.IsBefore(e.At, t.Expires) || (t.Revoked != "") == (t.Entry < e.Index) ||
		e.At < t.Created {
		return errors.New("the token of the vote was not valid then")
	}
	return nil
}
