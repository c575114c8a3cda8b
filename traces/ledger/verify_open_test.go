package ledger_test

import (
	"context"
	"errors"
	"testing"

	"pgfsm/traces/ledger"
)

// TestVerifyOpen: what a gateway acts on is found before it does; what has ended is left to Verify.
func TestVerifyOpen(t *testing.T) {
	t.Parallel()
	path := archive(t)
	for _, c := range []struct{ name, change, table string }{
		{"as-it-was-written", "SELECT 1", ""},
		{"token-of-another-role", "UPDATE tokens SET role = 'admin' WHERE rowid = 1", "tokens"},
		{"token-that-does-not-expire", "UPDATE tokens SET expires = '2099-01-01T00:00:00.000Z' WHERE rowid = 1", "tokens"},
		{"token-not-revoked-any-more", "UPDATE tokens SET revoked = '', entry = 1 WHERE rowid = 1", "tokens"},
		{"token-too-many", "INSERT INTO tokens SELECT 'x', name, role, secret, created, expires, revoked, entry FROM tokens LIMIT 1", "tokens"},
		{"token-missing", "DELETE FROM tokens WHERE rowid = 1", "tokens"},
		{"token-made-differently", "UPDATE entries SET body = replace(body, 'approver', 'admin') WHERE type = 'token.created'", "entries"},
		{"open-request-of-somebody-else", "UPDATE runs SET actor = 'mallory' WHERE ended IS NULL", "requests"},
		{"open-request-approved", "UPDATE runs SET status = 'approved', agreed = 9 WHERE ended IS NULL", "requests"},
		{"open-again", "UPDATE runs SET ended = NULL WHERE run = (SELECT min(run) FROM runs WHERE ended IS NOT NULL)", "requests"},
		{"step-of-an-open-request", "UPDATE entries SET body = replace(body, 'screen', 'plan') WHERE run IN (SELECT run FROM runs WHERE ended IS NULL)", "entries"},
		{"request-that-has-ended", "UPDATE runs SET reason = 'x' WHERE ended IS NOT NULL", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := openRaw(t, path)
			b.do(t, c.change)
			var found error
			skeletonOf(t, b.path, func(r ledger.Reader) error {
				found = ledger.VerifyOpen(context.Background(), r)
				return nil
			})
			fault := new(ledger.Fault)
			if is := errors.As(found, &fault); is != (c.table != "") || is && fault.Table != c.table || !is && found != nil {
				t.Errorf("VerifyOpen() = %v, want a fault of %q", found, c.table)
			}
		})
	}
}
