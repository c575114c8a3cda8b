package identity_test

import (
	"net/http"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"pgfsm/identity"
	"pgfsm/identity/identitytest"
)

func BenchmarkAuthenticate(b *testing.B) {
	p := identitytest.Unserved("https://login.example.com")
	p.Audience = endpoint
	for _, alg := range []jose.SignatureAlgorithm{jose.ES256, jose.RS256} {
		p.AddKey(alg)
		providers, err := identity.New(identity.Options{Client: p.Client(), Issuers: []identity.Issuer{{URL: p.Issuer, Groups: "/groups"}}})
		if err != nil {
			b.Fatal(err)
		}
		agents := providers.Agents(func(*http.Request) []string { return []string{endpoint} }, []string{"mcp:tools"})
		next := func() *http.Request {
			return request(p.Sign(claims{"scope": "openid mcp:tools", "groups": []string{"owners", "oncall"}}))
		}
		run := func(name string, prepare func() *http.Request) {
			b.Run(string(alg)+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					r := prepare()
					b.StartTimer()
					if _, err := agents.Authenticate(r); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		n := 0
		run("uncached", func() *http.Request {
			n++
			return request(p.Sign(claims{"scope": "mcp:tools", "jti": n, "groups": []string{"owners", "oncall"}}))
		})
		one := next()
		b.Run(string(alg)+"/cached", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := agents.Authenticate(one); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
