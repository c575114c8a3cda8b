package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"pgfsm/internal/identity"
	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/test/check"
	"pgfsm/internal/web"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/stores"
)

// BenchmarkAuthenticate compares what each request of an agent costs with a token of the ledger and with one of an identity provider, whose
// signature was verified before. The ledger is a file.
func BenchmarkAuthenticate(b *testing.B) {
	store, err := stores.Open("sqlite:"+filepath.Join(b.TempDir(), "pgfsm.db"), stores.ToWrite)
	check.NoError(b, err)
	l, err := ledger.Open(context.Background(), store, ledger.Options{})
	check.NoError(b, err)
	b.Cleanup(func() { _, _ = l.Close(), store.Close() })
	static, _, err := l.CreateToken(context.Background(), ledger.Local("local:root"), "ci", ledger.RoleAgent, "")
	check.NoError(b, err)
	p := identitytest.New(b)
	providers, err := identity.New(identity.Options{Client: p.Client(), Issuers: []identity.Issuer{{URL: p.Issuer, Groups: "/groups"}}})
	check.NoError(b, err)
	const endpoint = "https://mcp.example.com/mcp"
	agents := providers.Agents(func(*http.Request) []string { return []string{endpoint} }, nil)
	for _, of := range []struct {
		name, token string
		by          web.Authenticator
	}{
		{"static", static, api.Tokens{Ledger: l, Needs: ledger.ActCall}},
		{"provider", p.Sign(map[string]any{"aud": endpoint, "groups": []string{"owners", "oncall"}}), api.Unblocked{Authenticator: agents, Ledger: l}},
	} {
		b.Run(of.name, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodPost, "/mcp", http.NoBody)
			r.Header.Set("Authorization", "Bearer "+of.token)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := of.by.Authenticate(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
