package ledger

import (
	"errors"
	"fmt"
	"slices"

	"pgfsm/policy"
	"pgfsm/states"
)

// ErrRevoked means that the requester, or an approver of the call, lost their token or was blocked
// before the call was sent.
var ErrRevoked = errors.New("the requester or an approver lost their token, or was blocked, before the call was sent")

// WhyNotCalled returns why the call of a held run will not be made even if approvers agree, as far
// as that is known now. The requester, or a person who approved the call, is blocked or has no
// valid token left, or the connection that the call would use has ended. The result is empty if nothing is known.
func WhyNotCalled(r Reader, q *RunRow) (string, error) {
	if q.Status != Pending && q.Status != Approved {
		return "", nil
	}
	reason, err := revocationReason(r, q)
	if err != nil || reason != "" {
		return reason, err
	}
	first, err := q.readFirst(r)
	if err != nil {
		return "", err
	}
	_, reason, err = accountEnded(r, &first.Request, q.Server)
	return reason, err
}

// revocationReason checks identities again before an approved call is sent. It returns a reason if
// the token of a vote was revoked since, or if the requester has no valid agent token left. It also
// returns one if a subject of an identity provider is blocked: the requester, the person for whom
// they act, or a voter. Otherwise the result is empty. A token that only expired after the vote
// still counts. An unknown token counts as revoked.
func revocationReason(r Reader, q *RunRow) (reason string, err error) {
	cast, err := readVotes(r, q.RunID)
	if err != nil {
		return "", err
	}

	// Everyone who voted must still have their token, or not be blocked.
	for i := range cast {
		name, voter := cast[i].vote.By, cast[i].vote.Voter()
		if cast[i].token == "" && policy.HasSubject(name) {
			switch b, blocked, err := blockOf(r, name); {
			case err != nil:
				return "", err
			case blocked:
				return fmt.Sprintf("%s, who approved the call, was blocked at %s.", voter, b.Since), nil
			}
			continue
		}
		t, err := r.Token(cast[i].token)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return "", err
		}
		switch {
		case err != nil || t.Name != name:
			return fmt.Sprintf("%s agreed by a token that is not known.", voter), nil
		case t.Revoked != "":
			return fmt.Sprintf("The token with which %s approved the call was revoked at %s.", voter, t.Revoked), nil
		}
	}

	// The same holds for the requester and the person for whom they act.
	switch b, blocked, err := blockOf(r, q.Actor, q.OnBehalfOf); {
	case err != nil:
		return "", err
	case blocked:
		if b.Name == q.Actor {
			return fmt.Sprintf("%s, who requested the call, was blocked at %s.", policy.FullName(b.Name, q.Display),
				b.Since), nil
		}
		return fmt.Sprintf("%s, for whom the call was requested, was blocked at %s.",
			policy.FullName(b.Name, q.OnBehalfOfDisplay), b.Since), nil
	}

	if policy.HasNoToken(q.Actor) {
		return "", nil
	}

	for t, err := range r.Tokens() {
		if err != nil {
			return "", err
		}
		if t.Name == q.Actor && t.Revoked == "" && slices.Contains(mayDo[actionOf(q.Kind)], t.Role) {
			return "", nil
		}
	}

	return fmt.Sprintf("%s asked, and has no token any more that may ask for calls.", q.Actor), nil
}

// onBehalfOf returns the person for whom the actor of a request acts; empty if there is none.
func onBehalfOf(r *states.Request) string {
	if r.Identity == nil {
		return ""
	}
	return r.Identity.OnBehalfOf
}
