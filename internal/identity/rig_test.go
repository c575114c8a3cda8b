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
	"pgfsm/internal/test/check"
	"pgfsm/internal/web"
	"pgfsm/policy"
)

// The endpoints of a deployment, and a text in claims that must get into no error and no log line.
const (
	endpoint = "https://mcp.example.com/mcp"
	admin    = "https://admin.example.com"
	marker   = "m4rk3d-t3xt"
)

// rig is a gateway's verification of one provider's tokens, at a time of its own.
type rig struct {
	*identitytest.Provider
	providers *identity.Providers
	clock     time.Time
	log       bytes.Buffer
	scopes    []string
}

func newRig(t *testing.T, change ...func(*identity.Issuer)) *rig {
	t.Helper()
	return newRigOf(t, identitytest.New(t), change...)
}

func newRigOf(t *testing.T, p *identitytest.Provider, change ...func(*identity.Issuer)) *rig {
	t.Helper()
	rig := &rig{Provider: p, clock: time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)}
	p.Now, p.Audience = func() time.Time { return rig.clock }, endpoint
	issuer := identity.Issuer{
		URL: p.Issuer, People: []string{"cli"}, Groups: "/realm_access/roles",
		Audiences: identity.Audiences{MCP: []string{"mcp-gateway"}, Admin: []string{"pgfsm-admin"}},
		Claims:    []identity.ClaimPath{{Name: "team", Path: "/org/team"}, {Name: "department", Path: "/department"}},
	}
	for _, c := range change {
		c(&issuer)
	}
	rig.providers = rig.with(t, issuer)
	return rig
}

func (rig *rig) with(t *testing.T, issuers ...identity.Issuer) *identity.Providers {
	t.Helper()
	providers, err := identity.New(identity.Options{
		Issuers: issuers, Client: rig.Client(), Log: slog.New(slog.NewTextHandler(&rig.log, nil)), Now: func() time.Time { return rig.clock },
	})
	check.NoError(t, err)
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
func (rig *rig) agent(t *testing.T, token string) (web.Caller, error) {
	t.Helper()
	c, err := rig.providers.Agents(func(*http.Request) []string { return []string{endpoint} }, rig.scopes).Authenticate(request(token))
	rig.silent(t, token, err)
	return c, err
}

// person sends a token to the admin address.
func (rig *rig) person(t *testing.T, token string) (web.Caller, error) {
	t.Helper()
	may := func(id *policy.Identity, _ string) []string {
		if id.InGroup("owners") {
			return []string{"approver"}
		}
		return nil
	}
	c, err := rig.providers.People(admin, may).Authenticate(request(token))
	rig.silent(t, token, err)
	return c, err
}

// silent fails the test if an error or the log has text of a token.
func (rig *rig) silent(t *testing.T, token string, err error) {
	t.Helper()
	written := rig.log.String()
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
