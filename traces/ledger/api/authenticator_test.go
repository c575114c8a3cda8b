package api_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/web"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
)

// named authenticates callers by a header of their own, as a proxy with single sign-on does. It knows no ledger.
type named struct{ role string }

func (n named) Authenticate(r *http.Request) (web.Caller, error) {
	switch name := r.Header.Get("X-User"); name {
	case "":
		return web.Caller{}, web.ErrNoCredentials
	case "down":
		return web.Caller{}, &web.RetryError{After: 1500 * time.Millisecond, Err: errors.New("an unknown key")}
	default:
		return web.Caller{Name: name, Token: "sso", Roles: []string{n.role}}, nil
	}
}

// TestAuthenticatorThatIsNotTheLedgers decides who may read.
func TestAuthenticatorThatIsNotTheLedgers(t *testing.T) {
	for _, tt := range []struct {
		name, header, user, role string
		status                   int
	}{
		{"known", "X-User", alice, ledger.RoleApprover, http.StatusOK},
		{"of-another-role", "X-User", alice, ledger.RoleAgent, http.StatusForbidden},
		{"without-a-role", "X-User", alice, "", http.StatusForbidden},
		{"unknown", "X-Other", alice, ledger.RoleApprover, http.StatusUnauthorized},
		{"cannot-be-verified-now", "X-User", "down", ledger.RoleApprover, http.StatusServiceUnavailable},
		{"a-token-of-the-ledger", "Authorization", "Bearer TOKEN", ledger.RoleApprover, http.StatusUnauthorized},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newFixture(t)
			h := api.New(api.Options{Ledger: d.Ledger, Hosts: []string{here}, Log: d.notes.add, Callers: named{tt.role}})
			r := httptest.NewRequest(http.MethodGet, "/pending", http.NoBody)
			r.Host = here
			value := tt.user
			if tt.header == "Authorization" {
				value = "Bearer " + d.token(ledger.RoleApprover, bob)
			}
			r.Header.Set(tt.header, value)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			after := ""
			if tt.status == http.StatusServiceUnavailable {
				after = "2"
			}
			if got := w.Header().Get("Retry-After"); w.Code != tt.status || got != after || strings.Contains(w.Body.String(), "an unknown key") {
				t.Errorf("status %d, Retry-After %q, want %d, %q: %s", w.Code, got, tt.status, after, w.Body)
			}
		})
	}
}
