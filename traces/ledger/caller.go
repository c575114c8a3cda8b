package ledger

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
)

// A Caller is an authenticated caller: the owner of a token of the ledger, or a subject of an
// identity provider, whose name is a [policy.SubjectName]. Otherwise it is a user of the operating
// system who may write the ledger's file.
type Caller struct {
	TokenID string           // the id of the ledger's token; empty for other callers
	Name    string           // the token's name, the subject's name, or local:USER
	Roles   []string         // the token's role, or the roles that the configuration gives to the subject
	Session canonical.Digest // digest of the console session; empty if the caller presented the token itself
	// When a subject's token expires, unless the token is for calls: RFC 3339, UTC; empty is in the
	// past.
	Expires  string
	Identity *policy.Identity // what the identity provider says about a subject
}

// OnBehalfOf returns the person for whom an agent of an identity provider acts; empty if there is
// none.
func (c Caller) OnBehalfOf() string { return c.identityOrZero().OnBehalfOf }

// Client returns the client id of a subject of an identity provider; empty for other callers.
func (c Caller) Client() string { return c.identityOrZero().Client }

func (c Caller) identityOrZero() policy.Identity {
	if c.Identity == nil {
		return policy.Identity{}
	}
	return *c.Identity
}

// FullName returns the caller's name as people read it.
func (c Caller) FullName() string { return policy.FullName(c.Name, c.identityOrZero().Display) }

// Role returns the caller's roles as people read them.
func (c Caller) Role() string {
	if len(c.Roles) == 0 {
		return "none"
	}
	return strings.Join(c.Roles, " and ")
}

// IsRequester reports whether the caller made a request. Policies can read the client and the
// person for whom an agent acts. So a request of another client, or for another person, does not
// count as the caller's.
func (c Caller) IsRequester(q *RunRow) bool {
	return q.Actor == c.Name && q.OnBehalfOf == c.OnBehalfOf() && q.Client == c.Client()
}

// LocalUser returns a user of the operating system, who has no token. The name begins with local:.
func LocalUser(name string) Caller { return Caller{Name: name} }

// Roles of tokens.
const (
	RoleAgent    = "agent"
	RoleApprover = "approver"
	RoleAuditor  = "auditor"
	RoleAdmin    = "admin"
	RoleHook     = "hook"
	RolePerson   = "person" // an agent of one person, whose own connections its calls use
)

// Roles returns the roles of tokens.
func Roles() []string {
	return []string{RoleAgent, RoleApprover, RoleAuditor, RoleAdmin, RoleHook, RolePerson}
}

// An Action is an operation that a role may allow.
type Action string

// The actions.
const (
	ActCall    Action = "call"    // request calls, and read the state of the caller's own requests
	ActTell    Action = "tell"    // ask about calls that the caller makes itself, and tell prompts and reports
	ActRead    Action = "read"    // read every request, and what its approval binds
	ActAudit   Action = "audit"   // read the results of all calls
	ActVote    Action = "vote"    // approve and deny
	ActManage  Action = "tokens"  // create and revoke tokens, and prune
	ActConnect Action = "connect" // connect one's own accounts at servers
	ActReload  Action = "reload"  // make a gateway read its configuration again
)

// mayDo lists the roles that may do an action. An admin manages tokens and does not vote: otherwise
// an admin could create a token in the name of another person and approve alone.
var mayDo = map[Action][]string{
	ActCall:    {RoleAgent, RolePerson},
	ActTell:    {RoleHook},
	ActRead:    {RoleApprover, RoleAuditor, RoleAdmin},
	ActAudit:   {RoleAuditor},
	ActVote:    {RoleApprover},
	ActManage:  {RoleAdmin},
	ActReload:  {RoleAdmin},
	ActConnect: {RolePerson},
}

// actionOf returns the action of somebody who requests a run of a kind.
func actionOf(kind string) Action {
	if states.Delegates(kind) {
		return ActTell
	}
	return ActCall
}

// isSubject reports whether the caller is a subject of an identity provider.
func (c Caller) isSubject() bool { return c.TokenID == "" && policy.HasSubject(c.Name) }

// May reports whether one of the caller's roles allows an action. A user of the operating system
// has no roles. Only people vote, and never a person who is also an admin: the identity provider
// can give one person both roles. A person of an identity provider needs no role to connect.
func (c Caller) May(a Action) bool {
	switch {
	case c.TokenID == "" && !c.isSubject():
		return false
	case a == ActVote && (slices.Contains(c.Roles, RoleAdmin) ||
		c.isSubject() && c.identityOrZero().Kind != policy.ActorPerson):
		return false
	case a == ActConnect && c.isSubject():
		return c.identityOrZero().Kind == policy.ActorPerson
	}
	return slices.ContainsFunc(c.Roles, func(role string) bool { return slices.Contains(mayDo[a], role) })
}

// firstAllowed returns the first of some actions that the caller's roles allow; the first one if they allow none. No action
// is [ActRead].
func (c Caller) firstAllowed(may []Action) Action {
	if len(may) == 0 {
		return ActRead
	}
	return may[max(0, slices.IndexFunc(may, c.May))]
}

// Allow returns [ErrRole] for an action that the caller's roles do not allow.
func (c Caller) Allow(a Action) error {
	if c.May(a) {
		return nil
	}
	roles, admins := strings.Join(mayDo[a], " or "), ""
	if a == ActVote && slices.Contains(c.Roles, RoleAdmin) {
		admins = "; an admin never votes"
	}
	if !c.isSubject() || a == ActCall || a == ActTell { // identity.may of the configuration gives no role for calls
		return &Refusal{Code: RefusedRole, Message: fmt.Sprintf("this needs a token of the role %s; the caller's is %s%s", roles, c.Role(), admins)}
	}
	return &Refusal{Code: RefusedRole, Message: fmt.Sprintf("this needs the role %s, which identity.may of the configuration gives; the caller has %s%s",
		roles, c.Role(), admins)}
}

// CheckNotBlocked returns [ErrBlocked] if the caller, or the person for whom the caller acts, is
// blocked.
func (c Caller) CheckNotBlocked(r Reader) error { return checkNotBlocked(r, c.Name, c.OnBehalfOf()) }

// recheckAction checks again, within a transaction, that the caller may do an action. Since the
// caller was authenticated, the token may have been revoked or have expired, or the caller may have
// been blocked.
func (c Caller) recheckAction(r Reader, now string, a Action) error {
	switch {
	case c.TokenID != "":
		t, err := r.Token(c.TokenID)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if reason := t.invalidReason(now); err != nil || t.Name != c.Name || !slices.Equal(c.Roles, []string{t.Role}) ||
			reason != "" {
			return refusedToken("the token " + c.TokenID + " of the caller is gone, or is not theirs: " + reason)
		}
	case c.isSubject():
		if err := c.CheckNotBlocked(r); err != nil {
			return err
		}
		// An agent's token is verified with each HTTP request. Its messages may pass after that,
		// also from the server to the agent.
		if c.Session == "" && a != ActCall && a != ActTell && !policy.IsBefore(now, c.Expires) {
			return refusedToken("the token of " + c.Name + " expired at " + c.Expires)
		}
	}

	if c.Session != "" {
		if _, _, err := liveSession(r, c.Session, SessionOpen, now); err != nil {
			return err
		}
	}
	return c.Allow(a)
}

// kindToken is the kind of the digest of a token.
const kindToken = "token"

// Bounds of a token's text: pgfsm_ID_SECRET.
const (
	tokenPrefix = "pgfsm_"
	idBytes     = 10 // 80 bits, 16 characters: ids are public, so they only must not collide
	// 256 bits, 43 characters: nobody can guess it, so a fast digest is as safe as a slow one.
	secretBytes = 32

	idEnd    = len(tokenPrefix) + 16
	tokenEnd = idEnd + 1 + 43

	idLetters     = "abcdefghijklmnopqrstuvwxyz234567"
	secretLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
)

// idIn returns the id in a text that has the form of a token.
func idIn(text string) (id string, ok bool) {
	if len(text) != tokenEnd || text[:len(tokenPrefix)] != tokenPrefix || text[idEnd] != '_' {
		return "", false
	}
	id = text[len(tokenPrefix):idEnd]
	return id, strings.Trim(id, idLetters) == "" && strings.Trim(text[idEnd+1:], secretLetters) == ""
}

// noToken stands for a token that does not exist: the presented secret is compared with it, so that
// an unknown id takes as long as a wrong secret. No text has its digest.
var noToken = Token{Secret: canonical.Sum("no token", nil), Revoked: "always"}

// Authenticate returns the caller who presents a token. The error is [ErrToken] whatever is wrong
// with the token; only the error's detail says what.
func (l *Ledger) Authenticate(ctx context.Context, presented string) (c Caller, err error) {
	// ReadCommitted is enough: the token is one row. The ledger's time is read after it, and a
	// later time only makes the token older.
	err = l.ReadCommitted(ctx, func(r Reader) (err error) {
		c, err = Authenticate(r, presented, l.clock())
		return err
	})
	return c, err
}

// Authenticate is [Ledger.Authenticate] for a reader and a clock time.
func Authenticate(r Reader, presented string, clock time.Time) (Caller, error) {
	id, ok := idIn(presented)
	if !ok {
		return Caller{}, refusedToken("it is not a whole token: pgfsm token create prints pgfsm_, 16 characters, _ and 43 characters")
	}

	t, err := r.Token(id)
	if errors.Is(err, ErrNotFound) {
		t, err = noToken, nil
	}

	if err != nil {
		return Caller{}, err
	}

	// The secret is always compared first: without it, the response time reveals nothing about the
	// token's state.
	equal := subtle.ConstantTimeCompare([]byte(canonical.Sum(kindToken, []byte(presented))), []byte(t.Secret))
	if equal != 1 {
		return Caller{}, refusedToken("the secret of " + id + " is another, or there is no such token")
	}

	now := ""
	if t.Expires != "" { // only these tokens need the time, and every request comes here
		end, err := r.End()
		if err != nil {
			return Caller{}, err
		}
		if now, err = notBefore(clock, end.At); err != nil {
			return Caller{}, err
		}
	}

	if reason := t.invalidReason(now); reason != "" {
		return Caller{}, refusedToken("the token " + t.ID + " " + reason)
	}

	return Caller{TokenID: t.ID, Name: t.Name, Roles: []string{t.Role}}, nil
}

// invalidReason says why a token is no longer valid. It returns an empty string for a valid token.
func (t *Token) invalidReason(now string) string {
	switch {
	case t.Revoked != "":
		return "was revoked at " + t.Revoked
	case t.Expires != "" && !policy.IsBefore(now, t.Expires):
		return "expired at " + t.Expires
	}
	return ""
}

// Active reports whether the token is valid at a time in the ledger's form.
func (t *Token) Active(now string) bool { return t.ID != "" && t.invalidReason(now) == "" }

func refusedToken(detail string) error {
	return &Refusal{Code: RefusedToken, Message: ErrToken.Message, Detail: detail}
}
