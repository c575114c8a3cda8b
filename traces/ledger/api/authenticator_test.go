package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/web"
)

// named authenticates callers by a header of their own, as a proxy with single sign-on does. It knows no ledger.
type named struct{ role string }

func (n named) Authenticate(r *http.Request) (web.Caller, error) {
	switch name := r.Header.Get("X-User"); name {
	case "":
		return web.Caller{}, web.ErrNoCredentials
	case "down":
		return web.Caller{}, web.ErrUnavailable
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
		{"a-token-of-the-ledger", "Authorization", "Bearer TOKEN", ledger.RoleApprover, http.StatusUnauthorized},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t)
			h := api.New(api.Options{Ledger: d.Ledger, Callers: named{tt.role}, Hosts: []string{service}, Log: d.notes.add})
			r := httptest.NewRequest(http.MethodGet, "/pending", http.NoBody)
			r.Host = service
			value := tt.user
			if tt.header == "Authorization" {
				value = "Bearer " + d.token(ledger.RoleApprover, bob)
			}
			r.Header.Set(tt.header, value)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tt.status {
				t.Errorf("status %d, want %d: %s", w.Code, tt.status, w.Body)
			}
		})
	}
}
