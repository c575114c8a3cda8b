package upstream

import (
	"errors"
	"net/http"
	"sync"

	"pgfsm/internal/secret"
)

// An Account is a person's own credentials for one server. A link with an account sends no other credentials, and no
// client without that account uses it.
type Account struct {
	ID     string // names the person's connection; another one has another id
	Header Header // sent with every request
	Secret string // the part of the header that must never be shown

	Issuer, Label string // how the record names the account
	Scopes        []string

	// Refused is called when the server answers a request with 401. It must not block.
	Refused func()
}

var errNoAccount = &LinkError{CodeCredentialsNeeded, "each person uses it with an account of their own, and no person's is used here"}

// NeedsAccount reports whether an error says that a server is used with people's own accounts, and there is none.
func NeedsAccount(err error) bool {
	var e *LinkError
	return errors.As(err, &e) && e.Code == CodeCredentialsNeeded
}

func (a *Account) id() string {
	if a == nil {
		return ""
	}
	return a.ID
}

// tokens returns the source of the server's access tokens; nil for a link with an account.
func (l *Link) tokens() *accessTokens {
	if l.peer.Account != nil {
		return nil
	}
	return l.up.tokens
}

// refusesAccount reports whether a status means that the server refuses the link's account.
func (l *Link) refusesAccount(status int) bool {
	return l.peer.Account != nil && status == http.StatusUnauthorized
}

// maxMaskedAccounts bounds the secrets of accounts that are masked. The oldest are forgotten first.
const maxMaskedAccounts = 16 << 10

// maskedAccounts holds the secrets of accounts, newest last. They stay masked when their links have ended: a server may
// repeat them to anybody.
type maskedAccounts struct {
	mu     sync.Mutex
	recent recentSecrets
}

func (c *common) maskAccount(a *Account) {
	m := &c.accounts
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(a.Secret) >= secret.MinBytes {
		m.recent.maskSecret(a.Secret, maxMaskedAccounts, c.secrets)
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
