package login

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/oauth2"
)

// A SignIn is a person's attempt to sign in at a web site.
type SignIn struct {
	Secret   string        // random, and known only to the site and the person's browser
	Redirect string        // the URL to which the provider sends the browser back
	MaxAge   time.Duration // the greatest age of the person's authentication at the provider; 0: any
}

// Values that an attempt sends to the provider. Each is derived from the secret, so that a browser
// keeps one value, and none of them tells another one.
func (s *SignIn) deriveValue(purpose string) string {
	mac := hmac.New(sha256.New, []byte(s.Secret))
	mac.Write([]byte(purpose))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Nonce is the nonce that the ID token must have.
func (s *SignIn) Nonce() string { return s.deriveValue("nonce") }

// State is the state of the authorization request. The response must have it.
func (s *SignIn) State() string { return s.deriveValue("state") }

// Verifier is the verifier of the code (RFC 7636).
func (s *SignIn) Verifier() string { return s.deriveValue("verifier") }

// CheckState returns [ErrState] unless an authorization response belongs to the attempt.
func (s *SignIn) CheckState(q url.Values) error {
	if !hmac.Equal([]byte(q.Get("state")), []byte(s.State())) {
		return ErrState
	}
	return nil
}

// SignInURL returns the URL at the provider where the person's browser begins.
func (c *Client) SignInURL(ctx context.Context, s *SignIn) (string, error) {
	endpoints, err := c.Providers.Endpoints(ctx, c.Issuer)
	if err != nil {
		return "", err
	}
	o := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(s.Verifier()),
		oauth2.SetAuthURLParam("nonce", s.Nonce())}
	if s.MaxAge > 0 {
		o = append(o, oauth2.SetAuthURLParam("max_age", strconv.FormatInt(int64(s.MaxAge/time.Second), 10)))
	}
	return c.oauthConfig(endpoints, s.Redirect).AuthCodeURL(s.State(), o...), nil
}

// ErrState means that an authorization response belongs to another attempt.
var ErrState = errors.New("the authorization response belongs to another attempt to sign in")

// SignIn returns the ID token for the query of an authorization response. The token is not
// verified.
func (c *Client) SignIn(ctx context.Context, s *SignIn, q url.Values) (idToken string, err error) {
	if err := s.CheckState(q); err != nil {
		return "", err
	}
	endpoints, err := c.Providers.Endpoints(ctx, c.Issuer)
	if err != nil {
		return "", err
	}
	code, err := ReadCode(c.Issuer, endpoints.NamesIssuer, q)
	if err != nil {
		return "", err
	}
	t, err := c.oauthConfig(endpoints, s.Redirect).Exchange(c.withClient(ctx), code,
		oauth2.VerifierOption(s.Verifier()))
	if err != nil {
		return "", requestError(err)
	}
	idToken, ok := t.Extra("id_token").(string)
	if !ok {
		return "", errors.New("the identity provider answered without an ID token: the client's scopes need openid")
	}
	return idToken, nil
}
