package runner_test

import (
	"net/http"
	"testing"

	"pgfsm/internal/runner"
	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
)

// TestTokenRevokedByAnotherProcess: the gateway has authenticated the agent a moment ago and remembers that. Once another process has
// revoked the token, the gateway makes no call for it, answers no other message, and says in both cases that the token is not valid.
func TestTokenRevokedByAnotherProcess(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, body string }{
		{"call", call},
		{"list", message("tools/list", "")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, nil)
			o := s.options
			o.Ledger = s.open()
			mcp, _ := serve(t, newRunner(t, o), runner.ServiceOptions{Store: s.memory.Open()})
			other := s.open()
			ann := newToken(t, other, "ann@example.com", ledger.RoleAgent)
			if status, answer := post(t, mcp, ann, "fetch_policy_entry", call); status != http.StatusOK || s.calls() != 1 {
				t.Fatalf("with the token: %d %s; %d calls", status, answer, s.calls())
			}

			who, err := other.Authenticate(t.Context(), ann)
			check.NoError(t, err)
			if _, err := other.RevokeToken(t.Context(), ledger.LocalUser("local:root"), who.TokenID); err != nil {
				t.Fatal(err)
			}

			if status, answer := post(t, mcp, ann, "fetch_policy_entry", tt.body); status != http.StatusUnauthorized || s.calls() != 1 {
				t.Errorf("with the revoked token: %d %s; %d calls, want 401 and 1 call", status, answer, s.calls())
			}
		})
	}
}
