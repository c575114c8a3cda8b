package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/ledgertest"
)

// TestRoles is the table of docs/operate/identity.md: who may do what. It has every route of the API.
func TestRoles(t *testing.T) {
	const approver, auditor, admin, agent, nobody = ledger.RoleApprover, ledger.RoleAuditor, ledger.RoleAdmin, ledger.RoleAgent, ""
	readers, anybody := []string{approver, auditor, admin}, []string{approver, auditor, admin, agent, nobody}
	admits := map[string][]string{
		"GET /pending": readers, "GET /requests": readers, "GET /replicas": readers, "GET /summary": readers, "GET /entries": {auditor},
		"GET /checkpoints": readers, "GET /policies": readers, "GET /servers": readers, "GET /status/{run}": {approver, auditor, admin, agent},
		"GET /steps/{run}": readers, "GET /what-if/{run}": readers, "GET /inclusion/{run}": readers, "GET /tree-head": readers, "POST /approve/{run}": {approver},
		"POST /deny/{run}": {approver}, "POST /reload": {admin}, "GET /metrics": {auditor}, "GET /openapi.yaml": anybody,
		"GET /healthz": anybody, "GET /readyz": anybody,
	}
	d := newFixture(t)
	q, own := d.Hold(2), d.Ask("robot", ledgertest.Holding(1))
	tokens := map[string]string{
		approver: d.token(approver, alice), auditor: d.token(auditor, "auditor"), agent: d.token(agent, "robot"),
	}
	tokens[admin] = d.token(admin, "root") // then only an admin makes tokens
	for _, route := range api.Routes() {
		method, path, _ := strings.Cut(strings.Replace(route, "{run}", q.RunID, 1), " ")
		for _, role := range anybody {
			got, want := d.call(method, path, tokens[role], ""), 0
			switch {
			case slices.Contains(admits[route], role):
				want = got.status
				if got.status == http.StatusUnauthorized || got.status == http.StatusForbidden {
					want = http.StatusOK
				}
			case role == nobody:
				want = http.StatusUnauthorized
			default:
				want = http.StatusForbidden
			}
			if got.status != want {
				t.Errorf("%s as %q: %d, want %d: %s", route, role, got.status, want, got.body)
			}
			if head := d.call(http.MethodHead, path, tokens[role], ""); method == http.MethodGet && head.status != got.status {
				t.Errorf("HEAD %s as %q: %d, want %d", path, role, head.status, got.status)
			}
		}
	}
	d.call(http.MethodGet, "/status/"+q.RunID, tokens[agent], "").wantCode(t, 404, "request_unknown") // it is not the agent's
	d.call(http.MethodGet, "/status/"+own.RunID, tokens[agent], "").wantCode(t, 200, "")
	for role, token := range tokens { // in any order
		if got := d.approve(q, token); (got.status == http.StatusOK) != (role == approver) {
			t.Errorf("approve as %s: %d: %s", role, got.status, got.body)
		}
	}
	if n := len(d.Votes(q.RunID)); n != 1 {
		t.Errorf("%d votes are recorded, want only the approver's", n)
	}
}

// TestRoutesNeedARole: a route that does not say who may use it cannot be registered.
func TestRoutesNeedARole(t *testing.T) {
	newFixture(t).handler.Register(ledger.ActRead)
	defer func() {
		if recover() == nil {
			t.Error("a route without a role is registered")
		}
	}()
	newFixture(t).handler.Register()
}

// TestVoteForTheCallOfARevokedRequester: the page says before the vote that the call will not be made; the vote counts, and the
// answer says it too.
func TestVoteForTheCallOfARevokedRequester(t *testing.T) {
	const says = "This call will not be made, even if approvers agree"
	d := newFixture(t)
	agent, voter, b := d.token(ledger.RoleAgent, carol), d.token(ledger.RoleApprover, alice), d.signedIn(here, bob, ledger.RoleApprover)
	valid, revoked, denied := d.Hold(1), d.Hold(1), d.Hold(1)
	if page := b.page("calls/" + revoked.RunID); strings.Contains(page.body, says) {
		t.Errorf("the requester has a valid token: %s", page.body)
	}
	if got := d.approve(valid, voter); got.status != 200 || strings.Contains(got.body, "not_called") {
		t.Errorf("with a valid token: %d %s", got.status, got.body)
	}
	if _, err := d.Ledger.RevokeToken(t.Context(), ledger.LocalUser("local:root"), strings.Split(agent, "_")[1]); err != nil {
		t.Fatal(err)
	}
	b.page("calls/"+revoked.RunID).want(t, http.StatusOK, says)
	if got := d.approve(revoked, voter); got.status != 200 || !strings.Contains(got.body, `"not_called":"`+carol) {
		t.Errorf("after the requester's token was revoked: %d %s, want why the call is not made", got.status, got.body)
	}
	if got := d.deny(denied, voter); got.status != 200 || strings.Contains(got.body, "not_called") {
		t.Errorf("a denial: %d %s", got.status, got.body)
	}
}

// TestRefusedVotes: votes that do not count have the same status in the API and in the console, which says why.
func TestRefusedVotes(t *testing.T) {
	holds := func(d *fixture, _ func()) ledger.RunRow { return d.Hold(1) }
	for _, tt := range []struct {
		name               string
		role, voter        string
		before             func(d *fixture, look func()) ledger.RunRow // returns what the voter has seen
		vote, reason, says string
		status             int
		code               api.Code
	}{
		{"denied-already", ledger.RoleApprover, alice, func(d *fixture, _ func()) ledger.RunRow {
			q := d.Hold(1)
			d.deny(q, d.token(ledger.RoleApprover, bob)).wantCode(d.TB, 200, "")
			return q
		}, "approve", "", "Your vote does not count", 409, "request_decided"},
		{"voted-already", ledger.RoleApprover, alice, func(d *fixture, _ func()) ledger.RunRow {
			q := d.Hold(2)
			d.approve(q, d.token(ledger.RoleApprover, alice)).wantCode(d.TB, 200, "")
			return q
		}, "deny", "no", "one person has one vote", 409, "already_voted"},
		{"expired", ledger.RoleApprover, alice, func(d *fixture, look func()) ledger.RunRow {
			q := d.Hold(1)
			for range 2 {
				d.Clock.Add(30 * time.Minute)
				look() // the session does not end
			}
			return q
		}, "approve", "", "the request expired at", 410, "approval_expired"},
		{"other-binding", ledger.RoleApprover, alice, func(d *fixture, _ func()) ledger.RunRow {
			q := d.Hold(1)
			q.Binding = d.Hold(1).Binding
			return q
		}, "approve", "", "what was seen is not what waits", 412, "binding_mismatch"},
		{"unknown-run", ledger.RoleApprover, alice, func(d *fixture, _ func()) ledger.RunRow {
			q := d.Hold(1)
			q.RunID = "01939f0e-7d5c-7b1e-8d5e-2f6c1a0b9e3d"
			return q
		}, "approve", "", "o run", 404, "request_unknown"},
		{"revoked-token", ledger.RoleApprover, alice, func(d *fixture, _ func()) ledger.RunRow {
			id := strings.Split(d.token(ledger.RoleApprover, alice), "_")[1]
			if _, err := d.Ledger.RevokeToken(d.TB.Context(), ledger.LocalUser("local:root"), id); err != nil {
				d.TB.Fatal(err)
			}
			return d.Hold(1)
		}, "approve", "", "Sign in", 401, "token_refused"},
		{"own-request", ledger.RoleApprover, carol, holds, "approve", "", "Your vote does not count", 403, "approver_not_eligible"},
		{"auditor", ledger.RoleAuditor, alice, holds, "approve", "", "this needs a token of the role approver", 403, "role_not_sufficient"},
		{"denial-without-a-reason", ledger.RoleApprover, alice, holds, "deny", " ", "a denial needs a reason", 422, "ballot_invalid"},
	} {
		for _, console := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/console-%t", tt.name, console), func(t *testing.T) {
				d := newFixture(t)
				token, b := d.token(tt.role, tt.voter), d.browser(here)
				b.takes(b.post("/console/sign-in", url.Values{"token": {token}, "next": {""}}))
				q := tt.before(d, func() { b.page("") })
				votes, told := len(d.Votes(q.RunID)), len(d.voted)
				if console {
					b.vote(q, tt.vote, tt.reason).want(t, tt.status, tt.says)
				} else {
					d.call(http.MethodPost, "/"+tt.vote+"/"+q.RunID, token, ballot(q, tt.reason)).wantCode(t, tt.status, tt.code)
				}
				if len(d.Votes(q.RunID)) != votes || len(d.voted) != told {
					t.Errorf("the vote counts: %v; the worker was told of %q", d.Votes(q.RunID), d.voted)
				}
			})
		}
	}
}

// TestRefusals is the table of other errors of a vote, as statuses and codes.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		do     func(*fixture) reply
		status int
		code   api.Code
	}{
		{"never-held", func(d *fixture) reply {
			q := d.Ask(carol, statestest.Content())
			q.Binding = canonical.Sum("x", nil)
			return d.approve(q, d.token(ledger.RoleApprover, alice))
		}, 409, "request_not_held"},
		{"no-digest", func(d *fixture) reply {
			return d.call(http.MethodPost, "/approve/"+d.Hold(1).RunID, d.token(ledger.RoleApprover, alice), `{"reason": "yes"}`)
		}, 428, api.DigestRequired},
		{"ledger-breaks", func(d *fixture) reply {
			q, text := d.Hold(1), d.token(ledger.RoleApprover, alice)
			d.Store.Fail = failing
			got := d.approve(q, text)
			d.Store.Fail = nil
			return got
		}, 500, api.Internal},
		{"lease-over", func(d *fixture) reply {
			q, text := d.Hold(1), d.token(ledger.RoleApprover, alice)
			d.Store.Fail = func(ledgertest.Op, int) error { return fmt.Errorf("ledger x: %w", ledger.ErrFenced) }
			got := d.approve(q, text)
			d.Store.Fail = nil
			return got
		}, 503, api.Unavailable},
		{"ledger-full-or-locked", func(d *fixture) reply {
			q, text := d.Hold(1), d.token(ledger.RoleApprover, alice)
			d.Store.Fail = func(ledgertest.Op, int) error { return fmt.Errorf("ledger x: %w", ledger.ErrUnavailable) }
			got := d.approve(q, text)
			list := d.call(http.MethodGet, "/pending", text, "")
			d.Store.Fail = nil
			const decided = "nothing was decided"
			if list.status != 503 || strings.Contains(list.body, decided) || !strings.Contains(got.body, decided) {
				d.TB.Errorf("POST: %s; GET: %d %s", got.body, list.status, list.body)
			}
			if n := len(d.Votes(q.RunID)); n != 0 {
				d.TB.Errorf("%d ballots are recorded", n)
			}
			return got
		}, 503, api.Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t)
			got := c.do(d)
			got.wantCode(t, c.status, c.code)
			if len(d.voted) > 0 {
				t.Errorf("the worker was told of %q", d.voted)
			}
		})
	}
}

// The reason of a denial is recorded as people can read it, and shown so everywhere.
func TestReasonsAreVisible(t *testing.T) {
	d := newFixture(t)
	q, text := d.Hold(1), d.token(ledger.RoleApprover, alice)
	d.call(http.MethodPost, "/deny/"+q.RunID, text, ballot(q, "no\u202eyes\x1b[31m\n")).wantCode(t, 200, "")
	const want = `no\\u202eyes\\u001b[31m\\u000a"`
	got := d.call(http.MethodGet, "/status/"+q.RunID, text, "")
	got.wantCode(t, 200, "")
	if n := strings.Count(got.body, want); n != 2 { // of the vote, and of the request
		t.Errorf("the answer is %s", got.body)
	}
	late := d.approve(q, d.token(ledger.RoleApprover, bob))
	late.wantCode(t, 409, "request_decided")
	if strings.ContainsAny(late.body, "\u202e\x1b") {
		t.Errorf("who comes too late is told %s", late.body)
	}
}

// Results are shown to auditors alone. One that cannot be shown says so, and the log says why.
func TestResultsAreForAuditors(t *testing.T) {
	d := newFixture(t)
	q := d.Hold(1)
	var fails error
	d.handler.Result = func(_ context.Context, _ ledger.Reader, of *ledger.RunRow) (jsontext.Value, string, error) {
		if of.RunID != q.RunID || fails != nil {
			return nil, "", fails
		}
		return jsontext.Value(`{"content":[]}`), "", nil
	}
	for role, want := range map[string]string{ // in any order: each stands alone
		ledger.RoleAuditor: `{"content":[]}`, ledger.RoleApprover: "null", ledger.RoleAdmin: "null",
	} {
		got := d.call(http.MethodGet, "/status/"+q.RunID, d.token(role, role), "")
		got.wantCode(t, 200, "")
		if !strings.Contains(got.body, `"result":`+want+`,"result_note":""`) {
			t.Errorf("as %s: %s", role, got.body)
		}
	}
	fails = errDisk
	got := d.call(http.MethodGet, "/status/"+q.RunID, d.token(ledger.RoleAuditor, ledger.RoleAuditor), "")
	got.wantCode(t, 200, "")
	if body := got.body; !strings.Contains(body, `"result":null,"result_note":"the result cannot be shown`) ||
		strings.Contains(body, errDisk.Error()) || !strings.Contains(d.notes.String(), errDisk.Error()) {
		t.Errorf("%s, log %s", body, &d.notes)
	}
}

// Tokens that let nobody in do not fill the log, whether they are refused or cannot be looked up. Every other line is logged.
func TestLogIsLimited(t *testing.T) {
	d := newFixture(t)
	const refused, broken = 500, 30
	q, text := d.Hold(1), d.token(ledger.RoleApprover, alice)
	d.handler.Ready = notReady
	for range refused {
		d.call(http.MethodGet, "/pending", "pgfsm_x", "").wantCode(t, 401, "token_refused")
	}
	if n := strings.Count(d.notes.String(), "\n"); n < 1 || n > refused/10 {
		t.Errorf("%d lines for %d refused requests", n, refused)
	}
	d.Store.Fail = failing
	defer func() { d.Store.Fail = nil }()
	for range broken {
		d.call(http.MethodGet, "/readyz", "", "").wantCode(t, 503, api.Unavailable)
		d.approve(q, text).wantCode(t, 500, api.Internal)
	}
	if n := strings.Count(d.notes.String(), errDisk.Error()); n != 2*broken {
		t.Errorf("%d lines about the disk, want %d:\n%s", n, 2*broken, &d.notes)
	}
}

// Why a token is refused, and what broke inside, the caller is not told; the log is.
func TestWhatCallersAreNotTold(t *testing.T) {
	d := newFixture(t)
	q, text := d.Hold(1), d.token(ledger.RoleApprover, alice)
	wrong := text[:len(text)-4] + "AAAA"
	got := d.call(http.MethodGet, "/pending", wrong, "")
	got.wantCode(t, 401, "token_refused")
	if strings.Contains(got.body, strings.Split(text, "_")[1]) || !strings.Contains(d.notes.String(), strings.Split(text, "_")[1]) {
		t.Errorf("body = %s, log = %s", got.body, &d.notes)
	}
	if h := got.header.Get("WWW-Authenticate"); h != `Bearer realm="pgfsm", error="invalid_token"` {
		t.Errorf("WWW-Authenticate = %q", h)
	}
	if h := d.call(http.MethodGet, "/pending", "", "").header.Get("WWW-Authenticate"); h != `Bearer realm="pgfsm"` {
		t.Errorf("WWW-Authenticate without a token = %q", h)
	}
	d.Store.Fail = failing
	defer func() { d.Store.Fail = nil }()
	if got := d.approve(q, text); strings.Contains(got.body, errDisk.Error()) || !strings.Contains(d.notes.String(), errDisk.Error()) {
		t.Errorf("body = %s, log = %s", got.body, &d.notes)
	}
}

// The key of a ballot is that of its header, in both spellings. ledger.TestVoteIdempotency shows what the ledger makes of it.
func TestIdempotency(t *testing.T) {
	d := newFixture(t)
	q := d.Hold(2)
	token := d.token(ledger.RoleApprover, alice)
	key := header("Idempotency-Key", `"abc"`)
	first := d.approve(q, token, key)
	first.wantCode(t, 200, "")
	d.Clock.Add(7200 * time.Second)
	again := d.approve(q, token, header("Idempotency-Key", "abc"))
	if again.status != 200 || again.body != first.body {
		t.Errorf("the answer was %s, and is %d %s", first.body, again.status, again.body)
	}
	d.deny(q, token, key).wantCode(t, 422, "key_reused")
	d.approve(q, token, header("Idempotency-Key", "second")).wantCode(t, 410, "approval_expired")
	if n := len(d.Votes(q.RunID)); n != 1 {
		t.Errorf("%d votes are recorded, want 1", n)
	}
}

func TestIdempotencyKeys(t *testing.T) {
	d := newFixture(t)
	token := d.token(ledger.RoleApprover, alice)
	long := strings.Repeat("k", ledger.MaxKey)
	for _, c := range []struct {
		name, key string
		ok        bool
	}{
		{"bare", "a-b_c.1", true}, {"quoted", `"a b,c;d"`, true}, {"as-long-as-it-may-be", long, true}, {"quoted-as-long", `"` + long + `"`, true},
		{"one-past", long + "k", false}, {"empty", "", false}, {"empty-quotes", `""`, false}, {"one-quote", `"`, false},
		{"not-closed", `"abc`, false}, {"with-parameters", `"abc";v=1`, false}, {"list", `"a", "b"`, false}, {"bare-list", "a,b", false},
		{"bad-escape", `"a\b"`, false}, {"escape-at-the-end", `"a\"`, false}, {"bare-backslash", `a\b`, false},
		{"quote-inside", `a"b`, false}, {"control", "a\tb", false}, {"not-ascii", "ä", false}, {"bare-space", "a b", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := d.approve(d.Hold(1), token, header("Idempotency-Key", c.key))
			if c.ok {
				got.wantCode(t, 200, "")
			} else {
				got.wantCode(t, 400, api.KeyInvalid)
			}
		})
	}
}

const patience = 10 * time.Second
