package api_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/identity/login"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/ledgertest"
)

const issuer = "https://login.example.com"

// provider signs a person in for every response with the code "good".
type provider struct {
	who     ledger.Caller
	at      time.Time
	attempt *login.SignIn // of the last URL
	down    bool

	responses int // that SignIn was asked about
}

func (*provider) IssuerURL() string { return issuer }
func (*provider) Name() string      { return "Example Corp" }

// signInPage sends the browser to the provider, with a query behind it.
const signInPage = "/console/provider?issuer=https%3A%2F%2Flogin.example.com"

func (p *provider) SignInURL(_ context.Context, s *login.SignIn) (string, error) {
	if p.down {
		return "", errors.New("connection refused")
	}
	p.attempt = s
	return issuer + "/authorize", nil
}

func (p *provider) SignIn(_ context.Context, s *login.SignIn, q url.Values) (ledger.Caller, time.Time, error) {
	p.responses++
	if q.Get("code") != "good" || p.attempt == nil || s.Secret != p.attempt.Secret || s.Redirect != p.attempt.Redirect {
		return ledger.Caller{}, time.Time{}, errors.New("the code is not good")
	}
	return p.who, p.at, nil
}

func (p *provider) Roles(*policy.Identity, string) []string { return p.who.Roles }

// person is somebody whom the provider knows.
func person(sub string, roles ...string) ledger.Caller {
	return ledger.Caller{
		Name: policy.SubjectName(issuer, sub), Roles: roles, Expires: "2099-01-01T00:00:00.000Z",
		Identity: &policy.Identity{Credential: &policy.Credential{Key: "k1"}, Client: "pgfsm-console", Groups: &[]string{"owners"}, Kind: policy.ActorPerson},
	}
}

// ownersDecide holds calls until a member of the group owners agrees.
func ownersDecide() policy.Content {
	c := ledgertest.Holding(1)
	c.Roles = []policy.Role{{Role: "owners", Actors: []string{policy.GroupPrefix + "owners"}}}
	return c
}

// newProvided returns a console with a provider, and a browser without a session.
func newProvided(t *testing.T, host string, who ledger.Caller) (*fixture, *provider, *browser) {
	t.Helper()
	d, p := newFixture(t), &provider{who: who}
	d.handler.Providers = []api.Provider{p}
	return d, p, d.browser(host)
}

// begins starts to sign in, and keeps the cookie of the attempt.
func (b *browser) begins(t *testing.T, query string) {
	t.Helper()
	got := b.get(signInPage + query)
	c, err := http.ParseSetCookie(got.header.Get("Set-Cookie"))
	if err != nil || got.status != http.StatusSeeOther || got.header.Get("Location") != issuer+"/authorize" {
		t.Fatalf("%d %v: %v", got.status, got.header, err)
	}
	if secure := b.host == there; !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Secure != secure || strings.HasPrefix(c.Name, "__Host-") != secure {
		t.Errorf("the cookie of the attempt is %s", c)
	}
	b.cookie = c.Name + "=" + c.Value
}

// comesBack is the browser that the provider sends back, from another site.
func (b *browser) comesBack(query string) reply {
	return b.get("/console/callback"+query, header("Sec-Fetch-Site", "cross-site"))
}

// arrives keeps the session that a reply begins, beside the end of the attempt.
func (b *browser) arrives(t *testing.T, got reply) {
	t.Helper()
	all := got.header["Set-Cookie"]
	if got.status != http.StatusSeeOther || len(all) != 2 || !strings.Contains(all[0], "Max-Age=0") {
		t.Fatalf("nobody is signed in: %d %v %s", got.status, all, got.body)
	}
	c, err := http.ParseSetCookie(all[1])
	check.NoError(t, err)
	b.cookie, b.base = c.Name+"="+c.Value, got.header.Get("Location")
}

func TestProviderSignIn(t *testing.T) {
	for _, host := range []string{here, there} {
		t.Run(host, func(t *testing.T) {
			d, p, b := newProvided(t, host, person("carol", ledger.RoleApprover))
			q := d.HoldBy(alice, ownersDecide())
			b.page("sign-in").want(t, http.StatusOK, "Sign in with Example Corp<", `href="/console/provider?issuer=https%3A%2F%2Flogin.example.com&amp;next="`)
			b.begins(t, "&next=calls%2F"+q.RunID)
			if want := map[string]string{here: "http://" + here, there: "https://" + there}[host] + "/console/callback"; p.attempt.Redirect != want {
				t.Errorf("the provider sends the browser back to %s, want %s", p.attempt.Redirect, want)
			}
			b.arrives(t, b.comesBack("?code=good&state=x"))
			if !strings.HasSuffix(b.base, "/calls/"+q.RunID) {
				t.Errorf("the person comes to %s", b.base)
			}
			b.base, _, _ = strings.Cut(b.base, "calls/")
			b.page("calls/"+q.RunID).want(t, http.StatusOK, p.who.Name, `value="approve"`)
			if got := b.vote(q, "approve", ""); got.status != http.StatusSeeOther {
				t.Fatalf("the vote: %d %s", got.status, got.body)
			}
			if cast := d.Votes(q.RunID); len(cast) != 1 || cast[0].By != p.who.Name || len(cast[0].Groups) != 1 {
				t.Errorf("the votes are %+v", cast)
			}
		})
	}
}

// TestProviderSessionEnds: the configuration that a service starts with counts for sessions from before.
func TestProviderSessionEnds(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*api.Options, *provider)
		status int
		votes  bool
	}{
		{"unchanged", func(*api.Options, *provider) {}, http.StatusOK, true},
		{"provider-removed", func(o *api.Options, _ *provider) { o.Providers = nil }, http.StatusUnauthorized, false},
		{"all-roles-removed", func(_ *api.Options, p *provider) { p.who.Roles = nil }, http.StatusUnauthorized, false},
		{"another-role", func(_ *api.Options, p *provider) { p.who.Roles = []string{ledger.RoleAuditor} }, http.StatusOK, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, p, b := newProvided(t, there, person("carol", ledger.RoleApprover))
			q := d.HoldBy(alice, ownersDecide())
			b.begins(t, "&next=")
			b.arrives(t, b.comesBack("?code=good"))
			tc.change(&d.handler.Options, p)
			b.page("calls/"+q.RunID).want(t, tc.status)
			if got := b.vote(q, "approve", ""); (got.status == http.StatusSeeOther) != tc.votes {
				t.Errorf("the vote: %d %s", got.status, got.body)
			}
		})
	}
}

func TestProviderSignInRefused(t *testing.T) {
	for _, tc := range []struct {
		name   string
		who    ledger.Caller
		change func(p *provider, b *browser)
		query  string
		status int
	}{
		{"code-is-not-good", person("carol", ledger.RoleApprover), nil, "?code=bad", http.StatusUnauthorized},
		{"no-attempt", person("carol", ledger.RoleApprover), func(_ *provider, b *browser) { b.cookie = "" }, "?code=good", http.StatusBadRequest},
		{"attempt-of-another-browser", person("carol", ledger.RoleApprover), func(_ *provider, b *browser) {
			b.cookie = strings.Replace(b.cookie, "=", "=x", 1)
		}, "?code=good", http.StatusUnauthorized},
		{"two-attempts", person("carol", ledger.RoleApprover), func(_ *provider, b *browser) { b.cookie += "; " + b.cookie }, "?code=good", http.StatusBadRequest},
		{"redirect-elsewhere-in-the-cookie", person("carol", ledger.RoleApprover), func(_ *provider, b *browser) { b.cookie += "//evil.example" }, "?code=good", http.StatusBadRequest},
		{"no-role", person("carol"), nil, "?code=good", http.StatusForbidden},
		{"agent", ledger.Caller{Name: issuer + "#bot", Roles: []string{ledger.RoleAgent}, Expires: "2099-01-01T00:00:00.000Z", Identity: &policy.Identity{Credential: &policy.Credential{Key: "k1"}, Kind: policy.ActorAgent}}, nil,
			"?code=good", http.StatusForbidden},
		{"expired", ledger.Caller{Name: issuer + "#carol", Roles: []string{ledger.RoleApprover}, Expires: "2020-01-01T00:00:00.000Z", Identity: &policy.Identity{}}, nil,
			"?code=good", http.StatusUnauthorized},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, p, b := newProvided(t, there, tc.who)
			b.begins(t, "&next=")
			if tc.change != nil {
				tc.change(p, b)
			}
			got := b.comesBack(tc.query)
			got.want(t, tc.status, "Sign in")
			for _, set := range got.header["Set-Cookie"] {
				if !strings.Contains(set, "Max-Age=0") {
					t.Errorf("a session begins: %s", set)
				}
			}
		})
	}
}

// TestFailedSignInsAreLimited: anybody who reaches the console can cause any number of them.
func TestFailedSignInsAreLimited(t *testing.T) {
	d, p, b := newProvided(t, there, person("carol", ledger.RoleApprover))
	for range 200 {
		b.begins(t, "&next=")
		b.comesBack("?code=bad")
	}
	if p.responses == 0 || p.responses > 150 {
		t.Errorf("200 failed sign-ins cause %d requests to the provider", p.responses)
	}
	if n := strings.Count(d.notes.String(), "nobody was signed in"); n == 0 || n > 100 {
		t.Errorf("200 failed sign-ins are %d lines of the log", n)
	}
}

func TestProviderSignInBegins(t *testing.T) {
	for _, tc := range []struct {
		name, path string
		status     int
	}{
		{"unknown-provider", "/console/provider?issuer=https%3A%2F%2Fevil.example&next=", http.StatusNotFound},
		{"open-redirect", signInPage + "&next=%2F%2Fevil.example", http.StatusNotFound},
		{"negative-age", signInPage + "&next=&max_age=-1", http.StatusNotFound},
		{"huge-age", signInPage + "&next=&max_age=99999999999999999999", http.StatusNotFound},
		{"any-page", signInPage + "&next=runs", http.StatusSeeOther},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, b := newProvided(t, there, person("carol"))
			b.get(tc.path).want(t, tc.status)
		})
	}
	t.Run("provider-down", func(t *testing.T) {
		_, p, b := newProvided(t, there, person("carol"))
		p.down = true
		b.get(signInPage+"&next=").want(t, http.StatusServiceUnavailable, "cannot be reached now")
	})
}

// TestProviderFresh: a policy with fresh counts from the time at which the provider asked for the person's credentials.
func TestProviderFresh(t *testing.T) {
	fresh := ownersDecide()
	fresh.Policy.Policies[0].Fresh = (5 * time.Minute).Milliseconds()
	for _, tc := range []struct {
		name string
		ago  time.Duration // negative: the provider does not say
		may  bool
	}{
		{"just-now", time.Minute, true},
		{"an-hour-ago", time.Hour, false},
		{"unknown", -1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, p, b := newProvided(t, there, person("carol", ledger.RoleApprover))
			if tc.ago >= 0 {
				p.at = d.Clock.Now().Add(-tc.ago)
			}
			q := d.HoldBy(alice, fresh)
			b.begins(t, "&next=")
			b.arrives(t, b.comesBack("?code=good"))
			page := b.page("calls/" + q.RunID)
			if strings.Contains(page.body, `value="approve"`) != tc.may {
				t.Errorf("the form to vote is wrong: %s", page.body)
			}
			if again := `href="` + signInPage + `&amp;next=calls%2F` + q.RunID + `&amp;max_age=300"`; strings.Contains(page.body, again) == tc.may {
				t.Errorf("the link to sign in again is wrong: %s", page.body)
			}
			if got := b.vote(q, "approve", ""); (got.status == http.StatusSeeOther) != tc.may {
				t.Errorf("the vote: %d", got.status)
			}
			if tc.may {
				return
			}
			page.want(t, http.StatusOK, "votes count only in the console, within 5m0s after signing in", "You signed in too long ago for this policy")
			p.at = d.Clock.Now()
			b.begins(t, "&next=calls%2F"+q.RunID+"&max_age=300")
			if p.attempt.MaxAge != 5*time.Minute {
				t.Errorf("the provider is asked for %s", p.attempt.MaxAge)
			}
			b.arrives(t, b.comesBack("?code=good"))
			b.base, _, _ = strings.Cut(b.base, "calls/")
			if got := b.vote(q, "approve", ""); got.status != http.StatusSeeOther {
				t.Errorf("the vote after signing in again: %d %s", got.status, got.body)
			}
		})
	}
}

// TestDisplayNames: the display names of requester and voter stand beside their subjects, and text in them is text.
func TestDisplayNames(t *testing.T) {
	carol := person("c-1", ledger.RoleApprover)
	carol.Identity.Display = "carol@example.com"
	d, _, b := newProvided(t, there, carol)
	robot := policy.SubjectName(issuer, "r-1")
	ask := func(display string) ledger.RunRow {
		return d.HoldRequest(states.Request{
			Actor: robot, At: d.Clock.Now().Format(policy.TimeForm), Kind: states.KindAsk, Text: canonical.Text(statestest.Question),
			Identity: &policy.Identity{Credential: &policy.Credential{Key: "k1"}, Client: "agent", Display: display, Kind: policy.ActorAgent, OnBehalfOf: policy.SubjectName(issuer, "d-1"), OnBehalfOfDisplay: "dora@example.com"},
		}, ownersDecide())
	}
	first, second := ask("ci@example.com"), ask("<b>\u202eci")
	b.begins(t, "&next=")
	b.arrives(t, b.comesBack("?code=good"))
	if got := b.vote(first, "approve", ""); got.status != http.StatusSeeOther {
		t.Fatalf("the vote: %d %s", got.status, got.body)
	}
	const requester, voter, forWhom = "ci@example.com (" + issuer + "#r-1)", "carol@example.com (" + issuer + "#c-1)", "dora@example.com (" + issuer + "#d-1)"
	b.page("").want(t, http.StatusOK, `&lt;b&gt;<mark class="odd">\u202e</mark>ci (`+issuer+"#r-1)", forWhom, voter)
	b.page("calls/"+first.RunID).want(t, http.StatusOK, requester, forWhom, "<b>"+voter+"</b> approved")
	b.page("runs/"+first.RunID).want(t, http.StatusOK, requester, forWhom, "<b>"+voter+"</b> approved")
	b.page("runs?actor=ci@example.com").want(t, http.StatusOK, first.RunID, requester)
	if page := b.page("runs?actor=ci@example.com"); strings.Contains(page.body, second.RunID) {
		t.Errorf("the runs of one display name have those of another: %s", page.body)
	}
}
