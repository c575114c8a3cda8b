package upstream

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"testing"

	"pgfsm/internal/test/check"
)

// TestReplaceShares: a server is shared if it is reached in the same way as before, under the same limits.
func TestReplaceShares(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	check.NoError(t, err)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	check.NoError(t, err)
	again := func() *rsa.PrivateKey { // as a file is read again: without the values that a used key caches
		return &rsa.PrivateKey{PublicKey: key.PublicKey, D: key.D, Primes: key.Primes}
	}
	with := func(k crypto.Signer, change func(*Server)) Server {
		s := Server{Name: "crm", Type: TypeHTTP, URL: "https://crm.example.com/mcp", Auth: &ClientCredentials{
			TokenURL: "https://login.example.com/token", ClientID: "pgfsm", Key: k, Alg: "RS256", Issuer: "https://login.example.com",
		}}
		if change != nil {
			change(&s)
		}
		return s
	}
	u := New([]Server{with(key, nil)}, Limits{}, Info{}, nil)
	defer u.Close()
	for _, tt := range []struct {
		name   string
		next   Server
		limits Limits
		want   bool
	}{
		{"the-same", with(again(), nil), Limits{}, true},
		{"another-key", with(other, nil), Limits{}, false},
		{"another-client", with(again(), func(s *Server) { s.Auth.ClientID = "other" }), Limits{}, false},
		{"another-url", with(again(), func(s *Server) { s.URL += "/v2" }), Limits{}, false},
		{"another-header", with(again(), func(s *Server) { s.Headers = []Header{{"X-Key", "value"}} }), Limits{}, false},
		{"another-timeout", with(again(), func(s *Server) { s.Timeout = 1 }), Limits{}, false},
		{"without-credentials", with(again(), func(s *Server) { s.Auth = nil }), Limits{}, false},
		{"another-limit", with(again(), nil), Limits{ResultBytes: 1000}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := u.Shares(u.Replace([]Server{tt.next}, tt.limits), "crm"); got != tt.want {
				t.Errorf("Shares() = %v, want %v", got, tt.want)
			}
		})
	}
}
