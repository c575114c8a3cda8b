package api

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"pgfsm/internal/identity/connect"
	"pgfsm/traces/ledger"
)

// ConnectionsPath is the path of the page where people connect their accounts.
const ConnectionsPath = ConsolePath + connectionsPage

const connectionsPage = "connections"

// maxConnectForm bounds the form that connects an account, in bytes: each byte of the token may be escaped.
const maxConnectForm = 3*ledger.MaxCredential + MaxBody

// Connectable are the servers at which people connect accounts.
type Connectable struct {
	Keys    ledger.SealKeys
	Idle    time.Duration // a connection that no call has used for that time ends
	Servers []ConnectableServer
}

// A ConnectableServer is a server that people use with accounts of their own.
type ConnectableServer struct {
	Name     string
	Resource string // the server's URL
	Machines bool   // the server has credentials for clients without a person

	OAuth *connect.Server // people sign in there; nil: they paste tokens

	Hint           string // where people get a token to paste; may be empty
	Header, Prefix string // how it is sent
}

// ExpectedConnection returns what a connection must have so that it is used for the server.
func (s *ConnectableServer) ExpectedConnection() ledger.Connection {
	c := ledger.Connection{Server: s.Name, Kind: ledger.ConnectionSecret, Resource: s.Resource}
	if s.OAuth != nil {
		c.Kind, c.Issuer, c.Client = ledger.ConnectionOAuth, s.OAuth.Issuer, s.OAuth.ID
	}
	return c
}

// Fits reports whether a connection is one that the server's configuration allows.
func (s *ConnectableServer) Fits(c *ledger.Connection) bool {
	want := s.ExpectedConnection()
	return c.Fits(&want)
}

// Unusable says why no call uses a connection; empty if calls do.
func (c *Connectable) Unusable(r ledger.Reader, row *ledger.Connection) string {
	switch server := c.Find(row.Server); {
	case !row.Usable():
		return "the credentials are not accepted any more"
	case server == nil:
		return "the configuration has no such server with accounts of people"
	case !server.Fits(row):
		return "the configuration of the server has changed"
	case !c.Keys.Opens(r, row):
		return "no key of connections.keys opens the credentials, or the row was changed"
	}
	return ""
}

// Find returns the server of a name; nil if people have no accounts at it.
func (c *Connectable) Find(server string) *ConnectableServer {
	i := slices.IndexFunc(c.servers(), func(s ConnectableServer) bool { return s.Name == server })
	if i < 0 {
		return nil
	}
	return &c.Servers[i]
}

// connectable returns the servers at which people connect accounts; nil if there are none.
func (h *Handler) connectable() *Connectable {
	if h.Connectable == nil {
		return nil
	}
	return h.Connectable()
}

// entrance returns the actions one of which lets people sign in.
func (h *Handler) entrance() []ledger.Action {
	if h.connectable() == nil {
		return readers
	}
	return []ledger.Action{ledger.ActRead, ledger.ActConnect}
}

// A connectionsView is the page of a person's own connections.
type connectionsView struct {
	Error   string
	Consent *consentView // nil: the page shows the servers
	Servers []connectionView
}

// A connectionView is a server, and the person's connection to it.
type connectionView struct {
	ConnectableServer
	ledger.Connection
	Connected bool
	Unusable  string // see [Connectable.Unusable]
}

func (h *Handler) showConnections(v *visit) (answer, error) {
	return h.connectionsPage(v, http.StatusOK, "")
}

// connectionsPage shows the person's own connections, and nothing of others.
func (h *Handler) connectionsPage(v *visit, status int, failed string) (answer, error) {
	body := connectionsView{Error: failed}
	err := h.readLedger(v, func(r ledger.Reader) error {
		all := h.connectable()
		for _, s := range all.servers() {
			one := connectionView{ConnectableServer: s}
			c, err := r.Connection(v.caller.Principal(), s.Name)
			if err != nil && !errors.Is(err, ledger.ErrNotFound) {
				return err
			}
			one.Connection, one.Connected = c, err == nil
			if one.Connected {
				one.Unusable = all.Unusable(r, &c)
			}
			body.Servers = append(body.Servers, one)
		}
		return nil
	})
	if err != nil {
		return answer{}, err
	}
	return h.page(v, "connections", view{Status: status, Title: "Connections", Tab: connectionsPage, Body: &body}), nil
}

func (c *Connectable) servers() []ConnectableServer {
	if c == nil {
		return nil
	}
	return c.Servers
}

// changeConnection connects an account, or disconnects it.
func (h *Handler) changeConnection(v *visit) (answer, error) {
	fields, err := v.readForm(maxConnectForm, "server", "account", "token", "do")
	if err != nil {
		return answer{}, err
	}
	all := h.connectable()
	if all == nil {
		return answer{}, errForm
	}

	change, server := "ended", all.Find(fields["server"])
	switch {
	case fields["do"] == "disconnect":
		err = h.Ledger.Disconnect(v.r.Context(), v.caller, fields["server"])
	case server == nil:
		return answer{}, errForm
	case !h.asking.Allow(): // each connection is an entry, and a request to an authorization server
		return h.connectionsPage(v, http.StatusTooManyRequests, "Many people are connecting now. Try again in a few seconds.")
	case server.OAuth != nil:
		return h.beginConnecting(v, server)
	default:
		change = "made"
		made := server.ExpectedConnection()
		made.Account = strings.TrimSpace(fields["account"])
		_, err = h.Ledger.Connect(v.r.Context(), v.caller, all.Keys, made, strings.TrimSpace(fields["token"]))
	}
	if errors.Is(err, ledger.ErrConnection) {
		p := problem{Detail: err.Error()}
		return h.connectionsPage(v, http.StatusUnprocessableEntity, p.sentence())
	}
	if err != nil {
		return answer{}, err
	}
	return h.connectionChanged(v, change)
}
