package present

import "pgfsm/traces/ledger"

// A Token is a token without its secret.
type Token struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Role    string `json:"role"`
	Active  bool   `json:"active"`
	Created string `json:"created"`
	Expires string `json:"expires"` // empty: never
	Revoked string `json:"revoked"` // empty: not revoked
}

// NewToken returns a token with its status at a time.
func NewToken(t *ledger.Token, now string) Token {
	return Token{t.ID, t.Name, t.Role, t.Active(now), t.Created, t.Expires, t.Revoked}
}

// ExpiryText describes the expiry of the token.
func (t *Token) ExpiryText() string {
	switch {
	case t.Revoked != "":
		return "revoked " + t.Revoked
	case !t.Active:
		return "expired " + t.Expires
	case t.Expires == "":
		return "expires never"
	}
	return "expires " + t.Expires
}
