package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
)

var (
	root = ledger.LocalUser("local:root")
	form = regexp.MustCompile(`^pgfsm_[a-z2-7]{16}_[A-Za-z0-9_-]{43}$`)
)

func stamp(d time.Duration) string {
	begins, err := time.Parse(time.RFC3339, statestest.At)
	if err != nil {
		panic(err)
	}
	return begins.Add(d).Format(policy.TimeForm)
}

func TestTokenLetsIn(t *testing.T) {
	for _, role := range ledger.Roles() {
		t.Run(role, func(t *testing.T) {
			c := newFixture(t)
			text, made, err := c.CreateToken(context.Background(), root, alice, role, stamp(time.Hour))
			if err != nil || !form.MatchString(text) {
				t.Fatalf("CreateToken() = %q, %v", text, err)
			}
			want := ledger.Caller{TokenID: made.ID, Name: alice, Roles: []string{role}}
			if got := c.Caller(text); !cmp.Equal(got, want) {
				t.Errorf("Authenticate() = %+v, want %+v", got, want)
			}
			c.Inspect(func(r ledger.Reader) error {
				if kept, err := r.Token(made.ID); err != nil || !cmp.Equal(kept, made) {
					t.Errorf("the ledger keeps %+v, %v; want %+v", kept, err, made)
				}
				return nil
			})
			secret := text[len(text)-43:]
			for _, e := range c.Events(1) {
				if strings.Contains(fmt.Sprintf("%+v %s %+v", e, e.Payload, made), secret) {
					t.Errorf("the secret stands in the ledger: %s", e.Payload)
				}
				if e.By != root.Name {
					t.Errorf("the event is by %q, want %q", e.By, root.Name)
				}
			}
		})
	}
}

// Every invalid token gets the same answer.
func TestAuthenticateRefuses(t *testing.T) {
	swap := func(text string, at int) string {
		other := "A"
		if text[at] == 'A' {
			other = "B"
		}
		return text[:at] + other + text[at+1:]
	}
	const expiresIn = time.Hour
	tests := []struct {
		name    string
		detail  string
		present func(c *fixture, text, id string) string
	}{
		{"empty", "not a whole token", func(*fixture, string, string) string { return "" }},
		{"one-byte-less", "not a whole token", func(_ *fixture, text, _ string) string { return text[:len(text)-1] }},
		{"one-byte-more", "not a whole token", func(_ *fixture, text, _ string) string { return text + "A" }},
		{"new-line-behind", "not a whole token", func(_ *fixture, text, _ string) string { return text[:len(text)-1] + "\n" }},
		{"space-before", "not a whole token", func(_ *fixture, text, _ string) string { return " " + text[1:] }},
		{"capitals", "not a whole token", func(_ *fixture, text, _ string) string { return strings.ToUpper(text) }},
		{"another-beginning", "not a whole token", func(_ *fixture, text, _ string) string { return "pgfsn" + text[5:] }},
		{"another-letter-in-the-id", "not a whole token", func(_ *fixture, text, _ string) string { return text[:6] + "1" + text[7:] }},
		{"no-end-of-the-id", "not a whole token", func(_ *fixture, text, id string) string { return text[:6+len(id)] + "a" + text[7+len(id):] }},
		{"a-megabyte", "not a whole token", func(*fixture, string, string) string { return strings.Repeat("pgfsm_", 1<<18) }},
		{"id-of-nobody", "no such token", func(_ *fixture, text, id string) string {
			return strings.Replace(text, id, strings.Repeat("a", len(id)), 1)
		}},
		{"first-of-the-secret", "is another", func(_ *fixture, text, _ string) string { return swap(text, len(text)-43) }},
		{"last-of-the-secret", "is another", func(_ *fixture, text, _ string) string { return swap(text, len(text)-1) }},
		{"secret-of-another", "is another", func(c *fixture, text, id string) string {
			other := c.Token(bob, ledger.RoleApprover)
			return text[:len(text)-43] + other[len(other)-43:]
		}},
		{"revoked", "was revoked at " + stamp(0), func(c *fixture, text, id string) string {
			if _, err := c.RevokeToken(context.Background(), root, id); err != nil {
				c.TB.Fatal(err)
			}
			return text
		}},
		{"at-its-expiry", "expired at " + stamp(expiresIn), func(c *fixture, text, id string) string {
			c.Clock.Add(expiresIn)
			return text
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newFixture(t)
			text, made, err := c.CreateToken(context.Background(), root, alice, ledger.RoleApprover, stamp(expiresIn))
			check.NoError(t, err)
			c.Clock.Add(expiresIn - time.Second)
			c.Caller(text) // still good
			c.Clock.Add(time.Second - expiresIn)
			who, err := c.Authenticate(context.Background(), tt.present(c, text, made.ID))
			var refusal *ledger.Refusal
			if !errors.As(err, &refusal) || err.Error() != ledger.ErrToken.Message || !errors.Is(err, ledger.ErrToken) {
				t.Fatalf("Authenticate() = %v, want %v", err, ledger.ErrToken)
			}
			if !cmp.Equal(who, ledger.Caller{}) || !strings.Contains(refusal.Detail, tt.detail) {
				t.Errorf("Authenticate() = %+v, detail %q; want nobody and %q", who, refusal.Detail, tt.detail)
			}
		})
	}
}

// A clock that was set back brings no token to life again; that is no fault of the token's.
func TestAuthenticateClockBack(t *testing.T) {
	c := newFixture(t)
	text, _, err := c.CreateToken(context.Background(), root, alice, ledger.RoleApprover, stamp(time.Hour))
	check.NoError(t, err)
	c.Clock.Add(2 * time.Hour)
	forEver := c.Token(bob, ledger.RoleApprover)
	c.Clock.Add(-time.Second - ledger.ClockSkew)
	if _, err := c.Authenticate(context.Background(), text); !errors.Is(err, ledger.ErrClockBack) {
		t.Errorf("Authenticate() = %v, want %v", err, ledger.ErrClockBack)
	}
	c.Clock.Add(time.Minute - 2*time.Hour + ledger.ClockSkew) // long ago
	if _, err := c.Authenticate(context.Background(), text); !errors.Is(err, ledger.ErrClockBack) {
		t.Errorf("Authenticate() before the expiry = %v, want %v", err, ledger.ErrClockBack)
	}
	c.Caller(forEver) // the time has no part in it
}

func TestCreateTokenRefuses(t *testing.T) {
	tests := []struct{ name, token, role, expires, says string }{
		{"no-name", "", ledger.RoleAgent, "", "0 bytes"},
		{"name-one-byte-too-long", strings.Repeat("n", ledger.MaxTokenName+1), ledger.RoleAgent, "", "129 bytes"},
		{"name-with-escape", "a\x1b[31m", ledger.RoleAgent, "", `\u001b`},
		{"name-with-new-line", "a\nb", ledger.RoleAgent, "", "do not show"},
		{"name-with-bidi", "a\u202eb", ledger.RoleAgent, "", "do not show"},
		{"name-not-text", "a\xff", ledger.RoleAgent, "", "do not show"},
		{"name-with-space-behind", "bob ", ledger.RoleAgent, "", "white space"},
		{"name-in-a-wide-form", "ｂｏｂ", ledger.RoleAgent, "", `"bob"`},
		{"name-decomposed", "Jose\u0301", ledger.RoleAgent, "", `"José"`},
		{"name-of-a-local-user", "local:alice", ledger.RoleAgent, "", "operating system"},
		{"name-of-a-local-user-with-a-cyrillic-letter", "l\u043ecal:root", ledger.RoleAgent, "", "operating system"},
		{"name-of-a-local-user-with-a-digit", "1oca1:root", ledger.RoleAgent, "", "operating system"},
		{"name-of-a-local-user-with-a-ratio", "local\u2236root", ledger.RoleAgent, "", "operating system"},
		{"name-of-a-local-user-with-a-letter-that-is-a-colon", "local\ua789root", ledger.RoleAgent, "", "operating system"},
		{"name-of-a-local-user-in-capitals", "LOCAL:alice", ledger.RoleAgent, "", "operating system"},
		{"name-of-agents-without-a-token", ledger.Anonymous, ledger.RoleAgent, "", "looks like"},
		{"name-of-agents-without-a-token-with-a-cyrillic-letter", "\u0430nonymous", ledger.RoleAgent, "", "looks like"},
		{"another-letter-case", "Alice@Example.com", ledger.RoleAgent, "", "looks like"},
		{"cyrillic-letter", "аlice@example.com", ledger.RoleAgent, "", "looks like"},
		{"case-of-a-revoked-token", "Zoe", ledger.RoleAgent, "", "looks like"},
		{"no-role", "bob", "", "", "agent, approver, auditor, admin"},
		{"role-in-capitals", "bob", "Admin", "", "agent, approver, auditor, admin"},
		{"expiry-of-another-form", "bob", ledger.RoleAgent, "2027-01-01", "form"},
		{"expiry-on-no-day", "bob", ledger.RoleAgent, "2027-02-30T00:00:00.000Z", "form"},
		{"expires-now", "bob", ledger.RoleAgent, stamp(0), "already"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newFixture(t)
			c.Token(alice, ledger.RoleAgent)
			_, zoe, err := c.CreateToken(context.Background(), root, "zoe", ledger.RoleAgent, "")
			check.NoError(t, err)
			if _, err := c.RevokeToken(context.Background(), root, zoe.ID); err != nil {
				t.Fatal(err)
			}
			before := len(c.Events(0))
			text, made, err := c.CreateToken(context.Background(), root, tt.token, tt.role, tt.expires)
			if !errors.Is(err, ledger.ErrTokenValues) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("CreateToken() = %v, want [%s] … %s", err, ledger.RefusedTokenValues, tt.says)
			}
			if text != "" || made != (ledger.Token{}) || len(c.Events(0)) != before {
				t.Errorf("CreateToken() = %q, %+v, and %d events", text, made, len(c.Events(0))-before)
			}
		})
	}
}

// Names that are as long as they may be, and people that only resemble each other.
func TestCreateTokenTakes(t *testing.T) {
	c := newFixture(t)
	for _, name := range []string{
		strings.Repeat("n", ledger.MaxTokenName), "José", "worker-6", "worker-9", "worker-9", "O'Neil", "小林", "local", "x local:y",
	} {
		if _, _, err := c.CreateToken(context.Background(), root, name, ledger.RoleAgent, stamp(time.Second)); err != nil {
			t.Errorf("CreateToken(%q) = %v", name, err)
		}
	}
}

// While there is an active admin, only admins manage tokens; without one, who may write the file.
func TestTokensAreManagedByAdmins(t *testing.T) {
	ctx := context.Background()
	c := newFixture(t)
	text, admin, err := c.CreateToken(ctx, root, alice, ledger.RoleAdmin, stamp(time.Hour))
	check.NoError(t, err)
	chief := c.Caller(text)
	create := func(by ledger.Caller, name, role string) (ledger.Caller, error) {
		text, _, err := c.CreateToken(ctx, by, name, role, stamp(2*time.Hour))
		if err != nil {
			return ledger.Caller{}, err
		}
		return c.Caller(text), nil
	}
	approver, err := create(chief, bob, ledger.RoleApprover)
	check.NoError(t, err)
	if e := c.Events(2)[0]; e.By != alice || e.Type != ledger.TokenCreated {
		t.Errorf("the event is %s by %q", e.Type, e.By)
	}
	for _, by := range []ledger.Caller{root, approver, {}} {
		if _, err := create(by, "x", ledger.RoleAdmin); !errors.Is(err, ledger.ErrRole) {
			t.Errorf("CreateToken() by %+v = %v, want %s", by, err, ledger.RefusedRole)
		}
		if _, err := c.RevokeToken(ctx, by, admin.ID); !errors.Is(err, ledger.ErrRole) {
			t.Errorf("RevokeToken() by %+v = %v, want %s", by, err, ledger.RefusedRole)
		}
	}
	for _, id := range []string{"", "aaaaaaaaaaaaaaaa", "\x1b"} {
		if _, err := c.RevokeToken(ctx, chief, id); !errors.Is(err, ledger.ErrTokenID) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("RevokeToken(%q) = %v, want %s", id, err, ledger.RefusedTokenID)
		}
	}
	c.Clock.Add(time.Hour) // the admin expires
	if _, err := create(chief, "x", ledger.RoleAgent); !errors.Is(err, ledger.ErrToken) {
		t.Errorf("CreateToken() by an admin who expired = %v, want %s", err, ledger.RefusedToken)
	}
	second, err := create(root, "second", ledger.RoleAdmin)
	if err != nil {
		t.Fatalf("without an active admin: %v", err)
	}
	gone, err := c.RevokeToken(ctx, second, second.TokenID)
	if err != nil || gone.Revoked != stamp(time.Hour) {
		t.Errorf("RevokeToken() of oneself = %+v, %v", gone, err)
	}
	if _, err := c.RevokeToken(ctx, root, second.TokenID); !errors.Is(err, ledger.ErrTokenID) {
		t.Errorf("RevokeToken() again = %v, want %s", err, ledger.RefusedTokenID)
	}
	if _, err := create(second, "x", ledger.RoleAgent); !errors.Is(err, ledger.ErrToken) {
		t.Errorf("CreateToken() by an admin who was revoked = %v, want %s", err, ledger.RefusedToken)
	}
}

// Secrets are compared in constant time, in one place, and nowhere in another way.
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	plain := regexp.MustCompile(`\.Secret [!=]=|[!=]= [a-z.]*\.Secret\b|Equal\([^)]*\.Secret\b`)
	files, err := filepath.Glob("*.go")
	check.NoError(t, err)
	compared := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		check.NoError(t, err)
		compared += strings.Count(string(src), "subtle.ConstantTimeCompare(")
		if found := plain.Find(src); found != nil {
			t.Errorf("%s compares a secret: %s", name, found)
		}
	}
	if compared != 1 {
		t.Errorf("secrets are compared in %d places, want 1", compared)
	}
}

// TestParseExpiry shows the forms and the limits.
func TestParseExpiry(t *testing.T) {
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ give, want string }{
		{"never", ""},
		{"1h", "2026-11-21T10:00:00.000Z"},
		{"90d", "2027-02-19T09:00:00.000Z"},
		{"3660d", "2036-11-28T09:00:00.000Z"},
		{"87840h", "2036-11-28T09:00:00.000Z"},
		{"2027-01-01", "2027-01-01T00:00:00.000Z"},
		{"2027-01-01T12:00:00+02:00", "2027-01-01T10:00:00.000Z"},
	} {
		if got, err := ledger.ParseExpiry(tt.give, at); got != tt.want || err != nil {
			t.Errorf("ParseExpiry(%q) = %q, %v, want %q", tt.give, got, err, tt.want)
		}
	}
	for _, bad := range []string{"", "d", "0d", "0h", "-1d", "+1d", "3661d", "87841h", "1.5d", "90", "90m", "1d ", "2027-02-30", "Never", "18446744073709551617d"} {
		if got, err := ledger.ParseExpiry(bad, at); err == nil {
			t.Errorf("ParseExpiry(%q) = %q, want an error", bad, got)
		}
	}
}
