package upstream

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/secret"
)

const testIssuer = "https://login.example.com"

// withKey are credentials with a new private key in place of the secret.
func withKey(t *testing.T, c ClientCredentials, alg string) ClientCredentials {
	t.Helper()
	var key crypto.Signer
	var err error
	switch alg {
	case "RS256", "PS256":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case "EdDSA":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.ClientSecret, c.Key, c.Alg, c.Issuer = "", key, alg, testIssuer
	return c
}

// claims are what a provider reads in an assertion.
type claims struct {
	Issuer   string `json:"iss"`
	Subject  string `json:"sub"`
	Audience string `json:"aud"`
	ID       string `json:"jti"`
	IssuedAt int64  `json:"iat"`
	Expiry   int64  `json:"exp"`
}

// verified returns the header and the claims of an assertion that a key has signed.
func verified(t *testing.T, assertion string, key crypto.Signer, alg string) (jose.Header, claims) {
	t.Helper()
	signed, err := jose.ParseSignedCompact(assertion, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(alg)})
	if err != nil {
		t.Fatal(err)
	}
	payload, err := signed.Verify(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	var c claims
	if err := json.Unmarshal(payload, &c, json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	return signed.Signatures[0].Protected, c
}

func TestClientAuthenticatesWithAnAssertion(t *testing.T) {
	for _, tt := range []struct{ alg, id string }{{"ES256", "2026-11"}, {"RS256", ""}, {"PS256", ""}, {"EdDSA", "k"}} {
		t.Run(tt.alg, func(t *testing.T) {
			p := serveProvider(t, nil)
			p.expiry = 1 // each request needs another token
			_, _, s := locked(t, honest, p, issued)
			c := withKey(t, *p.credentials(), tt.alg)
			c.KeyID, c.Scopes = tt.id, []string{"crm.read"}
			s.Auth = &c
			before := time.Now().Unix()
			u := upstreams(t, Limits{}, s)
			listed(t, u)
			if r := call(t.Context(), u, "web", `{}`); r.Effect != EffectDone {
				t.Errorf("Call() = %+v, want done", r)
			}
			if len(p.forms) < 2 {
				t.Fatalf("%d token requests, want more", len(p.forms))
			}
			ids := make(map[string]bool)
			for i, form := range p.forms {
				header, got := verified(t, form.Get("client_assertion"), c.Key, tt.alg)
				if header.KeyID != tt.id || header.ExtraHeaders[jose.HeaderType] != "JWT" || header.JSONWebKey != nil {
					t.Errorf("header = %+v, want the key id %q and the type JWT", header, tt.id)
				}
				if after := time.Now().Unix(); got.IssuedAt < before || got.IssuedAt > after || got.Expiry-got.IssuedAt != 120 {
					t.Errorf("issued at %d, expires at %d; it was signed between %d and %d for 120 s", got.IssuedAt, got.Expiry, before, after)
				}
				if ids[got.ID] || len(got.ID) < 20 {
					t.Errorf("jti = %q, want a long one that is new", got.ID)
				}
				ids[got.ID] = true
				got.ID, got.IssuedAt, got.Expiry = "", 0, 0
				if d := cmp.Diff(claims{Issuer: "pgfsm", Subject: "pgfsm", Audience: testIssuer}, got); d != "" {
					t.Errorf("claims (-want +got):\n%s", d)
				}
				form.Del("client_assertion")
				want := url.Values{
					"grant_type": {"client_credentials"}, "scope": {"crm.read"}, "client_id": {"pgfsm"},
					"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
				}
				if d := cmp.Diff(want, form); d != "" {
					t.Errorf("token request (-want +got):\n%s", d)
				}
				if p.basic[i] != [2]string{} {
					t.Errorf("Authorization = %q, want none", p.basic[i])
				}
			}
		})
	}
}

// TestAssertionIsMasked: the endpoint and the server work together, and the server repeats the assertion.
func TestAssertionIsMasked(t *testing.T) {
	var assertion string
	p := serveProvider(t, nil)
	p.answer = func(w http.ResponseWriter, r *http.Request) {
		assertion = r.PostForm.Get("client_assertion")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"token-0001","expires_in":3600}`)
	}
	secrets := secret.New(nil)
	_, _, s := locked(t, on("tools/call", func(w spoken) []string {
		return []string{fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":%q}}`, w.id, "you signed "+assertion)}
	}), p, issued)
	c := withKey(t, *p.credentials(), "ES256")
	s.Auth = &c
	u, err := New([]Server{s}, Limits{}, Info{}, secrets)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	listed(t, u)
	r := call(t.Context(), u, "web", `{}`)
	if assertion == "" || strings.Contains(r.Reason, assertion) || !strings.Contains(r.Reason, "you signed "+secret.Mask) {
		t.Errorf("Reason = %q, want it without the assertion", r.Reason)
	}
}

// TestMaskingOfManyAssertions: failing token requests do not push a token out of what is masked.
func TestMaskingOfManyAssertions(t *testing.T) {
	secrets := secret.New(nil)
	var tokens, assertions recent
	tokens.mask("token-0001", secrets)
	for i := range maxRecent + 1 {
		assertions.mask(fmt.Sprintf("assertion-%d", i), secrets)
	}
	for text, want := range map[string]bool{"token-0001": true, "assertion-0": false, "assertion-1": true, "assertion-8": true} { // in any order
		if got := secrets.String(text) == secret.Mask; got != want {
			t.Errorf("%s masked = %v, want %v", text, got, want)
		}
	}
}
