package runner_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/config"
	"pgfsm/internal/present"
	"pgfsm/internal/runner"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/prove"
	"pgfsm/policy/rules"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// servers returns what a service says of its servers to the owner of a token.
func servers(t *testing.T, admin, token string) (s present.Servers) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, admin+"/servers", nil)
	check.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	check.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %v: %s", resp.StatusCode, err, text)
	}
	return s
}

// TestServiceWithoutServers: a service that makes no calls has no servers, and says so.
func TestServiceWithoutServers(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	l := s.open()
	admin := serveAdmin(t, newRunner(t, runner.Options{Ledger: l}), runner.ServiceOptions{Store: s.memory.Open()})
	if got := servers(t, admin, newToken(t, l, "ann@example.com", ledger.RoleAuditor)); len(got.Servers) != 0 || got.Note == "" {
		t.Errorf("the servers are %+v", got)
	}
}

// TestTryingOnTheConsole: the console's forms ask the servers of the service, make no call and record nothing.
func TestTryingOnTheConsole(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	o := s.options
	l := s.open()
	o.Claims = []config.PolicyClaim{{Claim: prove.Claim{ID: "alive", Kind: prove.Reachable, Effect: rules.Allow}}}
	o.Ledger = l
	admin := serveAdmin(t, newRunner(t, o), runner.ServiceOptions{Store: s.memory.Open()})
	text := newToken(t, l, "ann@example.com", ledger.RoleAuditor)
	jar, err := cookiejar.New(nil)
	check.NoError(t, err)
	browser := &http.Client{Jar: jar}
	post := func(url string, fields url.Values) (at, body string) {
		t.Helper()
		resp, err := browser.PostForm(url, fields)
		check.NoError(t, err)
		defer resp.Body.Close()
		page, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %v %s", url, resp.StatusCode, err, page)
		}
		return resp.Request.URL.String(), string(page)
	}
	base, _ := post(admin+"/console/sign-in", url.Values{"token": {text}, "next": {""}})
	end := events(t, l)
	if _, page := post(base+"servers", nil); !strings.Contains(page, `<h2>mcp-policy-kb</h2> <span class="chip good">`) {
		t.Errorf("the servers were asked, and are not up: %s", page)
	}
	draft := url.Values{"try": {"compare"}, "since": {""}, "draft": {"version: 1\npolicies: [{id: none, effect: deny}]\n"}}
	if _, page := post(base+"policy", draft); !strings.Contains(page, "Claims that the draft does not keep") {
		t.Errorf("a draft that denies everything keeps a claim that something is allowed: %s", page)
	}
	for live, want := range map[string]string{"": "Decision: unknown", "1": "Decision: allow"} { // in any order
		fields := url.Values{"try": {"explain"}, "server": {"mcp-policy-kb"}, "tool": {"fetch_policy_entry"}, "args": {`{"policy_id":"policy-002"}`}}
		if live != "" {
			fields.Set("live", live)
		}
		if _, page := post(base+"policy", fields); !strings.Contains(page, want) {
			t.Errorf("live %q: the page does not say %q: %s", live, want, page)
		}
	}
	if n := events(t, l); n != end || s.calls() != 0 {
		t.Errorf("%d events were recorded, and %d calls made", n-end, s.calls())
	}
}

// events is how many entries a ledger has.
func events(t *testing.T, l *ledger.Ledger) (n int64) {
	t.Helper()
	err := l.View(t.Context(), func(r ledger.Reader) error {
		end, err := r.End()
		n = end.Size
		return err
	})
	check.NoError(t, err)
	return n
}

// TestServerSince: a server is up or down since the first of the listings that say so without another in between.
func TestServerSince(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	clock := ledgertest.NewClock(t)
	l, err := ledger.Open(t.Context(), s.memory.Open(), ledger.Options{Clock: clock.Now})
	check.NoError(t, err)
	defer l.Close()
	o := s.options
	o.Ledger = l
	r := newRunner(t, o)
	for _, step := range []struct {
		status       string
		since, asked time.Duration
	}{{"up", 0, 0}, {"up", 0, time.Minute}, {"down", 2 * time.Minute, 2 * time.Minute}, {"down", 2 * time.Minute, 3 * time.Minute}} {
		if step.status == "down" {
			_ = s.fleet.Close()
		}
		begun := clock.Now()
		if _, err := r.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		at := func(d time.Duration) string { return begun.Add(d - step.asked).Format(policy.TimeForm) }
		for _, got := range r.Configured().Servers(&present.Pins{}) {
			if got.Status != step.status || got.Since != at(step.since) || got.Asked != at(step.asked) {
				t.Errorf("%s is %s since %s, asked %s; want %+v", got.Server, got.Status, got.Since, got.Asked, step)
			}
		}
		clock.Add(time.Minute)
	}
}
