package api_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"pgfsm/internal/present"
	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
)

func TestSignInByRole(t *testing.T) {
	for _, role := range ledger.Roles() {
		t.Run(role, func(t *testing.T) {
			d := newFixture(t)
			q := d.Hold(1)
			b := d.browser(here)
			token := d.Token(alice, role)
			got := b.post("/console/sign-in", url.Values{"token": {token}, "next": {"calls/" + q.RunID}})
			if role == ledger.RoleAgent || role == ledger.RoleHook || role == ledger.RolePerson {
				got.want(t, http.StatusForbidden, "this needs a token of the role")
				b.page("", header("Authorization", "Bearer "+token)).want(t, http.StatusUnauthorized, "Sign in")
				return
			}
			b.takes(got)
			if !strings.HasSuffix(b.base, "/calls/"+q.RunID) {
				t.Errorf("the person comes to %s", b.base)
			}
			b.base, _, _ = strings.Cut(b.base, "calls/")
			may := role == ledger.RoleApprover
			page := b.page("calls/" + q.RunID)
			page.want(t, http.StatusOK, alice, "fetch_policy_entry")
			if strings.Contains(page.body, `value="approve"`) != may {
				t.Errorf("the form to vote is not as the role: %s", page.body)
			}
			if vote := b.vote(q, "approve", ""); (vote.status == http.StatusSeeOther) != may {
				t.Errorf("the vote: %d %s", vote.status, vote.body)
			}
			if n := len(d.Votes(q.RunID)); (n == 1) != may {
				t.Errorf("%d votes", n)
			}
			trace := b.page("runs/" + q.RunID + "/trace")
			if audits := role == ledger.RoleAuditor; (trace.status == http.StatusOK) != audits {
				t.Errorf("the trace: %d", trace.status)
			}
		})
	}
}

func TestSignInRefused(t *testing.T) {
	for _, tc := range []struct {
		name   string
		fields url.Values
		status int
	}{
		{"no-token", url.Values{"token": {"x"}, "next": {""}}, http.StatusUnauthorized},
		{"open-redirect", url.Values{"token": {"TOKEN"}, "next": {"//evil.example"}}, http.StatusBadRequest},
		{"open-redirect-upwards", url.Values{"token": {"TOKEN"}, "next": {"calls/../../x"}}, http.StatusBadRequest},
		{"token-twice", url.Values{"token": {"TOKEN", "TOKEN"}, "next": {""}}, http.StatusBadRequest},
		{"unknown-field", url.Values{"token": {"TOKEN"}, "admin": {"1"}}, http.StatusBadRequest},
		{"too-large", url.Values{"token": {strings.Repeat("x", 9<<10)}}, http.StatusRequestEntityTooLarge},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newFixture(t)
			token := d.Token(alice, ledger.RoleApprover)
			for i, text := range tc.fields["token"] {
				tc.fields["token"][i] = strings.ReplaceAll(text, "TOKEN", token)
			}
			got := d.browser(here).post("/console/sign-in", tc.fields)
			got.want(t, tc.status)
			if got.header.Get("Set-Cookie") != "" || strings.Contains(got.body, token) {
				t.Errorf("a session begins, or the page has the token: %v %s", got.header, got.body)
			}
		})
	}
}

func TestSessionCookie(t *testing.T) {
	d := newFixture(t)
	local := d.signedIn(here, alice, ledger.RoleApprover)
	if !strings.HasPrefix(local.base, "/console/s/") || strings.HasPrefix(local.cookie, "__Host-") {
		t.Errorf("without TLS: %s at %s", local.cookie, local.base)
	}
	proxied := d.signedIn(there, bob, ledger.RoleApprover)
	if proxied.base != "/console/" || !strings.HasPrefix(proxied.cookie, "__Host-pgfsm=") {
		t.Errorf("with TLS: %s at %s", proxied.cookie, proxied.base)
	}
	got := d.browser(there).post("/console/sign-in", url.Values{"token": {d.Token(bob, ledger.RoleApprover)}, "next": {""}})
	for _, want := range []string{"Secure", "HttpOnly", "SameSite=Lax", "Path=/;"} {
		if !strings.Contains(got.header.Get("Set-Cookie"), want) {
			t.Errorf("the cookie has no %s: %s", want, got.header.Get("Set-Cookie"))
		}
	}
	other := d.signedIn(here, carol, ledger.RoleAuditor)
	for _, tc := range []struct {
		name   string
		b      browser
		change func(*http.Request)
		status int
	}{
		{"own-session", *local, header("X", "1"), http.StatusOK},
		{"two-cookies", *local, header("Cookie", local.cookie+"; pgfsm=of-another-port"), http.StatusBadRequest},
		{"two-headers", *local, header("Cookie", local.cookie, "x=1"), http.StatusBadRequest},
		{"path-of-another-session", browser{fixture: d, host: here, base: other.base, cookie: local.cookie}, header("X", "1"), http.StatusUnauthorized},
		{"path-without-session", browser{fixture: d, host: here, base: "/console/", cookie: local.cookie}, header("X", "1"), http.StatusUnauthorized},
		{"path-alone", browser{fixture: d, host: here, base: local.base}, header("X", "1"), http.StatusUnauthorized},
		{"chosen-by-another", browser{fixture: d, host: there, base: "/console/", cookie: "__Host-pgfsm=" + strings.Repeat("x", 43)},
			header("X", "1"), http.StatusUnauthorized},
		{"cookie-of-this-machine-through-the-proxy", browser{fixture: d, host: there, base: "/console/", cookie: "__Host-" + local.cookie},
			header("X", "1"), http.StatusOK},
		{"host-of-another", *local, func(r *http.Request) { r.Host = "evil.example" }, http.StatusMisdirectedRequest},
		{"host-with-another-port", *local, func(r *http.Request) { r.Host = "127.0.0.1:9999" }, http.StatusMisdirectedRequest},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, page := range []string{"", "runs"} {
				tc.b.TB = t
				tc.b.page(page, tc.change).want(t, tc.status)
			}
		})
	}
}

func TestSignInLink(t *testing.T) {
	d := newFixture(t)
	link, err := d.NewLink(context.Background(), d.Approver(alice))
	check.NoError(t, err)
	b := d.browser(here)
	for range 2 {
		b.get("/console/link/"+link).want(t, http.StatusOK, "Sign in as "+alice, "approver")
	}
	b.post("/console/link/"+link, nil, header("Sec-Fetch-Site", "cross-site")).want(t, http.StatusForbidden)
	b.takes(b.post("/console/link/"+link, nil))
	b.page("").want(t, http.StatusOK, "No call is held")
	b.get("/console/link/"+link).want(t, http.StatusGone)
	b.post("/console/link/"+link, nil).want(t, http.StatusGone)
	if late, err := d.NewLink(context.Background(), d.Approver(alice)); err != nil {
		t.Fatal(err)
	} else {
		d.Clock.Add(ledger.LinkTime)
		b.post("/console/link/"+late, nil).want(t, http.StatusGone)
		if strings.Contains(d.notes.String(), late) || strings.Contains(d.notes.String(), link) {
			t.Errorf("the log has a link: %s", d.notes.String())
		}
	}
}

// TestSessionEndsEverywhere: all sessions of a token end with it, also for votes that are on their way.
func TestSessionEndsEverywhere(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(t *testing.T, d *fixture, b *browser)
	}{
		{"refreshed-only", func(_ *testing.T, d *fixture, b *browser) {
			for range 4 {
				d.Clock.Add(ledger.SessionIdle / 4)
				b.page("", header("Pgfsm-Refresh", "1"))
			}
		}},
		{"signed-out", func(t *testing.T, _ *fixture, b *browser) {
			b.post(b.base+"sign-out", nil).want(t, http.StatusSeeOther)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newFixture(t)
			b := d.signedIn(here, alice, ledger.RoleApprover)
			q := d.Hold(1)
			b.page("calls/"+q.RunID).want(t, http.StatusOK)
			tc.do(t, d, b)
			b.page("").want(t, http.StatusUnauthorized)
			b.vote(q, "approve", "").want(t, http.StatusUnauthorized)
			b.page("events?of=held&after=0").want(t, http.StatusUnauthorized)
			if n := len(d.Votes(q.RunID)); n != 0 {
				t.Errorf("%d votes", n)
			}
		})
	}
}

// origin is the header of a browser that does not send Sec-Fetch-Site.
func origin(from string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Del("Sec-Fetch-Site")
		r.Header.Set("Origin", from)
	}
}

// TestOtherSitesAreRefused: a page of another site, and one that is not signed in, cannot use the console's forms.
func TestOtherSitesAreRefused(t *testing.T) {
	d := newFixture(t)
	asked := 0
	d.with(judging(), func(o *api.Options) {
		o.Servers = func() ([]present.Server, string) { return nil, "" }
		o.AskServers = func(context.Context) error { asked++; return nil }
		o.Explain = func(context.Context, present.Question) (present.Explanation, error) {
			asked++
			return present.Explanation{}, nil
		}
	})
	q := d.Hold(1)
	b := d.signedIn(here, alice, ledger.RoleApprover)
	forms := map[string]url.Values{
		"calls/" + q.RunID: {"vote": {"approve"}, "digest": {string(q.Binding)}, "reason": {""}},
		"policy":           {"try": {"explain"}, "server": {"s"}, "tool": {"t"}, "args": {"{}"}}, "servers": {},
	}
	for _, tc := range []struct {
		name   string
		change func(*http.Request)
		status int
	}{
		{"cross-site", header("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		{"same-site", header("Sec-Fetch-Site", "same-site"), http.StatusForbidden}, // another port of this machine
		{"foreign-origin", origin("http://evil.example"), http.StatusForbidden},
		{"null-origin", origin("null"), http.StatusForbidden},
		{"origin-of-another-port", origin("http://127.0.0.1:9999"), http.StatusForbidden},
		{"two-origins", header("Origin", "http://"+here, "http://evil.example"), http.StatusBadRequest},
		{"text-form", header("Content-Type", "text/plain"), http.StatusBadRequest},
		{"query", func(r *http.Request) { r.URL.RawQuery = "vote=approve" }, http.StatusBadRequest},
		{"get", func(r *http.Request) {
			r.Method, r.Body, r.ContentLength = http.MethodGet, http.NoBody, 0
			r.URL.RawQuery = "vote=approve&digest=" + string(q.Binding)
		}, http.StatusOK}, // shows the page
		{"method", func(r *http.Request) { r.Method = http.MethodPut }, http.StatusMethodNotAllowed},
		{"not-signed-in", func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusUnauthorized},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for page, fields := range forms { // in any order
				if got := b.post(b.base+page, fields, tc.change); got.status != tc.status {
					t.Errorf("%s: %d, want %d", page, got.status, tc.status)
				}
			}
			if n := len(d.Votes(q.RunID)); n != 0 || asked != 0 {
				t.Errorf("%d votes; the service was asked %d times", n, asked)
			}
		})
	}
}

func TestEveryPageForbidsFramesAndScripts(t *testing.T) {
	d := newFixture(t)
	q := d.Hold(1)
	b := d.signedIn(here, alice, ledger.RoleAuditor)
	for _, path := range []string{"/", "/console/", "/console/sign-in", "/console/x", "/console/console.js", "/console/console.css",
		b.base, b.base + "runs", b.base + "runs?since=x", b.base + "calls/" + q.RunID, b.base + "runs/" + q.RunID, b.base + "runs/" + q.RunID + "/trace",
		b.base + "now", b.base + "log", b.base + "log/0", b.base + "policy", b.base + "servers"} {
		h := b.get(path).header
		for name, want := range map[string]string{ // in any order
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
				"frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
			"Referrer-Policy": "same-origin", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
	}
}
