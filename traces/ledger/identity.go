package ledger

import (
	"errors"
	"fmt"
	"slices"
)

// ErrRevoked means that the requester, or an approver of the call, lost their token before the call was sent.
var ErrRevoked = errors.New("a token without which the call would not be made was revoked before it left")

// sentAway checks identities again before an approved call is sent. It returns the reason if the token of a vote was revoked since, or if the requester has
// no valid agent token left; otherwise it is empty. A token that only expired after the vote still counts. An unknown token counts as revoked.
func sentAway(r Reader, q *Request) (reason string, err error) {
	cast, err := ballots(r, q.RunID)
	if err != nil {
		return "", err
	}
	for i := range cast {
		by := cast[i].vote.By
		t, err := r.Token(cast[i].token)
		switch {
		case errors.Is(err, ErrNotFound) || err == nil && t.Name != by:
			return fmt.Sprintf("%s agreed by a token that is not known.", by), nil
		case err != nil:
			return "", err
		case t.Revoked != "":
			return fmt.Sprintf("The token with which %s approved the call was revoked at %s.", by, t.Revoked), nil
		}
	}
	if tokenless(q.Actor) {
		return "", nil // a caller without a token: a user of the operating system, or anonymous
	}
	for t, err := range r.Tokens() {
		if err != nil {
			return "", err
		}
		if t.Name == q.Actor && t.Revoked == "" && slices.Contains(mayDo[ActCall], t.Role) {
			return "", nil
		}
	}
	return fmt.Sprintf("%s asked, and has no token any more that may ask for calls.", q.Actor), nil
}
