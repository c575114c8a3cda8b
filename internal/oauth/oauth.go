// Package oauth makes the requests of an OAuth 2.0 client to a token endpoint, for every grant. Its callers decide
// which endpoint gets a request, and through which HTTP client.
//
// golang.org/x/oauth2 reads the response. Its own flows are not used: they cannot send a resource with a refresh
// (RFC 8707), and they refresh tokens without telling their caller.
package oauth

import (
	"context"
	"crypto"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"pgfsm/internal/secret"
)

// A Client says how a client authenticates to its authorization server: with its secret in the Authorization header
// (client_secret_basic) or in the form (client_secret_post), with an assertion that its key signs (private_key_jwt,
// RFC 7523), or, without both, by its id alone.
type Client struct {
	ID     string
	Secret string        // a Key replaces it
	Post   bool          // the form has the Secret; false: the Authorization header has it
	Key    crypto.Signer // private
	Alg    string        // with a Key: its signature algorithm, from RFC 7518 or RFC 8037
	KeyID  string        // with a Key; empty: the assertion names none
	Issuer string        // with a Key: the audience of the assertion

	// Mask is called with each assertion before the endpoint learns it; nil: assertions are not masked.
	Mask func(assertion string)
}

// ErrKey means that the private key did not sign. The key's own error may contain anything.
var ErrKey = errors.New("the private key did not sign")

const (
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" // RFC 7523, section 2.2
	// assertionLife is the validity of an assertion. It leaves room for clocks that differ.
	assertionLife = 2 * time.Minute
	// MaxToken bounds an access token in bytes. Every request carries it in a header.
	MaxToken = 16 << 10
)

var (
	// tokenForm is the b64token of RFC 6750, section 2.1.
	tokenForm = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)
	// errorForm matches the error codes of RFC 6749, section 5.2, and of its extensions. Other texts of a token
	// endpoint are not repeated: it got secrets, and may repeat them.
	errorForm = regexp.MustCompile(`^[a-z_]{1,64}$`)
)

// Request makes one token request. Its parameters contain the grant type, if that is not client_credentials.
func (c *Client) Request(ctx context.Context, h *http.Client, endpoint string, params url.Values) (*oauth2.Token, error) {
	style, err := c.authenticate(params)
	if err != nil {
		return nil, err
	}
	config := &clientcredentials.Config{
		ClientID:       c.ID,
		TokenURL:       endpoint,
		EndpointParams: params,
		AuthStyle:      style,
	}
	if c.Key == nil {
		config.ClientSecret = c.Secret
	}
	return config.Token(context.WithValue(ctx, oauth2.HTTPClient, h))
}

// Revoke asks an authorization server to revoke a token (RFC 7009).
func (c *Client) Revoke(ctx context.Context, h *http.Client, endpoint, token, hint string) error {
	form := url.Values{"token": {token}, "token_type_hint": {hint}}
	style, err := c.authenticate(form)
	if err != nil {
		return err
	}
	if style == oauth2.AuthStyleInParams {
		form.Set("client_id", c.ID)
		if c.Key == nil && c.Secret != "" {
			form.Set("client_secret", c.Secret)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return errors.New("the revocation endpoint cannot be requested")
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if style == oauth2.AuthStyleInHeader {
		r.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(c.Secret)) // RFC 6749, section 2.3.1
	}
	response, err := h.Do(r)
	if err != nil {
		return errors.New("the revocation endpoint did not answer")
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, MaxToken)
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the revocation endpoint answered with the status %d", response.StatusCode)
	}
	return nil
}

// authenticate adds a new assertion to a form, if the client has a key, and returns how the client names itself.
func (c *Client) authenticate(form url.Values) (oauth2.AuthStyle, error) {
	switch {
	case c.Key != nil:
		assertion, err := c.signAssertion(time.Now())
		if err != nil {
			return 0, ErrKey
		}
		if c.Mask != nil {
			c.Mask(assertion)
		}
		form.Set("client_assertion_type", assertionType)
		form.Set("client_assertion", assertion)
	case c.Secret != "" && !c.Post:
		return oauth2.AuthStyleInHeader, nil
	}
	return oauth2.AuthStyleInParams, nil
}

// signAssertion returns a new assertion of the client for its provider (RFC 7523, section 3). Its only audience is
// the issuer: a provider could use an assertion with more audiences at another provider.
func (c *Client) signAssertion(now time.Time) (string, error) {
	s, err := jose.NewSigner(jose.SigningKey{
		Algorithm: jose.SignatureAlgorithm(c.Alg), Key: jose.JSONWebKey{Key: c.Key, KeyID: c.KeyID},
	}, new(jose.SignerOptions).WithType("JWT"))
	if err != nil {
		return "", err
	}

	claims, err := json.Marshal(struct {
		Issuer   string `json:"iss"`
		Subject  string `json:"sub"`
		Audience string `json:"aud"`
		ID       string `json:"jti"`
		IssuedAt int64  `json:"iat"`
		Expiry   int64  `json:"exp"`
	}{c.ID, c.ID, c.Issuer, rand.Text(), now.Unix(), now.Add(assertionLife).Unix()})
	if err != nil {
		return "", err
	}

	signed, err := s.Sign(claims)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// CheckToken returns why an access token cannot be used. The error does not repeat it.
func CheckToken(t *oauth2.Token) error {
	switch n := len(t.AccessToken); {
	case t.Type() != "Bearer":
		return errors.New("its token is not of type Bearer")
	case n < secret.MinBytes:
		return fmt.Errorf("its token has fewer than %d bytes, so that it could not be masked", secret.MinBytes)
	case n > MaxToken:
		return fmt.Errorf("its token has more than %d bytes", MaxToken)
	case !tokenForm.MatchString(t.AccessToken):
		return errors.New("its token has characters that a header may not have (RFC 6750, section 2.1)")
	}
	return nil
}

// ErrorCode returns the HTTP status and the error code with which an endpoint refused a token request. The code is
// empty if the endpoint sent none that has the form of one. ok is false for other errors.
func ErrorCode(err error) (status int, code string, ok bool) {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) {
		return 0, "", false
	}
	if errorForm.MatchString(refused.ErrorCode) {
		code = refused.ErrorCode
	}
	return refused.Response.StatusCode, code, true
}

// Challenge returns a parameter of the Bearer challenge in a response's header WWW-Authenticate.
func Challenge(h http.Header, param string) string {
	challenges, err := oauthex.ParseWWWAuthenticate(h["Www-Authenticate"])
	if err != nil {
		return ""
	}
	for _, c := range challenges {
		if c.Scheme == "bearer" {
			return c.Params[param]
		}
	}
	return ""
}
