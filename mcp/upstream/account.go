package upstream

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"pgfsm/internal/oauth"
	"pgfsm/internal/secret"
)

// An Account is a person's own credentials for one server. A link with an account sends no other credentials, and no
// client without that account uses it.
type Account struct {
	ID     string // names the person's connection; another one has another id
	Header Header // sent with every request; without a name, Token has the credentials
	Secret string // the part of the header that must never be shown

	// Token returns the access token for the next request; nil: Header has the credentials. Its error may be a
	// [*LinkError].
	Token func(context.Context) (string, error)

	Issuer, Label string // how the record names the account
	Scopes        []string

	// Refused is called when the server answers a request with 401, with the token of that request. It must not block.
	Refused func(token string)
	// Asked is called when the server answers with 403 for lack of scopes, with those that it names (RFC 6750, section
	// 3.1). It must not block.
	Asked func(scope string)
}

var errNoAccount = &LinkError{CodeCredentialsNeeded, "each person uses it with an account of their own, and no person's is used here"}

// NeedsAccount reports whether an error says that a server is used with people's own accounts, and there is none.
func NeedsAccount(err error) bool { return hasCode(err, CodeCredentialsNeeded) }

// RefusesAccount reports whether an error says that a server refuses the account.
func RefusesAccount(err error) bool { return hasCode(err, CodeCredentialsRefused) }

func hasCode(err error, code string) bool {
	var e *LinkError
	return errors.As(err, &e) && e.Code == code
}

func (a *Account) id() string {
	if a == nil {
		return ""
	}
	return a.ID
}

// currentToken returns the access token for the next request: of the link's account or, without one, the server's.
func (l *Link) currentToken(ctx context.Context) (string, *fault) {
	a := l.peer.Account
	switch {
	case a == nil:
		return l.up.tokens.currentToken(ctx)
	case a.Token == nil:
		return "", nil
	}
	token, err := a.Token(ctx)
	var known *LinkError
	switch {
	case errors.As(err, &known):
		return "", &fault{code: known.Code, reason: known.Reason}
	case err != nil:
		return "", &fault{code: CodeUnreachable, reason: presentableText("there is no access token of the person: "+err.Error(), l.secrets)}
	}
	l.u.MaskAccount(token) // before the server learns it
	return token, nil
}

// noteStatus notes the status of a response to a request with a token. again reports whether another token may help. A
// server without a stream of its own may answer the GET for it with any status: such a response does not count.
func (l *Link) noteStatus(token string, resp *http.Response, counts bool) (again bool) {
	a := l.peer.Account
	switch {
	case a == nil:
		return l.up.tokens.noteStatus(token, resp.StatusCode)
	case !counts || !l.refusesAccount(resp):
		return false
	case resp.StatusCode == http.StatusUnauthorized:
		a.Refused(token)
		return a.Token != nil
	case a.Asked != nil:
		a.Asked(oauth.Challenge(resp.Header, "scope"))
	}
	return false
}

// refusesAccount reports whether a response means that the server refuses the link's account.
func (l *Link) refusesAccount(resp *http.Response) bool {
	return l.peer.Account != nil && (resp.StatusCode == http.StatusUnauthorized ||
		resp.StatusCode == http.StatusForbidden && oauth.Challenge(resp.Header, "error") == "insufficient_scope")
}

// maxMaskedAccounts bounds the secrets of accounts that are masked. The oldest are forgotten first.
const maxMaskedAccounts = 16 << 10

// maskedAccounts holds the secrets of accounts, newest last. They stay masked when their links have ended: a server may
// repeat them to anybody.
type maskedAccounts struct {
	mu     sync.Mutex
	recent recentSecrets
}

// MaskAccount masks a secret of an account from now on.
func (c *common) MaskAccount(text string) {
	m := &c.accounts
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(text) >= secret.MinBytes {
		m.recent.maskSecret(text, maxMaskedAccounts, c.secrets)
	}
}

// EndAccounts closes the links with accounts for which live returns false: unused ones now, the others when their last
// user leaves.
func (u *Upstreams) EndAccounts(live func(id string) bool) {
	for _, up := range u.servers {
		up.links.mu.Lock()
		for l := range up.links.links { // in any order: each is independent
			if a := l.peer.Account; a != nil && !live(a.ID) {
				l.usage.mu.Lock()
				l.usage.ends = true
				l.usage.mu.Unlock()
				if l.endUnused(0) {
					go l.Close()
				}
			}
		}
		up.links.mu.Unlock()
	}
}
