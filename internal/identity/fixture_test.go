package identity_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/identity"
	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/web"
	"pgfsm/policy"
)

// The endpoints of a deployment, and a text in claims that must get into no error and no log line.
const (
	endpoint = "https://mcp.example.com/mcp"
	admin    = "https://admin.example.com"
	marker   = "m4rk3d-t3xt"
)

// begin is the time of a fixture at first.
var begin = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// fixture is a gateway's verification of one provider's tokens, at a time of its own.
type fixture struct {
	*identitytest.Provider
	providers *identity.Providers
	clock     time.Time
	log       bytes.Buffer
	scopes    []string
}

func newFixture(t *testing.T, change ...func(*identity.Issuer)) *fixture {
	t.Helper()
	return newFixtureOf(t, identitytest.New(t), change...)
}

func newFixtureOf(t *testing.T, p *identitytest.Provider, change ...func(*identity.Issuer)) *fixture {
	t.Helper()
	fixture := &fixture{Provider: p, clock: begin}
	p.Now, p.Audience = func() time.Time { return fixture.clock }, endpoint
	issuer := identity.Issuer{
		URL: p.Issuer, People: []string{"cli"}, Groups: "/realm_access/roles",
		Audiences: identity.Audiences{MCP: []string{"mcp-gateway"}, Admin: []string{"pgfsm-admin"}},
		Claims:    []identity.ClaimPath{{Name: "team", Path: "/org/team"}, {Name: "department", Path: "/department"}},
	}
	for _, c := range change {
		c(&issuer)
	}
	fixture.providers = fixture.with(t, issuer)
	return fixture
}

func (fixture *fixture) with(t *testing.T, issuers ...identity.Issuer) *identity.Providers {
	t.Helper()
	providers := identity.New(identity.Options{
		Issuers: issuers, Client: fixture.Client(), Log: slog.New(slog.NewTextHandler(&fixture.log, nil)), Now: func() time.Time { return fixture.clock },
	})
	return providers
}

func request(token string) *http.Request {
	r, err := http.NewRequest(http.MethodPost, endpoint, http.NoBody)
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// agent sends a token to the gateway.
func (fixture *fixture) agent(t *testing.T, token string) (web.Caller, error) {
	t.Helper()
	c, err := fixture.providers.Agents(func(*http.Request) []string { return []string{endpoint} }, fixture.scopes).Authenticate(request(token))
	fixture.silent(t, token, err)
	return c, err
}

// person sends a token to the admin address.
func (fixture *fixture) person(t *testing.T, token string) (web.Caller, error) {
	t.Helper()
	may := func(id *policy.Identity, _ string) []string {
		if id.InGroup("owners") {
			return []string{"approver"}
		}
		return nil
	}
	c, err := fixture.providers.People(admin, may).Authenticate(request(token))
	fixture.silent(t, token, err)
	return c, err
}

// silent fails the test if an error or the log has text of a token.
func (fixture *fixture) silent(t *testing.T, token string, err error) {
	t.Helper()
	written := fixture.log.String()
	if err != nil {
		written += err.Error()
	}
	for _, secret := range append(strings.Split(token, "."), marker) {
		if len(secret) > 8 && strings.Contains(written, secret) {
			t.Errorf("text of the token was written: %s", written)
		}
	}
}

// refused reports whether an error means that the credentials are invalid.
func refused(err error) bool {
	var scope *web.ScopeError
	return err != nil && !errors.Is(err, web.ErrUnavailable) && !errors.Is(err, web.ErrNoCredentials) && !errors.As(err, &scope)
}

// retry returns after how many seconds to try again, or 0.
func retry(err error) time.Duration {
	var later *web.RetryError
	if !errors.Is(err, web.ErrUnavailable) || !errors.As(err, &later) {
		return 0
	}
	return later.After
}
