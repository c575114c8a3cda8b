package identity_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"pgfsm/internal/identity"
	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
)

type claims = map[string]any

func encode(doc string) string { return base64.RawURLEncoding.EncodeToString([]byte(doc)) }

// unsigned returns a token's first two parts from its claims, as the provider would write them.
func unsigned(fixture *fixture, header string) string {
	return encode(header) + "." + strings.Split(fixture.Sign(nil), ".")[1]
}

// keyed signs a token with HMAC.
func keyed(fixture *fixture, secret []byte) string {
	input := unsigned(fixture, `{"alg":"HS256","kid":"key-1","typ":"at+jwt"}`)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(input))
	return input + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func publicDER(fixture *fixture) []byte {
	der, err := x509.MarshalPKIXPublicKey(fixture.KeySet().Keys[0].Key)
	if err != nil {
		panic(err)
	}
	return der
}

func tampered(fixture *fixture, part int, change func(string) string) string {
	parts := strings.Split(fixture.Sign(nil), ".")
	parts[part] = change(parts[part])
	return strings.Join(parts, ".")
}

// document signs claims that are written by hand: those of a good token, and more text behind them.
func document(fixture *fixture, more string) string {
	return fixture.SignBytes(fmt.Appendf(nil, `{"iss":%q,"sub":"alice","aud":%q,"iat":%d,"exp":%d,"client_id":"agent-1"%s}`,
		fixture.Issuer, endpoint, fixture.clock.Unix(), fixture.clock.Unix()+60, more))
}

// after is a time of a claim, from the time of the fixture on.
func after(d time.Duration) int64 { return begin.Add(d).Unix() }

// attacks are tokens that the gateway refuses, each for the reason of its row.
var attacks = []struct {
	name  string
	token func(*fixture) string
	why   string
}{
	{"alg-none", func(fixture *fixture) string {
		return unsigned(fixture, `{"alg":"none","kid":"key-1","typ":"at+jwt"}`) + "."
	}, "algorithm"},
	{"alg-missing", func(fixture *fixture) string { return unsigned(fixture, `{"kid":"key-1","typ":"at+jwt"}`) + ".AAAA" }, "algorithm"},
	{"hs256-with-the-public-key-as-der", func(fixture *fixture) string { return keyed(fixture, publicDER(fixture)) }, "algorithm"},
	{"algorithm-of-another-key", func(fixture *fixture) string {
		return unsigned(fixture, `{"alg":"RS256","kid":"key-1","typ":"at+jwt"}`) + ".AAAA"
	}, "no key"},
	{"another-signature", func(fixture *fixture) string {
		return unsigned(fixture, `{"alg":"ES256","kid":"key-1","typ":"at+jwt"}`) + ".AAAA"
	}, "signature"},
	{"other-claims-under-a-signature", func(fixture *fixture) string {
		other := strings.Split(fixture.Sign(claims{"sub": "mallory"}), ".")[1]
		return tampered(fixture, 1, func(string) string { return other })
	}, "signature"},
	{"no-signature", func(fixture *fixture) string { return tampered(fixture, 2, func(string) string { return "" }) }, "signature"},
	{"issuer-with-a-slash-more", func(fixture *fixture) string { return fixture.Sign(claims{"iss": fixture.Issuer + "/"}) }, "issuer"},
	{"issuer-in-other-letters", func(fixture *fixture) string { return fixture.Sign(claims{"iss": strings.ToUpper(fixture.Issuer)}) }, "issuer"},
	{"type-number", func(fixture *fixture) string {
		return unsigned(fixture, `{"alg":"ES256","kid":"key-1","typ":7}`) + ".AAAA"
	}, "header"},
	{"duplicate-claim", func(fixture *fixture) string { return document(fixture, `,"sub":"bob"`) }, "strict JSON"},
	{"duplicate-claim-with-escapes", func(fixture *fixture) string { return document(fixture, `,"s\u0075b":"bob"`) }, "strict JSON"},
	{"duplicate-claim-inside", func(fixture *fixture) string {
		return document(fixture, `,"realm_access":{"roles":[],"roles":["`+marker+`"]}`)
	}, "strict JSON"},
	{"duplicate-member-of-the-header", func(fixture *fixture) string {
		return unsigned(fixture, `{"alg":"ES256","alg":"none","kid":"key-1","typ":"at+jwt"}`) + ".AAAA"
	}, "header"},
	{"claims-that-are-not-utf-8", func(fixture *fixture) string { return document(fixture, ",\"x\":\"\xff\"") }, "strict JSON"},
	{"claims-too-deep", func(fixture *fixture) string {
		return document(fixture, `,"x":`+strings.Repeat("[", 16)+strings.Repeat("]", 16))
	}, "strict JSON"},
	{"text-behind-the-claims", func(fixture *fixture) string { return fixture.SignBytes([]byte(`{"iss":"` + fixture.Issuer + `"} {}`)) }, "strict JSON"},
	{"claims-are-a-list", func(fixture *fixture) string { return fixture.SignBytes([]byte(`[]`)) }, "claims"},
	{"four-parts", func(fixture *fixture) string { return fixture.Sign(nil) + ".AAAA" }, "nor a signed JWT"},
	{"opaque", func(fixture *fixture) string { return "ya29." + marker }, "nor a signed JWT"},
	{"empty", func(fixture *fixture) string { return "" }, "nor a signed JWT"},
	{"base64-with-padding", func(fixture *fixture) string { return tampered(fixture, 2, func(s string) string { return s + "==" }) }, "nor a signed JWT"},
	{"base64-with-a-new-line", func(fixture *fixture) string {
		return tampered(fixture, 1, func(s string) string { return s[:8] + "\n" + s[8:] })
	}, "nor a signed JWT"},
	{"base64-with-spare-bits", func(fixture *fixture) string {
		// 64 bytes of a signature leave 4 bits in the last digit
		return tampered(fixture, 2, func(s string) string { return s[:len(s)-1] + string(s[len(s)-1]+1) })
	}, "nor a signed JWT"},
	{"jku", func(fixture *fixture) string {
		return fixture.Sign(nil, identitytest.Header("jku", fixture.Issuer+"/evil"))
	}, "jku"},
	{"x5u", func(fixture *fixture) string {
		return fixture.Sign(nil, identitytest.Header("x5u", fixture.Issuer+"/evil"))
	}, "x5u"},
	{"jwk", func(fixture *fixture) string {
		return fixture.Sign(nil, identitytest.Header("jwk", fixture.KeySet().Keys[0]))
	}, "jwk"},
	{"act-null", func(fixture *fixture) string { return document(fixture, `,"act":null`) }, "act"},
}

// signedAttacks are tokens that the provider signed, and that the gateway refuses, each for the reason of its row.
var signedAttacks = []struct {
	name   string
	claims claims
	with   []identitytest.Option
	why    string
}{
	{"wrong-issuer", claims{"iss": "https://login.example.net"}, nil, "issuer"},
	{"audience-of-another-endpoint", claims{"aud": "https://mcp.example.com/servers/crm/mcp"}, nil, "audience"},
	{"audience-of-the-admin-address", claims{"aud": []string{admin, "pgfsm-admin"}}, nil, "audience"},
	{"audience-that-begins-alike", claims{"aud": endpoint + "/"}, nil, "audience"},
	{"no-audience", claims{"aud": nil}, nil, "audience"},
	{"audience-object", claims{"aud": claims{endpoint: true}}, nil, "claims"},
	{"expired", claims{"iat": after(-time.Hour), "exp": after(-60 * time.Second)}, nil, "expired"},
	{"not-yet-valid", claims{"nbf": after(61 * time.Second)}, nil, "not valid yet"},
	{"issued-later", claims{"iat": after(61 * time.Second)}, nil, "not valid yet"},
	{"no-exp", claims{"exp": nil}, nil, "no exp"},
	{"exp-text", claims{"exp": "4102444800"}, nil, "claims"},
	{"exp-beyond-numbers", claims{"exp": json.Number("1e400")}, nil, "claims"},
	{"exp-far", claims{"exp": json.Number("1e300")}, nil, "valid range"},
	{"exp-negative", claims{"exp": -1}, nil, "valid range"},
	{"lives-over-24-hours", claims{"exp": after(24*time.Hour + time.Second)}, nil, "24 hours"},
	{"lives-over-24-hours-and-ends-soon", claims{"iat": after(-24 * time.Hour), "exp": after(time.Second)}, nil, "24 hours"},
	{"no-iat", claims{"iat": nil}, nil, "no exp or no iat"},
	{"id-token-with-nonce", claims{"nonce": "n"}, []identitytest.Option{identitytest.Type("JWT")}, "id token"},
	{"id-token-with-at_hash", claims{"at_hash": "h"}, []identitytest.Option{identitytest.Type("JWT")}, "id token"},
	{"id-token-with-c_hash", claims{"c_hash": "h"}, []identitytest.Option{identitytest.Type("JWT")}, "id token"},
	{"id-token-of-keycloak", claims{"typ": "ID"}, []identitytest.Option{identitytest.Type("JWT")}, "id token"},
	{"id-token-of-cognito", claims{"token_use": "id"}, []identitytest.Option{identitytest.Type("JWT")}, "id token"},
	{"id-token-for-the-client", claims{"aud": "agent-1"}, []identitytest.Option{identitytest.Type("JWT")}, "audience"},
	{"refresh-token", claims{"typ": "Refresh"}, []identitytest.Option{identitytest.Type("JWT")}, "refresh token"},
	{"logout-token", claims{"events": claims{}}, []identitytest.Option{identitytest.Type("JWT")}, "logout token"},
	{"type-of-a-logout-token", nil, []identitytest.Option{identitytest.Type("logout+jwt")}, "typ"},
	{"cnf", claims{"cnf": claims{"jkt": marker}}, nil, "cnf"},
	{"token-of-1-mb", claims{"x": strings.Repeat("x", 1<<20)}, nil, "16 KiB"},
	{"x5c", nil, []identitytest.Option{identitytest.Header("x5c", []string{"AAAA"})}, "x5c"},
	{"crit", nil, []identitytest.Option{identitytest.Header("crit", []string{"exp"}), identitytest.Header("exp", 1)}, "crit"},
	{"b64", nil, []identitytest.Option{identitytest.Header("b64", true)}, "b64"},
	{"no-kid", nil, []identitytest.Option{identitytest.Header("kid", nil)}, "no key"},
	{"no-subject", claims{"sub": nil}, nil, "sub"},
	{"subject-with-a-space", claims{"sub": "alice "}, nil, "sub"},
	{"subject-with-a-look-alike", claims{"sub": "\u0430lice"}, nil, "sub"},
	{"subject-too-long", claims{"sub": strings.Repeat("a", 256)}, nil, "sub"},
	{"no-client", claims{"client_id": nil}, nil, "client"},
	{"two-clients", claims{"azp": "cli"}, nil, "client"},
	{"client-with-a-look-alike", claims{"client_id": "\u0441li"}, nil, "client"},
	{"act-without-sub", claims{"act": claims{}}, nil, "act"},
	{"act-of-another-issuer", claims{"act": claims{"sub": "robot", "iss": "https://login.example.net"}}, nil, "act"},
	{"act-in-act", claims{"act": claims{"sub": "robot", "act": claims{"sub": "other"}}}, nil, "act"},
	{"act-of-a-client-of-people", claims{"client_id": "cli", "act": claims{"sub": "robot"}}, nil, "act"},
}

func TestAttacks(t *testing.T) {
	fixture := newFixture(t)
	if _, err := fixture.agent(t, fixture.Sign(nil)); err != nil { // the tokens below differ from this one
		t.Fatal(err)
	}
	wantRefused := func(name, token, why string) {
		t.Run(name, func(t *testing.T) {
			c, err := fixture.agent(t, token)
			if !refused(err) || !strings.Contains(err.Error(), why) || c.Name != "" {
				t.Errorf("caller %+v, error %v, want one with %q", c, err, why)
			}
		})
	}
	for _, tc := range attacks {
		wantRefused(tc.name, tc.token(fixture), tc.why)
	}
	for _, tc := range signedAttacks {
		wantRefused(tc.name, fixture.Sign(tc.claims, tc.with...), tc.why)
	}
	if _, err := fixture.agent(t, fixture.Sign(nil)); err != nil {
		t.Error("after the attacks:", err)
	}
	if n := fixture.Requests("/jwks"); n != 1 || fixture.Requests("/evil") != 0 {
		t.Errorf("the keys were fetched %d times, and what the tokens name %d times", n, fixture.Requests("/evil"))
	}
}

// TestKeyIDsAreNames: a kid is no path and no URL. Nothing but the key set is fetched.
func TestKeyIDsAreNames(t *testing.T) {
	elsewhere := 0
	evil := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	t.Cleanup(evil.Close)
	for _, kid := range []string{"../../../../dev/null", "/etc/hostname", evil.URL + "/jwks", "' OR 1=1 --", "key-1\x00", "KEY-1", strings.Repeat("k", 4096)} {
		fixture := newFixture(t)
		if _, err := fixture.agent(t, fixture.Sign(nil, identitytest.Header("kid", kid))); !refused(err) {
			t.Errorf("kid %.40q: %v", kid, err)
		}
		if fixture.Requests("/jwks") != 1 || elsewhere != 0 {
			t.Errorf("kid %.40q: %d fetches of keys, %d elsewhere", kid, fixture.Requests("/jwks"), elsewhere)
		}
	}
}

// TestAccepted has tokens one short of the attacks.
func TestAccepted(t *testing.T) {
	fixture := newFixture(t)
	for _, tc := range []struct {
		name   string
		claims claims
		with   []identitytest.Option
	}{
		{"as-of-rfc-9068", nil, nil},
		{"typ-in-full", nil, []identitytest.Option{identitytest.Type("application/at+JWT")}},
		{"typ-jwt", nil, []identitytest.Option{identitytest.Type("JWT")}},
		{"typ-missing", nil, []identitytest.Option{identitytest.Header("typ", nil)}},
		{"x5t", nil, []identitytest.Option{identitytest.Header("x5t", "8sZ7ZK3Wd0fOKXh1mT0JTe0vGvs")}},
		{"audience-in-a-list", claims{"aud": []string{"account", endpoint}}, nil},
		{"audience-of-the-configuration", claims{"aud": "mcp-gateway"}, nil},
		{"59-seconds-early", claims{"nbf": after(59 * time.Second), "iat": after(59 * time.Second)}, nil},
		{"59-seconds-late", claims{"iat": after(-time.Hour), "exp": after(-59 * time.Second)}, nil},
		{"lives-24-hours", claims{"exp": after(24 * time.Hour)}, nil},
		{"fraction-of-a-second", claims{"exp": float64(after(time.Hour)) + 0.5}, nil},
		{"typ-bearer", claims{"typ": "Bearer"}, nil},
		{"token_use-access", claims{"token_use": "access"}, nil},
		{"subject-of-255", claims{"sub": strings.Repeat("a", 255)}, nil},
		{"subject-with-a-number-sign", claims{"sub": "a#b"}, nil},
		{"same-client-twice", claims{"azp": "agent-1", "appid": "agent-1", "cid": "agent-1"}, nil},
		{"15-kib", claims{"x": strings.Repeat("x", 11<<10)}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if c, err := fixture.agent(t, fixture.Sign(tc.claims, tc.with...)); err != nil || !strings.HasPrefix(c.Name, fixture.Issuer+"#") {
				t.Errorf("caller %+v, error %v", c, err)
			}
		})
	}
}

func TestAlgorithms(t *testing.T) {
	for _, alg := range []jose.SignatureAlgorithm{jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512} {
		fixture := newFixture(t)
		fixture.AddKey(alg)
		if _, err := fixture.agent(t, fixture.Sign(nil)); err != nil {
			t.Errorf("%s: %v", alg, err)
		}
	}
}

// TestKeysThatMustNotVerify: the key that signs is published as it should not be, beside another one that is good.
func TestKeysThatMustNotVerify(t *testing.T) {
	for _, tc := range []struct {
		name   string
		alg    jose.SignatureAlgorithm
		change claims
	}{
		{"use-of-encryption", jose.ES256, claims{"use": "enc"}},
		{"operations-without-verify", jose.ES256, claims{"key_ops": []string{"sign", "encrypt"}}},
		{"another-algorithm", jose.RS256, claims{"alg": "PS256"}},
		{"algorithm-of-secrets", jose.ES256, claims{"alg": "HS256"}},
		{"key-id-missing", jose.ES256, claims{"kid": nil}},
		{"key-id-of-the-good-key", jose.ES256, claims{"kid": "key-1"}},
		{"point-that-is-not-on-the-curve", jose.ES256, claims{"y": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}},
		{"private-key", jose.ES256, claims{"d": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE"}},
		{"symmetric", jose.ES256, claims{"kty": "oct", "k": "AAAA"}},
		{"small-modulus", jose.RS256, claims{"n": encode("\x80" + strings.Repeat("\x01", 127))}},
		{"huge-modulus", jose.RS256, claims{"n": encode("\x80" + strings.Repeat("\x01", 1024))}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fixture := newFixture(t)
			good := fixture.Sign(nil)
			fixture.AddKey(tc.alg)
			var doc struct {
				Keys []claims `json:"keys"`
			}
			raw, _ := json.Marshal(fixture.KeySet())
			check.NoError(t, json.Unmarshal(raw, &doc))
			for name, value := range tc.change { // in any order
				doc.Keys[1][name] = value
				if value == nil {
					delete(doc.Keys[1], name)
				}
			}
			fixture.Override("/jwks", func(w http.ResponseWriter, _ *http.Request) { identitytest.Answer(w, http.StatusOK, doc) })
			kid, _ := doc.Keys[1]["kid"].(string)
			for _, with := range [][]identitytest.Option{nil, {identitytest.Header("kid", kid)}} {
				if c, err := fixture.agent(t, fixture.Sign(nil, with...)); c.Name != "" || !refused(err) && retry(err) == 0 {
					t.Errorf("caller %+v, error %v", c, err)
				}
			}
			if _, err := fixture.agent(t, good); (err != nil) != (tc.name == "key-id-of-the-good-key") {
				t.Errorf("the good key: %v", err)
			}
			if tc.name == "key-id-of-the-good-key" || tc.name == "another-algorithm" {
				return // without the other key, this one is good: for its algorithm
			}
			doc.Keys = doc.Keys[1:]
			fixture = newFixtureOf(t, fixture.Provider)
			if _, err := fixture.agent(t, good); retry(err) == 0 || !strings.Contains(fixture.log.String(), "no key that can verify") {
				t.Errorf("a set of this key only: %v, log %s", err, &fixture.log)
			}
		})
	}
}

// TestHostileProviders have metadata or keys that are not used: requests get 503, and the service is not ready.
func TestHostileProviders(t *testing.T) {
	metadata := func(change claims) func(*fixture) {
		return func(fixture *fixture) {
			doc := fixture.Metadata()
			for name, value := range change { // in any order
				doc[name] = value
			}
			fixture.Override("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) { identitytest.Answer(w, http.StatusOK, doc) })
		}
	}
	serve := func(path, format string, args ...any) func(*fixture) {
		return func(fixture *fixture) {
			fixture.Override(path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, format, args...) })
		}
	}
	redirect := func(path string) func(*fixture) {
		return func(fixture *fixture) {
			fixture.Override("/elsewhere", func(w http.ResponseWriter, _ *http.Request) {
				if path == "/jwks" {
					identitytest.Answer(w, http.StatusOK, fixture.KeySet())
				} else {
					identitytest.Answer(w, http.StatusOK, fixture.Metadata())
				}
			})
			fixture.Override(path, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, fixture.Issuer+"/elsewhere", http.StatusFound)
			})
		}
	}
	many := func(n int) func(*fixture) {
		return func(fixture *fixture) {
			set := fixture.KeySet()
			for i := range n {
				key := set.Keys[0]
				key.KeyID = fmt.Sprint("more-", i)
				set.Keys = append(set.Keys, key)
			}
			fixture.Override("/jwks", func(w http.ResponseWriter, _ *http.Request) { identitytest.Answer(w, http.StatusOK, set) })
		}
	}
	const configuration = "/.well-known/openid-configuration"
	for _, tc := range []struct {
		name  string
		setUp func(*fixture)
		log   string // empty: the provider is good
	}{
		{"good", func(*fixture) {}, ""},
		{"keys-of-10-mb", serve("/jwks", `{"keys":[],"x":"%s"}`, strings.Repeat("x", 10<<20)), "more than 1048576 bytes"},
		{"metadata-of-10-mb", serve(configuration, `{"x":"%s"}`, strings.Repeat("x", 10<<20)), "more than 1048576 bytes"},
		{"101-keys", many(100), "more than 100 keys"},
		{"100-keys", many(99), ""},
		{"no-keys", serve("/jwks", `{"keys":[]}`), "no key that can verify"},
		{"keys-are-null", serve("/jwks", `null`), "no key that can verify"},
		{"keys-twice", serve("/jwks", `{"keys":[],"keys":[]}`), "strict JSON"},
		{"metadata-is-html", serve(configuration, `<html>`+marker), "strict JSON"},
		{"metadata-redirects", redirect(configuration), "status 302"},
		{"keys-redirect", redirect("/jwks"), "status 302"},
		{"another-issuer", metadata(claims{"issuer": "https://login.example.net"}), "another issuer"},
		{"issuer-with-a-slash-more", func(fixture *fixture) { metadata(claims{"issuer": fixture.Issuer + "/"})(fixture) }, "another issuer"},
		{"keys-over-plain-http", metadata(claims{"jwks_uri": "http://keys.example.com/jwks"}), "no https URL"},
		{"keys-with-a-password", metadata(claims{"jwks_uri": "https://user:secret@keys.example.com/"}), "no https URL"},
		{"no-keys-named", metadata(claims{"jwks_uri": ""}), "no jwks_uri"},
		{"authorization-over-plain-http", metadata(claims{"authorization_endpoint": "http://login.example.com/"}), "no https URL"},
		{"token-endpoint-over-plain-http", metadata(claims{"token_endpoint": "http://login.example.com/"}), "no https URL"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fixture := newFixture(t)
			tc.setUp(fixture)
			_, err := fixture.agent(t, fixture.Sign(nil))
			ready := fixture.providers.Ready()
			if tc.log == "" {
				if err != nil || !ready {
					t.Error(err, ready)
				}
				return
			}
			if retry(err) == 0 || ready || !strings.Contains(fixture.log.String(), tc.log) {
				t.Errorf("error %v, ready %v, log %s", err, ready, &fixture.log)
			}
			if fixture.Requests("/elsewhere") != 0 {
				t.Error("a redirect was followed")
			}
		})
	}
}

// TestMetadataOfAnotherMachineCannotNameThisOne: a provider with https has its keys at https, also on loopback.
func TestMetadataOfAnotherMachineCannotNameThisOne(t *testing.T) {
	fixture, local := newFixtureOf(t, identitytest.NewTLS(t)), newFixture(t)
	if _, err := fixture.agent(t, fixture.Sign(nil)); err != nil {
		t.Fatal(err)
	}
	fixture = newFixtureOf(t, identitytest.NewTLS(t))
	doc := fixture.Metadata()
	doc["jwks_uri"] = local.Issuer + "/jwks"
	fixture.Override("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) { identitytest.Answer(w, http.StatusOK, doc) })
	if _, err := fixture.agent(t, fixture.Sign(nil)); retry(err) == 0 || local.Requests("/jwks") != 0 {
		t.Errorf("%v, %d requests", err, local.Requests("/jwks"))
	}
}

// TestSubjectsOfTwoIssuers: the same subject at two issuers is two actors, and no issuer signs for the other.
func TestSubjectsOfTwoIssuers(t *testing.T) {
	fixture, other := newFixture(t), newFixture(t)
	fixture.providers = fixture.with(t, identity.Issuer{URL: fixture.Issuer}, identity.Issuer{URL: other.Issuer, Audiences: identity.Audiences{MCP: []string{"of-other"}}})
	one, err := fixture.agent(t, fixture.Sign(claims{"sub": "8f1c"}))
	two, err2 := fixture.agent(t, other.Sign(claims{"sub": "8f1c"}))
	if err != nil || err2 != nil || one.Name == two.Name || one.Name != policy.SubjectName(fixture.Issuer, "8f1c") || two.Name != policy.SubjectName(other.Issuer, "8f1c") {
		t.Errorf("%v %v: %q, %q", err, err2, one.Name, two.Name)
	}
	if _, err := fixture.agent(t, other.Sign(claims{"iss": fixture.Issuer})); !refused(err) {
		t.Error("a token that another issuer signed:", err)
	}
	if _, err := fixture.agent(t, fixture.Sign(claims{"aud": "of-other"})); !refused(err) {
		t.Error("an audience of another issuer:", err)
	}
	fixture.providers = fixture.with(t, identity.Issuer{URL: fixture.Issuer, People: []string{"cli"}}, identity.Issuer{URL: other.Issuer, People: []string{"cli"}})
	raw := other.Sign(claims{"aud": "cli", "client_id": nil, "nonce": "n"}, identitytest.Type("JWT"))
	if _, _, err := fixture.providers.IDToken(t.Context(), other.Issuer, "cli", raw, "n"); err != nil {
		t.Error("an id token:", err)
	}
	if _, _, err := fixture.providers.IDToken(t.Context(), fixture.Issuer, "cli", raw, "n"); !refused(err) {
		t.Error("an id token of another issuer than that of the sign-in:", err)
	}
}
