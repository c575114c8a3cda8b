package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
)

// TestReload: the answer says what came of the reload. TestRoles shows who may have the service reload.
func TestReload(t *testing.T) {
	d := newFixture(t)
	asked := 0
	var done present.Reload
	var failed error
	d.handler.Reload = func(_ context.Context, by ledger.Caller) (present.Reload, error) {
		if asked++; by.Name != "root" {
			t.Errorf("%s asks", by.Name)
		}
		return done, failed
	}
	digest := canonical.Sum("bundle", nil)
	good := present.Reload{
		SchemaVersion: present.SchemaVersion, Bundle: digest, Previous: digest, Changed: []string{"policy"}, Restart: []string{"ledger"},
		Warnings: []string{}, Compared: &present.ReloadCompared{
			Calls: 1, Otherwise: 1, Kinds: map[string]int{"newly-denied": 1},
			Runs: []present.ReloadRun{{Run: "r", Tool: "a b", Before: "allow", After: "deny", By: "p"}},
		},
	}
	admin := d.token(ledger.RoleAdmin, "root")
	for _, tt := range []struct {
		name, token, body string
		done              present.Reload
		failed            error
		status            int
		code              api.Code
		asked             int
	}{
		{"of-an-admin", admin, "", good, nil, http.StatusOK, "", 1},
		{"refused", admin, "", present.Reload{}, &api.ReloadError{Why: errors.New("policy.yaml:2:1: broken\n  here")}, http.StatusUnprocessableEntity, api.ReloadRefused, 1},
		{"not-recorded", admin, "", present.Reload{}, fmt.Errorf("disk: %w", ledger.ErrUnavailable), http.StatusServiceUnavailable, api.Unavailable, 1},
		{"with-a-body", admin, "{}", good, nil, http.StatusBadRequest, api.BodyNotExpected, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked, done, failed = 0, tt.done, tt.failed
			got := d.call(http.MethodPost, "/reload", tt.token, tt.body)
			if got.status != tt.status || got.code() != tt.code || asked != tt.asked {
				t.Errorf("%d %s, the service was asked %d times", got.status, got.body, asked)
			}
			if tt.code == api.ReloadRefused && !strings.Contains(got.body, `policy.yaml:2:1: broken\n  here`) {
				t.Errorf("the reason is not as it was: %s", got.body)
			}
		})
	}
	if got := d.call(http.MethodGet, "/reload", admin, ""); got.status != http.StatusMethodNotAllowed {
		t.Errorf("GET /reload: %d", got.status)
	}
	d.handler.Reload = nil
	if got := d.call(http.MethodPost, "/reload", admin, ""); got.status != http.StatusNotFound {
		t.Errorf("a service without a configuration: %d %s", got.status, got.body)
	}
}
