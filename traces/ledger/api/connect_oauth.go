package api

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"pgfsm/internal/identity/connect"
	"pgfsm/internal/identity/login"
	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
)

// ConnectedPath is the path to which authorization servers send browsers back, without the server's name. Each server
// has a path of its own, so that a response for one cannot count for another (RFC 9700, section 4.4.2.2).
const ConnectedPath = ConsolePath + "connected/"

const (
	connectedPage = "connected/{server}" // an authorization server sends the browser back to this page
	connectingURL = "connecting/"        // that page sends the browser on to the session's page of this path
)

// connectCookie contains an attempt to connect an account: NONCE.SESSION.SERVER. The session is the variable part of
// the session's path, if it has one.
const connectCookie = "pgfsm-connect"

// connectAttempt returns the attempt of a session with a nonce. Its state and its verifier depend on the secret of the
// session: no response counts in another session than the one that began, and nobody can plant an attempt.
func (v *visit) connectAttempt(nonce, server string) *login.SignIn {
	mac := hmac.New(sha256.New, []byte(v.secret))
	mac.Write([]byte("connect " + nonce + " " + server))
	scheme := "https://"
	if isLocal(v.r) {
		scheme = "http://"
	}
	return &login.SignIn{Secret: hex.EncodeToString(mac.Sum(nil)), Redirect: scheme + v.r.Host + ConnectedPath + server}
}

// A consentView leads a person to an authorization server. It is a link: the content policy blocks redirects of forms.
type consentView struct {
	Server, Issuer, URL string
	Scopes              []string
}

// beginConnecting begins an attempt to connect an account at an authorization server.
func (h *Handler) beginConnecting(v *visit, server *ConnectableServer) (answer, error) {
	nonce := rand.Text()
	at, err := server.OAuth.AuthorizationURL(v.r.Context(), v.connectAttempt(nonce, server.Name))
	if err != nil {
		h.Log("nobody can connect an account at " + server.Name + ": " + visible.Error(err))
		return h.connectionsPage(v, http.StatusServiceUnavailable,
			"You cannot connect an account at "+server.Name+" now. The service's log says why.")
	}
	session := strings.Trim(strings.TrimPrefix(v.base, ConsolePath), "/")
	cookie := newCookie(v.r, connectCookie, strings.Join([]string{nonce, strings.TrimPrefix(session, "s/"), server.Name}, "."), ConsolePath)
	cookie.MaxAge = int(login.Timeout / time.Second)
	http.SetCookie(v.w, cookie)
	return h.page(v, "connections", view{Title: "Connections", Tab: connectionsPage, Body: &connectionsView{
		Consent: &consentView{server.Name, server.OAuth.Issuer, at, server.OAuth.Scopes},
	}}), nil
}

// attemptedConnection returns the parts of the cookie of the attempt that the browser began.
func attemptedConnection(r *http.Request) (nonce, session, server string, ok bool) {
	sent := r.CookiesNamed(cookieName(r, connectCookie))
	if len(sent) != 1 {
		return "", "", "", false
	}
	parts := strings.SplitN(sent[0].Value, ".", 3)
	if len(parts) != 3 || parts[1] != "" && !variables["session"].MatchString(parts[1]) {
		return "", "", "", false
	}
	return parts[0], parts[1], parts[2], true
}

// errNoAttempt is the error of a response that belongs to no attempt of this browser.
var errNoAttempt = newProblem(PathUnknown, "this browser did not begin to connect an account there, took too long, or has connected it already; Connections in the console says which accounts are connected")

// returnToSession sends a browser that comes back to the page of the session that began. Without TLS, only that path
// gets the session's cookie.
func (h *Handler) returnToSession(v *visit) (answer, error) {
	_, session, server, ok := attemptedConnection(v.r)
	if !ok || server != v.id {
		return answer{}, errNoAttempt
	}
	base := ConsolePath
	if session != "" {
		base = strings.Replace(sessionPath, "{session}", session, 1)
	}
	return redirectTo(base + connectingURL + server + "?" + v.r.URL.RawQuery), nil
}

// finishConnecting connects the account of a person whom an authorization server sends back.
func (h *Handler) finishConnecting(v *visit) (answer, error) {
	nonce, _, name, ok := attemptedConnection(v.r)
	all := h.connectable()
	if !ok || name != v.id || all == nil {
		return answer{}, errNoAttempt
	}
	server := all.Find(name)
	q, err := url.ParseQuery(v.r.URL.RawQuery)
	attempt := v.connectAttempt(nonce, name)
	if server == nil || server.OAuth == nil || err != nil || attempt.CheckState(q) != nil {
		return answer{}, errNoAttempt
	}
	http.SetCookie(v.w, expireCookie(newCookie(v.r, connectCookie, "", ConsolePath)))

	grant, err := server.OAuth.Exchange(v.r.Context(), attempt, q)
	if errors.Is(err, login.ErrDenied) {
		return h.connectionsPage(v, http.StatusForbidden, "No account was connected at "+name+", because the access was refused at "+
			server.OAuth.Issuer+". Nothing was changed. To try again, connect, and allow the access there.")
	}
	if err != nil {
		h.Log("an account was not connected at " + name + ": " + visible.Error(err))
		return h.connectionsPage(v, http.StatusBadGateway, "The account at "+name+" was not connected. The service's log says why.")
	}
	made := server.ExpectedConnection()
	made.Scopes = grant.Scopes
	if ledger.ValidAccount(grant.Account) {
		made.Account = grant.Account
	}
	text, err := grant.Encode()
	if err == nil {
		_, err = h.Ledger.Connect(v.r.Context(), v.caller, all.Keys, made, string(text))
	}
	if err != nil {
		return answer{}, errors.Join(err, server.OAuth.Revoke(context.WithoutCancel(v.r.Context()), grant.Tokens))
	}
	return h.connectionChanged(v, "made")
}

// connectionChanged shows the connections after a change.
func (h *Handler) connectionChanged(v *visit, change string) (answer, error) {
	if h.Connected != nil {
		h.Connected(change)
	}
	return redirectTo(v.base + connectionsPage), nil
}

// maxRevoking is how many requests of Revoke are under way at the same time.
const maxRevoking = 8

// Revoke asks authorization servers to revoke the tokens of connections that have ended. It is an attempt, and takes no longer
// than one request may: no call uses the connections any more, whatever the authorization servers do.
func (c *Connectable) Revoke(ctx context.Context, l *ledger.Ledger, ended []ledger.Connection) error {
	ctx, cancel := context.WithTimeout(ctx, connect.RequestTimeout)
	defer cancel()
	errs := make([]error, len(ended))
	var group errgroup.Group
	group.SetLimit(maxRevoking)
	for i := range ended {
		if ended[i].Kind == ledger.ConnectionOAuth {
			group.Go(func() error {
				if err := c.revokeTokens(ctx, l, &ended[i]); err != nil {
					errs[i] = fmt.Errorf("%s: %w", ended[i].Server, err)
				}
				return nil
			})
		}
	}
	_ = group.Wait() // the errors are in errs
	return errors.Join(errs...)
}

func (c *Connectable) revokeTokens(ctx context.Context, l *ledger.Ledger, ended *ledger.Connection) error {
	server := c.Find(ended.Server)
	if server == nil || !server.Fits(ended) {
		return errors.New("the configuration does not name the connection's authorization server and client")
	}
	text, err := l.OpenCredentials(ctx, c.Keys, *ended)
	if err != nil {
		return err
	}
	tokens, err := connect.Decode(text)
	if err != nil {
		return err
	}
	return server.OAuth.Revoke(ctx, tokens)
}
