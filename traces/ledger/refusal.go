package ledger

// A RefusalCode is a stable name of one reason for which a ledger refuses a vote, a token or a caller. Codes are never renamed
// or reused.
type RefusalCode string

// The codes. A run whose approval expires ends with approval_expired, too.
const (
	RefusedToken       RefusalCode = "token_refused"         // no valid token: the caller is unknown
	RefusedRole        RefusalCode = "role_not_sufficient"   // the caller's roles do not allow this
	RefusedBallot      RefusalCode = "ballot_invalid"        // the ballot itself: its reason, its key, its digest
	RefusedUnknown     RefusalCode = "request_unknown"       // there is no such run
	RefusedNotHeld     RefusalCode = "request_not_held"      // the run was never held
	RefusedDecided     RefusalCode = "request_decided"       // another vote decided already
	RefusedExpired     RefusalCode = "approval_expired"      // its time is over
	RefusedBinding     RefusalCode = "binding_mismatch"      // the vote's digest is not the request's
	RefusedEligible    RefusalCode = "approver_not_eligible" // their own request, or none of the policy's roles
	RefusedFresh       RefusalCode = "sign_in_not_fresh"     // the policy demands a session of the console that began a short time ago
	RefusedVoted       RefusalCode = "already_voted"         // one person, one vote
	RefusedKey         RefusalCode = "key_reused"            // the Idempotency-Key was used with another vote
	RefusedBlocked     RefusalCode = "identity_blocked"      // an admin has blocked the caller, or the person for whom the caller acts
	RefusedBlock       RefusalCode = "block_refused"         // nobody can be blocked or unblocked like that
	RefusedTokenValues RefusalCode = "token_invalid"         // a token cannot be made like that
	RefusedTokenID     RefusalCode = "token_unknown"         // no token has this id, or it was revoked before
)

// A Refusal is a request that the ledger refuses. It records nothing but the expiry of an overdue request.
type Refusal struct {
	Code    RefusalCode
	Message string // for the caller
	Detail  string // only for the operator: it could help an attacker who guesses tokens
}

func (r *Refusal) Error() string {
	if r.Message == "" {
		return string(r.Code)
	}
	return r.Message
}

// Is reports whether target is a refusal of the same code: errors.Is(err, ErrDecided) asks for the code.
func (r *Refusal) Is(target error) bool {
	t, ok := target.(*Refusal)
	return ok && t.Code == r.Code
}

// One refusal of each code, to compare with by [errors.Is].
var (
	ErrToken       = &Refusal{Code: RefusedToken, Message: "the token is not valid"}
	ErrRole        = &Refusal{Code: RefusedRole}
	ErrBallot      = &Refusal{Code: RefusedBallot}
	ErrUnknown     = &Refusal{Code: RefusedUnknown}
	ErrNotHeld     = &Refusal{Code: RefusedNotHeld}
	ErrDecided     = &Refusal{Code: RefusedDecided}
	ErrExpired     = &Refusal{Code: RefusedExpired}
	ErrBinding     = &Refusal{Code: RefusedBinding}
	ErrEligible    = &Refusal{Code: RefusedEligible}
	ErrFresh       = &Refusal{Code: RefusedFresh}
	ErrVoted       = &Refusal{Code: RefusedVoted}
	ErrKeyReused   = &Refusal{Code: RefusedKey}
	ErrBlocked     = &Refusal{Code: RefusedBlocked}
	ErrBlock       = &Refusal{Code: RefusedBlock}
	ErrTokenValues = &Refusal{Code: RefusedTokenValues}
	ErrTokenID     = &Refusal{Code: RefusedTokenID}
)
