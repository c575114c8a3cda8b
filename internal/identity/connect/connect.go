// Package connect gets a person's own tokens for an MCP server from the server's authorization server, refreshes them
// and revokes them. The operator pins the authorization server: nothing that the MCP server says chooses another one.
//
//	url, err := s.AuthorizationURL(ctx, attempt) // RFC 6749 section 4.1, with PKCE (RFC 7636) and a resource (RFC 8707)
//	grant, err := s.Exchange(ctx, attempt, query)
//	tokens, err := s.Refresh(ctx, grant.Tokens)
//	err = s.Revoke(ctx, tokens) // RFC 7009
//
// Errors and log lines have no text of a token or of a response but its error code.
package connect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/oauth2"

	"pgfsm/internal/identity"
	"pgfsm/internal/identity/login"
	"pgfsm/internal/oauth"
	"pgfsm/internal/secret"
	"pgfsm/internal/visible"
)

const (
	// RequestTimeout bounds a request to an authorization server, so that its lease in the ledger lasts longer.
	RequestTimeout = 10 * time.Second
	// metadataAge is how long fetched metadata is used.
	metadataAge = 5 * time.Minute
)

// ErrGrant means that the authorization server does not accept a code or a refresh token, and never will: the person
// has to connect again.
var ErrGrant = errors.New("the authorization server refused: invalid_grant")

// A Server is an MCP server, and the authorization server for the tokens of people who use it. Its fields do not
// change after its first use.
type Server struct {
	oauth.Client // Issuer identifies the authorization server, character by character

	URL       string // of the MCP server
	Resource  string // the server's identifier for the authorization server (RFC 8707); empty: no request names it
	Scopes    []string
	Endpoints Endpoints // of an issuer that publishes no metadata; zero: they are in its metadata
	Account   string    // JSON Pointer to the account's label, in the token response or the ID token; empty: there are no labels
	HTTP      *http.Client
	// MaskToken is called with each token before anybody else learns it; nil: tokens are not masked.
	MaskToken func(token string)

	mu      sync.Mutex
	found   *Metadata
	fetched time.Time
}

// Tokens are the credentials of a connection.
type Tokens struct {
	Access  string    `json:"access"`
	Refresh string    `json:"refresh,omitzero"` // empty: the tokens cannot be refreshed
	Expires time.Time `json:"expires,omitzero"` // zero: the authorization server does not say
}

// A Grant is the outcome of a connection that a person has made.
type Grant struct {
	Tokens
	Scopes  []string
	Account string // the label of the account, as the server has it; empty: unknown
}

// NewHTTPClient returns a client for requests to authorization servers. It follows no redirects: they could take a code
// or a secret to another host.
func NewHTTPClient() *http.Client {
	return &http.Client{
		Timeout:       RequestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Encode returns the tokens as they are sealed.
func (t Tokens) Encode() ([]byte, error) { return json.Marshal(t) }

// Decode returns the tokens that were encoded.
func Decode(text []byte) (t Tokens, err error) {
	if json.Unmarshal(text, &t) != nil || t.Access == "" {
		return t, errors.New("the credentials are not the tokens of a connection")
	}
	return t, nil
}

// ExpireWithin reports whether the access token is invalid after a time.
func (t Tokens) ExpireWithin(d time.Duration) bool {
	return !t.Expires.IsZero() && time.Until(t.Expires) < d
}

// AuthorizationURL returns the URL at which the person's browser begins. It first checks that the MCP server still
// names the pinned issuer.
func (s *Server) AuthorizationURL(ctx context.Context, attempt *login.SignIn) (string, error) {
	if _, err := s.checkResource(ctx); err != nil {
		return "", err
	}
	m, err := s.metadata(ctx)
	if err != nil {
		return "", err
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(attempt.Verifier())}
	if s.Resource != "" {
		options = append(options, oauth2.SetAuthURLParam("resource", s.Resource))
	}
	if slices.Contains(s.Scopes, scopeOpenID) {
		options = append(options, oauth2.SetAuthURLParam("nonce", attempt.Nonce()))
	}
	config := oauth2.Config{
		ClientID:    s.ID,
		Endpoint:    oauth2.Endpoint{AuthURL: m.Authorization},
		RedirectURL: attempt.Redirect,
		Scopes:      s.Scopes,
	}
	return config.AuthCodeURL(attempt.State(), options...), nil
}

const scopeOpenID = "openid"

// Exchange returns the tokens for an authorization response. The response may carry an error, which counts only if the
// response belongs to the attempt and comes from the issuer.
func (s *Server) Exchange(ctx context.Context, attempt *login.SignIn, response url.Values) (g Grant, err error) {
	if err := attempt.CheckState(response); err != nil {
		return g, err
	}
	m, err := s.metadata(ctx)
	if err != nil {
		return g, err
	}
	code, err := login.ReadCode(s.Issuer, m.NamesIssuer, response)
	if err != nil {
		return g, err
	}
	token, err := s.request(ctx, m, url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {code},
		"redirect_uri":  {attempt.Redirect},
		"code_verifier": {attempt.Verifier()},
	})
	if err != nil {
		return g, err
	}
	g = Grant{Tokens: tokensOf(token), Scopes: s.Scopes, Account: s.accountOf(ctx, token, attempt)}
	if granted := grantedScopes(token); granted != nil {
		g.Scopes = granted
	}
	return g, nil
}

// Refresh returns new tokens in place of some. The error is [ErrGrant] if the refresh token is not accepted any more,
// and then it never is again. scopes are those of the connection: tokens with more are refused.
func (s *Server) Refresh(ctx context.Context, old Tokens, scopes []string) (t Tokens, err error) {
	m, err := s.metadata(ctx)
	if err != nil {
		return t, err
	}
	token, err := s.request(ctx, m, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {old.Refresh}})
	if err != nil {
		return t, err
	}
	for _, scope := range grantedScopes(token) {
		if len(scopes) > 0 && !slices.Contains(scopes, scope) {
			return t, fmt.Errorf("%w: a refreshed token has more scopes than the person granted", ErrGrant)
		}
	}
	return tokensOf(token), nil
}

// Revoke asks the authorization server to revoke the tokens. Without a revocation endpoint it does nothing.
func (s *Server) Revoke(ctx context.Context, t Tokens) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	m, err := s.metadata(ctx)
	if err != nil || m.Revocation == "" {
		return err
	}
	if t.Refresh != "" { // a server revokes its access tokens, too (RFC 7009, section 2.1)
		return s.client(m).Revoke(ctx, s.HTTP, m.Revocation, t.Refresh, "refresh_token")
	}
	return s.client(m).Revoke(ctx, s.HTTP, m.Revocation, t.Access, "access_token")
}

// client returns the client as the issuer wants it to authenticate.
func (s *Server) client(m *Metadata) *oauth.Client {
	c := s.Client
	c.Post = m.secretMethod() == secretPost
	return &c
}

// request makes one request to the token endpoint, and checks the tokens in the response.
func (s *Server) request(ctx context.Context, m *Metadata, params url.Values) (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	if s.Resource != "" {
		params.Set("resource", s.Resource)
	}
	token, err := s.client(m).Request(ctx, s.HTTP, m.Token, params)
	switch status, code, refused := oauth.ErrorCode(err); {
	case refused && code == "invalid_grant":
		return nil, ErrGrant
	case refused && code != "":
		return nil, errors.New("the authorization server refused: " + code)
	case refused:
		return nil, fmt.Errorf("the token endpoint answered with the status %d", status)
	case errors.Is(err, oauth.ErrKey):
		return nil, err
	case err != nil: // its text may quote the response
		return nil, errors.New("the token endpoint did not answer with an access token")
	}
	if err := oauth.CheckToken(token); err != nil {
		return nil, fmt.Errorf("the token endpoint did not answer with an access token: %w", err)
	}
	if n := len(token.RefreshToken); n > oauth.MaxToken || n > 0 && n < secret.MinBytes {
		return nil, fmt.Errorf("the token endpoint answered with a refresh token of %d bytes, which cannot be used", n)
	}
	if s.MaskToken != nil {
		s.MaskToken(token.AccessToken)
		if token.RefreshToken != "" {
			s.MaskToken(token.RefreshToken)
		}
	}
	return token, nil
}

func tokensOf(t *oauth2.Token) Tokens {
	return Tokens{Access: t.AccessToken, Refresh: t.RefreshToken, Expires: t.Expiry.UTC()}
}

// grantedScopes returns the scopes in a token response; nil if it names none, and so granted those of the request
// (RFC 6749, section 5.1). Some servers separate them by commas.
func grantedScopes(t *oauth2.Token) []string {
	text, _ := t.Extra("scope").(string)
	fields := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
	fields = slices.DeleteFunc(fields, func(f string) bool { return visible.Text(f) != f })
	slices.Sort(fields)
	return slices.Compact(fields)
}

// accountOf returns the label of the account: from the token response or, if that has none, from the verified ID token.
func (s *Server) accountOf(ctx context.Context, t *oauth2.Token, attempt *login.SignIn) string {
	label := s.labelOf(t)
	if raw, ok := t.Extra("id_token").(string); ok && label == "" && s.Account != "" {
		providers := identity.New(identity.Options{
			Issuers: []identity.Issuer{{URL: s.Issuer, Display: s.Account, People: []string{s.ID}}},
			Client:  s.HTTP,
		})
		who, _, err := providers.IDToken(ctx, s.Issuer, s.ID, raw, attempt.Nonce())
		if err == nil && who.Identity != nil {
			label = who.Identity.Display
		}
	}
	return label
}

// labelOf returns the label in a token response.
func (s *Server) labelOf(t *oauth2.Token) string {
	if s.Account == "" {
		return ""
	}
	var at any
	for i, name := range slices.Collect(jsontext.Pointer(s.Account).Tokens()) {
		if i == 0 {
			at = t.Extra(name)
			continue
		}
		object, _ := at.(map[string]any)
		at = object[name]
	}
	label, _ := at.(string)
	return label
}
