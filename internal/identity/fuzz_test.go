package identity_test

import (
	"net/http"
	"strings"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/identity"
	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/web"
	"pgfsm/policy"
)

// fuzzed returns a gateway for a fuzz target.
func fuzzed(f *testing.F) (*identitytest.Provider, web.Authenticator) {
	p := identitytest.Unserved("https://login.example.com")
	p.Audience = endpoint
	providers := identity.New(identity.Options{Client: p.Client(), Issuers: []identity.Issuer{{
		URL: p.Issuer, Groups: "/groups", Claims: []identity.ClaimPath{{Name: "team", Path: "/org/team"}}, People: []string{"cli"},
	}}})
	return p, providers.Agents(func(*http.Request) []string { return []string{endpoint} }, nil)
}

// FuzzToken: nothing that the provider did not sign is accepted, and no error has text of it.
func FuzzToken(f *testing.F) {
	p, agents := fuzzed(f)
	good := p.Sign(claims{"exp": nil, "sub": marker}) // has no exp, so it is refused like all others
	f.Add(good)
	f.Add(p.Sign(claims{"exp": 4102444800}))
	f.Add(strings.Replace(good, ".", "..", 1))
	f.Add(encode(`{"alg":"none"}`) + "." + strings.Split(good, ".")[1] + ".")
	f.Add(encode(`{"alg":"ES256","kid":"key-1","crit":["b64"],"b64":false}`) + "." + strings.Split(good, ".")[1] + ".AAAA")
	f.Add(encode(`{"alg":"ES256","kid":"key-1"}`) + "." + encode(`{"iss":"`+p.Issuer+`","exp":4102444800,"iat":4102444800}`) + ".AAAA")
	f.Add(strings.Repeat("A", 20<<10))
	f.Fuzz(func(t *testing.T, raw string) {
		c, err := agents.Authenticate(request(raw))
		if err == nil {
			t.Fatalf("accepted as %s", c.Name)
		}
		for part := range strings.SplitSeq(raw, ".") {
			if len(part) > 16 && strings.Contains(err.Error(), part) {
				t.Fatalf("the error has text of the token: %v", err)
			}
		}
	})
}

// FuzzClaims: of claims that the provider signed, only those that are strict JSON are accepted, and the caller follows from them.
func FuzzClaims(f *testing.F) {
	p, agents := fuzzed(f)
	good := `{"iss":"` + p.Issuer + `","sub":"alice","aud":"` + endpoint + `","client_id":"agent-1","exp":EXP`
	f.Add(good + `}`)
	f.Add(good + `,"groups":["a","b"],"org":{"team":"x"}}`)
	f.Add(good + `,"act":{"sub":"robot"}}`)
	f.Add(good + `,"sub":"bob"}`)
	f.Add(good + `,"groups":["` + "\u202e" + `"],"_claim_names":{}}`)
	f.Add(good + `,"iat":-1e300,"nbf":0.5}`)
	f.Add(`[` + good + `}]`)
	f.Fuzz(func(t *testing.T, text string) {
		doc := []byte(strings.ReplaceAll(text, "EXP", "4102444800")) // 2100: refused, because it lives too long
		if c, err := agents.Authenticate(request(p.SignBytes(doc))); err == nil {
			t.Fatalf("accepted as %s until %s", c.Name, c.Expires)
		}
		soon := []byte(strings.ReplaceAll(text, "EXP", string(canonical.MustMarshal(p.Now().Unix()+600))))
		c, err := agents.Authenticate(request(p.SignBytes(soon)))
		if err != nil {
			return
		}
		if err := canonical.Check(soon, 16); err != nil || !strings.HasPrefix(c.Name, policy.SubjectName(p.Issuer, "")) || len(c.Name) <= len(p.Issuer)+1 ||
			c.Identity.Client == "" || c.Identity.Kind == "" || c.Identity.Kind == policy.ActorPerson && c.Identity.OnBehalfOf != "" {
			t.Fatalf("%s is accepted as %+v, %+v: %v", soon, c, c.Identity, err)
		}
	})
}
