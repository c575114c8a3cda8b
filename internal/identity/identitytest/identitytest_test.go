package identitytest_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/test/check"
)

// TestProvider signs a person in with clients that are not ours.
func TestProvider(t *testing.T) {
	p := identitytest.NewTLS(t)
	p.Clients["cli"], p.Clients["worker"] = "", "s3cret"
	p.Users["bob"] = map[string]any{"groups": []string{"owners"}}
	ctx := oidc.ClientContext(t.Context(), p.Client())
	found, err := oidc.NewProvider(ctx, p.Issuer)
	check.NoError(t, err)
	cli := oauth2.Config{ClientID: "cli", Endpoint: found.Endpoint(), RedirectURL: "http://127.0.0.1:1/callback", Scopes: []string{"openid"}}
	verifier := oauth2.GenerateVerifier()
	if _, err := authorize(ctx, t, p, &cli, verifier); err == nil {
		t.Error("nobody is signed in, but there is a code")
	}
	p.SignIn("bob")
	code, err := authorize(ctx, t, p, &cli, verifier)
	check.NoError(t, err)
	token, err := cli.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	check.NoError(t, err)
	if _, err := cli.Exchange(ctx, code, oauth2.VerifierOption(verifier)); err == nil {
		t.Error("a code was exchanged twice")
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := found.Verifier(&oidc.Config{ClientID: "cli"}).Verify(ctx, raw)
	if err != nil || id.Subject != "bob" || id.Nonce != "n-1" {
		t.Errorf("id token: %+v, %v", id, err)
	}
	if code, err = authorize(ctx, t, p, &cli, verifier); err != nil {
		t.Fatal(err)
	}
	if _, err := cli.Exchange(ctx, code, oauth2.VerifierOption(oauth2.GenerateVerifier())); err == nil {
		t.Error("a code was exchanged with another verifier")
	}
	device, err := cli.DeviceAuth(ctx)
	check.NoError(t, err)
	if token, err := cli.DeviceAccessToken(ctx, device); err != nil || token.Extra("id_token") == nil {
		t.Errorf("device flow: %v", err)
	}
	for secret, want := range map[string]int{"s3cret": http.StatusOK, "wrong": http.StatusUnauthorized} { // in any order
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, found.Endpoint().TokenURL, strings.NewReader("grant_type=client_credentials"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.SetBasicAuth("worker", secret)
		response, err := p.Client().Do(r)
		if err != nil || response.StatusCode != want {
			t.Errorf("client credentials with the secret %q: %v, %v", secret, response, err)
		}
		response.Body.Close()
	}
}

// authorize returns the code, or the provider's error.
func authorize(ctx context.Context, t *testing.T, p *identitytest.Provider, c *oauth2.Config, verifier string) (string, error) {
	t.Helper()
	at := c.AuthCodeURL("state-1", oauth2.S256ChallengeOption(verifier), oidc.Nonce("n-1"))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	check.NoError(t, err)
	client := *p.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(r)
	check.NoError(t, err)
	response.Body.Close()
	back, err := url.Parse(response.Header.Get("Location"))
	if err != nil || back.Query().Get("state") != "state-1" || back.Query().Get("iss") != p.Issuer {
		t.Fatalf("redirect to %q, %v", back, err)
	}
	if problem := back.Query().Get("error"); problem != "" {
		return "", &oauth2.RetrieveError{ErrorCode: problem}
	}
	return back.Query().Get("code"), nil
}
