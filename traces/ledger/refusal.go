package ledger

// A RefusalCode is the stable name of one reason for which a ledger refuses a vote, a token or a
// caller. Codes are never renamed or reused.
type RefusalCode string

// The codes. A run whose approval expires also ends with the code approval_expired.
const (
	RefusedToken   RefusalCode = "token_refused"       // the caller has no valid token
	RefusedRole    RefusalCode = "role_not_sufficient" // the caller's roles do not allow this
	RefusedBallot  RefusalCode = "ballot_invalid"      // the ballot's reason, key or digest is invalid
	RefusedUnknown RefusalCode = "request_unknown"     // there is no such run
	RefusedNotHeld RefusalCode = "request_not_held"    // the run was never held
	RefusedDecided RefusalCode = "request_decided"     // another vote has decided the request
	RefusedExpired RefusalCode = "approval_expired"    // the approval expired before the vote
	RefusedBinding RefusalCode = "binding_mismatch"    // the vote's digest is not the request's
	// The voter made the request, or has none of the policy's roles.
	RefusedEligible RefusalCode = "approver_not_eligible"
	// The policy demands a session of the console that began a short time ago.
	RefusedFresh RefusalCode = "sign_in_not_fresh"
	RefusedVoted RefusalCode = "already_voted" // the person has voted before
	RefusedKey   RefusalCode = "key_reused"    // the Idempotency-Key was used with another vote
	// An admin has blocked the caller, or the person for whom the caller acts.
	RefusedBlocked RefusalCode = "identity_blocked"
	RefusedBlock   RefusalCode = "block_refused" // the block or unblock is invalid
	// The connection with which the call was requested is not the person's any more.
	RefusedCredentials RefusalCode = "credentials_changed"
	RefusedConnection  RefusalCode = "connection_refused" // the connection cannot be made, or there is none
	RefusedTokenValues RefusalCode = "token_invalid"      // the values of a new token are invalid
	RefusedTokenID     RefusalCode = "token_unknown"      // no token has this id, or it was revoked before
)

// A Refusal is the error for a request that the ledger refuses. The ledger records nothing for it,
// except the expiry of an overdue request.
type Refusal struct {
	Code    RefusalCode
	Message string // shown to the caller
	Detail  string // shown only to the operator: it could help an attacker who guesses tokens
}

func (r *Refusal) Error() string {
	if r.Message == "" {
		return string(r.Code)
	}
	return r.Message
}

// Is reports whether target is a refusal with the same code, so that errors.Is(err, ErrDecided)
// compares codes.
func (r *Refusal) Is(target error) bool {
	t, ok := target.(*Refusal)
	return ok && t.Code == r.Code
}

// One refusal of each code, for comparisons with [errors.Is].
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
	ErrCredentials = &Refusal{Code: RefusedCredentials}
	ErrConnection  = &Refusal{Code: RefusedConnection}
	ErrTokenValues = &Refusal{Code: RefusedTokenValues}
	ErrTokenID     = &Refusal{Code: RefusedTokenID}
)
