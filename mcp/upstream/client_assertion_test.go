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

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/secret"
	"pgfsm/internal/test/check"
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
	check.NoError(t, err)
	c.ClientSecret, c.Key, c.Alg, c.Issuer = "", key, alg, testIssuer
	return c
}

func TestClientAuthenticatesWithAnAssertion(t *testing.T) {
	for _, tt := range []struct{ alg, id string }{{"ES256", "2026-11"}, {"RS256", ""}, {"EdDSA", "k"}} {
		t.Run(tt.alg, func(t *testing.T) {
			p := serveProvider(t, nil)
			p.expiry = 1 // each request needs another token
			_, _, s := locked(t, honest, p, issued)
			c := withKey(t, *p.credentials(), tt.alg)
			c.KeyID, c.Scopes = tt.id, []string{"crm.read"}
			s.Auth = &c
			u := upstreams(t, Limits{}, s)
			mustList(t, u)
			if r := call(t.Context(), u, "web", `{}`); r.Effect != EffectDone || len(p.forms) < 2 {
				t.Fatalf("Call() = %+v after %d token requests, want done, and several", r, len(p.forms))
			}

			ids := make(map[string]bool)
			for i, form := range p.forms {
				signed, err := jose.ParseSignedCompact(form.Get("client_assertion"), []jose.SignatureAlgorithm{jose.SignatureAlgorithm(tt.alg)})
				check.NoError(t, err)
				payload, err := signed.Verify(c.Key.Public())
				check.NoError(t, err)
				var claims struct {
					Iss, Sub, Aud, JTI string
					Iat, Exp           int64
				}
				check.NoError(t, json.Unmarshal(payload, &claims, json.MatchCaseInsensitiveNames(true)))
				if claims.Iss != "pgfsm" || claims.Sub != "pgfsm" || claims.Aud != testIssuer || ids[claims.JTI] || len(claims.JTI) < 20 ||
					claims.Exp-claims.Iat != 120 {
					t.Errorf("claims = %s, want the client for the issuer, with a new id, for 120 s", payload)
				}
				ids[claims.JTI] = true
				if header := signed.Signatures[0].Protected; header.KeyID != tt.id || header.JSONWebKey != nil {
					t.Errorf("header = %+v, want the key id %q", header, tt.id)
				}
				form.Del("client_assertion")
				want := url.Values{
					"grant_type": {"client_credentials"}, "scope": {"crm.read"}, "client_id": {"pgfsm"},
					"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
				}
				if d := cmp.Diff(want, form); d != "" || p.basic[i] != [2]string{} {
					t.Errorf("token request with Authorization %q, want none (-want +got):\n%s", p.basic[i], d)
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
	_, _, s := locked(t, answering("tools/call", func(w spoken) []string {
		return []string{fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":%q}}`, w.id, "you signed "+assertion)}
	}), p, issued)
	c := withKey(t, *p.credentials(), "ES256")
	s.Auth = &c
	u := New([]Server{s}, Limits{}, Info{}, secrets)
	defer u.Close()
	mustList(t, u)
	r := call(t.Context(), u, "web", `{}`)
	if assertion == "" || strings.Contains(r.Reason, assertion) || !strings.Contains(r.Reason, "you signed "+secret.Mask) {
		t.Errorf("Reason = %q, want it without the assertion", r.Reason)
	}
}

// TestMaskingOfManyAssertions: failing token requests do not push a token out of what is masked.
func TestMaskingOfManyAssertions(t *testing.T) {
	secrets := secret.New(nil)
	var tokens, assertions recentSecrets
	tokens.maskSecret("token-0001", maxRecent, secrets)
	for i := range maxRecent + 1 {
		assertions.maskSecret(fmt.Sprintf("assertion-%d", i), maxRecent, secrets)
	}
	for text, want := range map[string]bool{"token-0001": true, "assertion-0": false, "assertion-1": true, "assertion-8": true} { // in any order
		if got := secrets.String(text) == secret.Mask; got != want {
			t.Errorf("%s masked = %v, want %v", text, got, want)
		}
	}
}
