package upstream

import (
	"context"
	"crypto"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"pgfsm/internal/oauth"
	"pgfsm/internal/secret"
)

// ClientCredentials describe how to get access tokens for a server (RFC 6749, section 4.4). The
// client authenticates with its secret in the Authorization header (client_secret_basic), or with
// an assertion that its key signs (private_key_jwt, RFC 7523).
type ClientCredentials struct {
	TokenURL     string // https, or http on this machine; without user, password or fragment
	ClientID     string
	ClientSecret string        // a Key replaces it
	Key          crypto.Signer // private; nil with a ClientSecret
	Alg          string        // with a Key: its signature algorithm, from RFC 7518 or RFC 8037
	KeyID        string        // with a Key; empty: the assertion names none
	Issuer       string        // with a Key: the audience of the assertion
	Scopes       []string
	Resource     string // the server's identifier (RFC 8707); empty: not sent
	Audience     string // for providers that ask for it in place of the resource; empty: not sent
}

const (
	// refusedWait is the time during which a token that the server has never accepted stays in use
	// in spite of a 401. Without it, a server that accepts no token would cause a token request for
	// each of our requests.
	refusedWait = 10 * time.Second
	// maxRecent bounds the masked tokens, and the masked assertions, of a server. Older ones stay
	// masked because a server may repeat them.
	maxRecent = 8
)

// accessTokens gets the tokens for one server and shares them among its links. It uses each token
// until it expires or the server refuses it. Nil: the server needs none.
type accessTokens struct {
	ctx context.Context // ends with the Upstreams
	// Limit of a token request: below that of connecting, so that an error names the step.
	timeout time.Duration
	host    string // the token URL's host
	secrets *secret.Masker
	from    ClientCredentials
	client  *http.Client
	fetches singleflight.Group // one token request at a time

	mu       sync.Mutex
	token    *oauth2.Token
	since    time.Time     // the time at which the token was issued
	accepted bool          // the server has answered a request with token otherwise than with 401
	recent   recentSecrets // recent tokens
	signed   recentSecrets // recent assertions
}

// recentSecrets holds the newest secrets of one kind that exist only at run time.
type recentSecrets []string

// maskSecret makes the masker mask another secret, and forgets the oldest one of more than most.
func (r *recentSecrets) maskSecret(value string, most int, secrets *secret.Masker) {
	if slices.Contains(*r, value) {
		return
	}
	*r = append(*r, value)
	*r = (*r)[max(0, len(*r)-most):]
	secrets.Put(r, *r)
}

func newAccessTokens(ctx context.Context, s Server, secrets *secret.Masker) *accessTokens {
	if s.Auth == nil {
		return nil
	}
	origin, _ := url.Parse(s.Auth.TokenURL) // package config has parsed it before
	target := &httpTarget{origin: origin, headers: true, timeout: s.ConnectTimeout}
	return &accessTokens{
		ctx:     ctx,
		timeout: s.ConnectTimeout / 2,
		host:    origin.Host,
		secrets: secrets,
		from:    *s.Auth,
		client: &http.Client{
			Transport:     target.newTransport(),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// currentToken returns a token that is valid for some seconds, and requests one if there is none.
// Concurrent callers share one request.
func (a *accessTokens) currentToken(ctx context.Context) (string, *fault) {
	if a == nil {
		return "", nil
	}
	if token := a.validToken(); token != "" {
		return token, nil
	}
	select {
	case r := <-a.fetches.DoChan("", a.requestToken):
		f, _ := r.Err.(*fault)
		return r.Val.(string), f
	case <-ctx.Done():
		return "", a.tokenFault(contextCode(ctx), errNoAnswer)
	}
}

// validToken returns the token, or nothing if it is about to expire.
func (a *accessTokens) validToken() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.token.Valid() {
		return ""
	}
	return a.token.AccessToken
}

// requestToken makes the token request. It has its own time limit, because several callers may wait
// for it.
func (a *accessTokens) requestToken() (any, error) {
	if token := a.validToken(); token != "" { // another caller has fetched it meanwhile
		return token, nil
	}
	ctx, cancel := context.WithTimeout(a.ctx, a.timeout)
	defer cancel()
	params, client := a.params()
	token, err := client.Request(ctx, a.client, a.from.TokenURL, params)
	if err != nil {
		return "", a.requestFault(ctx, err)
	}
	if err := oauth.CheckToken(token); err != nil {
		return "", a.tokenFault(CodeProtocol, err.Error())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token, a.since, a.accepted = token, time.Now(), false
	a.recent.maskSecret(token.AccessToken, maxRecent, a.secrets) // masked before the server learns the token
	return token.AccessToken, nil
}

// params returns the parameters of the token request, and the client that makes it.
func (a *accessTokens) params() (url.Values, *oauth.Client) {
	params := make(url.Values)
	if len(a.from.Scopes) > 0 {
		params.Set("scope", strings.Join(a.from.Scopes, " "))
	}
	if a.from.Resource != "" {
		params.Set("resource", a.from.Resource)
	}
	if a.from.Audience != "" {
		params.Set("audience", a.from.Audience)
	}
	return params, &oauth.Client{
		ID:     a.from.ClientID,
		Secret: a.from.ClientSecret,
		Key:    a.from.Key,
		Alg:    a.from.Alg,
		KeyID:  a.from.KeyID,
		Issuer: a.from.Issuer,
		Mask: func(assertion string) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.signed.maskSecret(assertion, maxRecent, a.secrets)
		},
	}
}

// requestFault returns the fault for a failed token request. It repeats nothing of the response but
// the status and the error code.
func (a *accessTokens) requestFault(ctx context.Context, err error) *fault {
	status, code, refused := oauth.ErrorCode(err)
	var ownFault *fault
	var network *net.OpError
	var certificate *tls.CertificateVerificationError
	var transport *url.Error

	switch {
	case a.ctx.Err() != nil:
		return &fault{code: CodeClosed, reason: errClosed.Error()}
	case ctx.Err() != nil:
		return a.tokenFault(CodeTimeout, errNoAnswer)
	case errors.Is(err, oauth.ErrKey):
		return a.tokenFault(CodeUnreachable, err.Error())
	case refused && isRedirect(status):
		return a.tokenFault(CodeRedirect, httpReason(status))
	case refused:
		reason := httpReason(status)
		if code != "" {
			reason += ", error " + code
		}
		return a.tokenFault(CodeUnreachable, reason)
	case errors.As(err, &ownFault):
		return a.tokenFault(ownFault.code, ownFault.reason)
	case errors.As(err, &network):
		return a.tokenFault(CodeUnreachable, network.Error())
	case errors.As(err, &certificate):
		return a.tokenFault(CodeUnreachable, certificate.Error())
	case errors.As(err, &transport): // the error's text may quote the response
		return a.tokenFault(CodeUnreachable, "it did not answer in HTTP")
	}

	return a.tokenFault(CodeProtocol, "it answered with something else than an access token (RFC 6749, section 5.1)")
}

func (a *accessTokens) tokenFault(code, reason string) *fault {
	return &fault{code: code, reason: presentableText(fmt.Sprintf("there is no access token from %s: %s", a.host,
		reason),
		a.secrets)}
}

// noteStatus records the status of a response to a request with a token. again reports whether
// another token may help.
func (a *accessTokens) noteStatus(token string, status int) (again bool) {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	current := a.token != nil && a.token.AccessToken == token
	switch {
	case status != http.StatusUnauthorized:
		a.accepted = a.accepted || current
		return false
	case current && !a.accepted && time.Since(a.since) < refusedWait:
		return false
	case current:
		a.token = nil
	}
	return true
}

// statusReason describes an HTTP status of the server.
func (a *accessTokens) statusReason(status int) string {
	if a == nil || status != http.StatusUnauthorized {
		return httpReason(status)
	}
	return fmt.Sprintf("%s to the access token from %s", httpReason(status), a.host)
}

// close waits for a request under way. The Upstreams' context has ended.
func (a *accessTokens) close() {
	if a == nil {
		return
	}
	a.fetches.Do("", func() (any, error) { return "", nil })
	a.client.CloseIdleConnections()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.secrets.Put(&a.recent, nil) // from here on no text of the server is read
	a.secrets.Put(&a.signed, nil)
}

// addAuthorization returns the header with a token added; without a token it returns the header
// itself.
func addAuthorization(header http.Header, token string) http.Header {
	if token == "" {
		return header
	}
	header = header.Clone()
	header.Set("Authorization", "Bearer "+token)
	return header
}
