package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/states"
)

// The kinds of connections.
const (
	ConnectionSecret = "secret" // the credentials are a pasted token
	ConnectionOAuth  = "oauth"  // they are the tokens of an authorization server
)

// The states of a connection.
const (
	ConnectionReady   = "ready"
	ConnectionRefused = "refused" // the server refused the credentials of the last call; the next call uses them again
	ConnectionLost    = "lost"    // the credentials have expired or were withdrawn: the connection has ended, and only its row is left
)

// The reasons for which a connection ends, besides a new one in its place.
const (
	EndDisconnected = "disconnected"  // the person ended it
	EndRevoked      = "revoked"       // an admin ended it
	EndBlocked      = "blocked"       // the person was blocked
	EndTokenRevoked = "token_revoked" // the last token of the person was revoked
	EndIdle         = "idle"          // it was not used for too long
	EndLost         = "lost"          // its credentials have expired or were withdrawn
)

// Bounds of a connection.
const (
	MaxAccount    = 128      // of an account's label, in bytes
	MaxCredential = 16 << 10 // of a pasted token, in bytes: every request has it in a header
	minCredential = 8        // of a pasted token, in bytes: a shorter one could not be masked in results
	maxResource   = 2048
	// usedResave is how old the recorded last use may be: otherwise each call would write the row.
	usedResave = 15 * time.Minute
)

// A Connection holds the credentials of one person for one server. Each pair has one at most. The row is beside
// the log; the log has when connections are made and end, and nothing of their credentials.
type Connection struct {
	Person     string   `json:"person"` // see [policy.Principal]
	Server     string   `json:"server"`
	ID         string   `json:"id"` // random, and new each time the person connects
	Kind       string   `json:"kind"`
	Issuer     string   `json:"issuer"`
	Client     string   `json:"client"`
	Resource   string   `json:"resource"` // the URL of the server to which the credentials may be sent
	Scopes     []string `json:"scopes"`
	Account    string   `json:"account"` // the person's label of the account
	State      string   `json:"state"`
	Made       string   `json:"made"`
	Used       string   `json:"used"`
	Key        string   `json:"key"`        // the id of the key that sealed the credentials
	Generation int64    `json:"generation"` // of the credentials: each refresh brings the next
	Entry      int64    `json:"entry"`      // index of the entry that says that it was made
	// Asked are scopes for which the server asked in vain, and for which the configuration allows to ask.
	Asked  []string `json:"asked"`
	Holder string   `json:"-"` // refreshes the credentials, see [Ledger.RefreshConnection]; empty: nobody does
	Until  string   `json:"-"` // the end of the holder's lease or, without one, of the pause between two refreshes
	Sealed []byte   `json:"-"`
}

// ErrUnconnected means that a person has no usable connection to a server.
var ErrUnconnected = errors.New("there is no connection of this person to the server")

// Principal returns the person whose own connections the caller's calls use; empty if they use none.
func (c Caller) Principal() string {
	return policy.Principal(c.Name, c.OnBehalfOf(), c.TokenID != "" && slices.Contains(c.Roles, RolePerson))
}

// CheckCredential returns an error if a text cannot be a pasted token. The error does not repeat it.
func CheckCredential(text string) error {
	switch n := len(text); {
	case n < minCredential || n > MaxCredential:
		return fmt.Errorf("the token has %d bytes; it must have %d to %d", n, minCredential, MaxCredential)
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("the token has spaces, line ends or characters beyond ASCII: paste the token alone")
	}
	return nil
}

// ValidAccount reports whether a text can be the label of an account.
func ValidAccount(label string) bool {
	return len(label) <= MaxAccount && visible.Text(label) == label && !visible.Blank(label)
}

// Connect makes the caller's own connection to a server, in place of an earlier one. c has its server, kind,
// resource and account and, if the credential was not pasted, its issuer, client and scopes.
func (l *Ledger) Connect(ctx context.Context, by Caller, keys SealKeys, c Connection, credential string) (Connection, error) {
	if err := CheckCredential(credential); err != nil && c.Kind == ConnectionSecret {
		return c, refusedConnection("%s", err)
	}
	if c.Account != "" && !ValidAccount(c.Account) {
		return c, refusedConnection("the name of the account must have at most %d bytes, and only characters that show", MaxAccount)
	}
	c.Person, c.ID, c.State, c.Generation = by.Principal(), rand.Text(), ConnectionReady, 1
	made := &connectionMade{
		Account:  c.Account,
		Client:   c.Client,
		ID:       c.ID,
		Issuer:   c.Issuer,
		Kind:     c.Kind,
		Person:   c.Person,
		Resource: c.Resource,
		Scopes:   c.Scopes,
		Server:   c.Server,
		Token:    by.TokenID,
	}
	if err := made.checkValues(by.Name); err != nil {
		return c, err
	}
	err := l.commit(ctx, func(b *batch) error {
		if err := by.recheckAction(b, b.now, ActConnect); err != nil {
			return err
		}
		if err := b.addEvent(nil, "", by.Name, made); err != nil { // in a new ledger, the log begins here
			return err
		}
		if err := keys.seal(b, &c, []byte(credential)); err != nil {
			return err
		}
		c.Made, c.Used, c.Entry = b.now, b.now, b.entry.Index
		return b.PutConnection(c)
	})
	return c, err
}

// Disconnect ends the caller's own connection to a server. The error is [ErrConnection] if there is none.
func (l *Ledger) Disconnect(ctx context.Context, by Caller, server string) error {
	return l.commit(ctx, func(b *batch) error {
		if err := by.recheckAction(b, b.now, ActConnect); err != nil {
			return err
		}
		_, err := b.endConnections(by.Name, EndDisconnected, isOf(by.Principal(), server))
		return err
	})
}

// RevokeConnections ends the connections of a person to a server, and returns them. An empty name means all people or
// all servers, but not both. The rules of [Ledger.CreateToken] say who may revoke.
func (l *Ledger) RevokeConnections(ctx context.Context, by Caller, person, server string) (ended []Connection, err error) {
	err = l.commit(ctx, func(b *batch) (err error) {
		if err := mayManage(b, by, b.now); err != nil {
			return err
		}
		if person == "" && server == "" {
			return refusedConnection("name a person or a server")
		}
		ended, err = b.endConnections(by.Name, EndRevoked, func(c *Connection) bool {
			return (person == "" || c.Person == person) && (server == "" || c.Server == server)
		})
		return err
	})
	return ended, err
}

// isOf returns a function that finds the connections of a person, and of a server unless its name is empty.
func isOf(person, server string) func(*Connection) bool {
	return func(c *Connection) bool { return c.Person == person && (server == "" || c.Server == server) }
}

// EndIdleConnections ends the connections that nobody has used for some time.
func (l *Ledger) EndIdleConnections(ctx context.Context, idle time.Duration) error {
	isIdle := func(now string) func(*Connection) bool {
		return func(c *Connection) bool { return now >= addToTime(c.Used, idle) }
	}
	var found []Connection
	err := l.View(ctx, func(r Reader) error {
		now, err := l.readTime(r)
		if err != nil {
			return err
		}
		found, err = connectionsWhere(r, isIdle(now))
		return err
	})
	if err != nil || len(found) == 0 {
		return err
	}
	return l.commit(ctx, func(b *batch) error {
		_, err := b.endConnections(l.owner, EndIdle, isIdle(b.now))
		if errors.Is(err, ErrConnection) { // another replica was faster, or somebody has used it
			return nil
		}
		return err
	})
}

// connectionsWhere returns the connections for which is returns true.
func connectionsWhere(r Reader, is func(*Connection) bool) (found []Connection, err error) {
	for c, err := range r.Connections() {
		if err != nil {
			return nil, err
		}
		if is(&c) {
			found = append(found, c)
		}
	}
	return found, nil
}

// endConnections ends the connections for which is returns true, and returns them. The error is [ErrConnection] if
// there are none.
func (b *batch) endConnections(by, reason string, is func(*Connection) bool) ([]Connection, error) {
	found, err := connectionsWhere(b, is)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, refusedConnection("there is no such connection; pgfsm connections list shows all")
	}
	for i := range found {
		if err := b.endConnection(by, reason, &found[i]); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// endConnection ends a connection. If its credentials are lost, its row stays and says so to the person. A lost one has
// ended already: only its row goes.
func (b *batch) endConnection(by, reason string, c *Connection) error {
	b.wrote = true
	if c.Usable() {
		if err := b.addEvent(nil, "", by, &connectionEnded{ID: c.ID, Person: c.Person, Reason: reason, Server: c.Server}); err != nil {
			return err
		}
		b.ended = append(b.ended, *c)
	}
	if reason == EndLost {
		c.State, c.Sealed = ConnectionLost, []byte{}
		return b.PutConnection(*c)
	}
	return b.DropConnection(c.Person, c.Server)
}

// endAllConnections ends all connections of a person, if there are any.
func (b *batch) endAllConnections(by, reason, person string) error {
	_, err := b.endConnections(by, reason, isOf(person, ""))
	if errors.Is(err, ErrConnection) {
		return nil
	}
	return err
}

// Fits reports whether the connection is of the kind, and with the issuer, client and resource, that the configuration
// of its server names: it is not used otherwise.
func (c *Connection) Fits(want *Connection) bool {
	return c.Kind == want.Kind && c.Issuer == want.Issuer && c.Client == want.Client && c.Resource == want.Resource
}

// Usable reports whether the connection has not ended.
func (c *Connection) Usable() bool { return c.State == ConnectionReady || c.State == ConnectionRefused }

// FindConnection returns the usable connection of a person to a server that fits, and its credentials. The error is
// [ErrUnconnected] if there is none, and [ErrSealed] if the credentials do not open.
func (l *Ledger) FindConnection(ctx context.Context, keys SealKeys, want Connection) (c Connection, credentials string, err error) {
	err = l.View(ctx, func(r Reader) error {
		switch c, err = r.Connection(want.Person, want.Server); {
		case errors.Is(err, ErrNotFound):
			return ErrUnconnected
		case err != nil:
			return err
		case !c.Usable() || !c.Fits(&want):
			return ErrUnconnected
		}
		opened, err := keys.open(r, &c)
		credentials = string(opened)
		return err
	})
	return c, credentials, err
}

// OpenCredentials returns the credentials of a row. The error is [ErrSealed] if they do not open.
func (l *Ledger) OpenCredentials(ctx context.Context, keys SealKeys, c Connection) (credentials []byte, err error) {
	err = l.View(ctx, func(r Reader) error {
		credentials, err = keys.open(r, &c)
		return err
	})
	return credentials, err
}

// LoseConnection ends a connection whose credentials can never be used again. lost is false if the connection is not the
// person's any more.
func (l *Ledger) LoseConnection(ctx context.Context, person, server, id string) (lost bool, err error) {
	err = l.changeConnection(ctx, person, server, id, func(b *batch, c *Connection) error {
		lost = true
		return b.endConnection(l.owner, EndLost, c)
	})
	return lost && err == nil, err
}

// NoteRefused notes that a server refused a call: for lack of the scopes asked, which the person can grant, or else for the
// credentials.
func (l *Ledger) NoteRefused(ctx context.Context, person, server, id string, asked []string) error {
	return l.changeConnection(ctx, person, server, id, func(b *batch, c *Connection) error {
		switch {
		case len(asked) > 0:
			c.Asked = asked
		case c.State == ConnectionRefused:
			return nil
		default:
			c.State = ConnectionRefused
		}
		b.wrote = true
		return b.PutConnection(*c)
	})
}

// changeConnection calls change with a connection of a person, unless it has ended.
func (l *Ledger) changeConnection(ctx context.Context, person, server, id string, change func(*batch, *Connection) error) error {
	return l.commit(ctx, func(b *batch) error {
		c, err := b.Connection(person, server)
		if errors.Is(err, ErrNotFound) || err == nil && (c.ID != id || !c.Usable()) {
			return nil
		}
		if err != nil {
			return err
		}
		return change(b, &c)
	})
}

// ResealConnections seals the credentials that the first key has not sealed with that key, and returns how many it
// sealed. The rules of [Ledger.CreateToken] say who may do it.
func (l *Ledger) ResealConnections(ctx context.Context, by Caller, keys SealKeys) (sealed int, err error) {
	err = l.commit(ctx, func(b *batch) error {
		sealed = 0
		if err := mayManage(b, by, b.now); err != nil {
			return err
		}
		if len(keys) == 0 {
			return refusedConnection("connections.keys of the configuration names no key")
		}
		first, err := keyID(keys[0])
		if err != nil {
			return err
		}
		old, err := connectionsWhere(b, func(c *Connection) bool { return c.Key != first && c.Usable() })
		if err != nil || len(old) == 0 {
			return err
		}
		if slices.ContainsFunc(old, func(c Connection) bool { return c.Holder != "" && c.Until > b.now }) {
			return refusedConnection("a gateway is refreshing credentials; repeat the command in a minute")
		}
		for i := range old {
			credentials, err := keys.open(b, &old[i])
			if err != nil {
				return fmt.Errorf("%s, %s: %w", visible.Text(old[i].Person), old[i].Server, err)
			}
			if err := keys.seal(b, &old[i], credentials); err != nil {
				return err
			}
		}
		b.wrote, sealed = true, len(old)
		for i := range old {
			if err := b.PutConnection(old[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return sealed, err
}

// accountEnded returns why the call of a request may not be made with its account any more; empty if it may, or if
// the request has none.
func accountEnded(r Reader, q *states.Request, server string) (c Connection, reason string, err error) {
	if q.Account == nil {
		return c, "", nil
	}
	c, err = r.Connection(q.Principal(), server)
	switch {
	case errors.Is(err, ErrNotFound):
		return c, "The connection with which the call was requested has ended.", nil
	case err != nil:
		return c, "", err
	case c.ID != q.Account.Connection:
		return c, "The connection with which the call was requested was replaced by another.", nil
	case !c.Usable():
		return c, "The credentials of the connection with which the call was requested cannot be used any more.", nil
	}
	return c, "", nil
}

// checkAccount returns [ErrCredentials] if the call is about to be held or sent, and its connection is not the
// person's any more.
func (r *RunRecorder) checkAccount(b Reader) (err error) {
	if r.header.Request.Account == nil {
		return nil
	}
	var reason string
	if r.account, reason, err = accountEnded(b, &r.header.Request, r.run.Plan().Server); reason != "" {
		return &Refusal{Code: RefusedCredentials, Message: reason}
	}
	return err
}

// touchAccount notes that the connection of the call was used. The server may accept now what it refused before.
func (r *RunRecorder) touchAccount(b *batch) error {
	c := r.account
	if r.header.Request.Account == nil || c.State == ConnectionReady && b.now < addToTime(c.Used, usedResave) {
		return nil
	}
	c.Used, c.State = b.now, ConnectionReady
	return b.PutConnection(c)
}

func refusedConnection(format string, args ...any) error {
	return &Refusal{Code: RefusedConnection, Message: fmt.Sprintf(format, args...)}
}

// ConnectionChanges are the changes of connections since an entry.
type ConnectionChanges struct {
	Last   int64           // index of the last entry about connections; 0: there is none
	People map[string]bool // whose connections were made or have ended
	Usable map[string]bool // the ids of the connections that can be used now; nil without changes
}

// ReadConnectionChanges reads the changes of connections after an entry, which may be negative: then it finds the last entry,
// and no changes.
func ReadConnectionChanges(r Reader, after int64) (c ConnectionChanges, err error) {
	c.Last, c.People = max(after, 0), make(map[string]bool)
	for _, t := range []Type{ConnectionMade, ConnectionEnded} {
		if after < 0 {
			switch e, err := r.LastOfType(t); {
			case err == nil:
				c.Last = max(c.Last, e.Index)
			case !errors.Is(err, ErrNotFound):
				return c, err
			}
			continue
		}
		for e, err := range r.EntriesOfType(t, after+1) {
			if err != nil {
				return c, err
			}
			event, err := e.singleEvent()
			if err != nil {
				return c, err
			}
			c.Last = max(c.Last, e.Index)
			switch p := event.payload.(type) {
			case *connectionMade:
				c.People[p.Person] = true
			case *connectionEnded:
				c.People[p.Person] = true
			}
		}
	}
	if c.Last == after {
		return c, nil
	}

	usable, err := connectionsWhere(r, (*Connection).Usable)
	c.Usable = make(map[string]bool)
	for i := range usable {
		c.Usable[usable[i].ID] = true
	}
	return c, err
}
