package e2e

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
)

// TestServeIdentityConsole: a person signs in at the console with nothing but an account of the provider, and votes there.
func TestServeIdentityConsole(t *testing.T) {
	t.Parallel()
	o := provide(t, inFile, strings.Replace(peopleHold, "approvers: [owners]", "approvers: [owners], fresh: 5m", 1))
	run := o.held(t, o.agent("/mcp", o.robot("ci")), `{"n":1}`)
	jar, err := cookiejar.New(nil)
	check.NoError(t, err)
	browser := &http.Client{Jar: jar}
	begins := o.admin + "/console/provider?" + url.Values{"issuer": {o.p.Issuer}, "next": {"calls/" + run}}.Encode()
	read := func(resp *http.Response, err error) (at, page string) {
		t.Helper()
		check.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		check.NoError(t, err)
		return resp.Request.URL.String(), string(body)
	}
	if _, page := read(browser.Get(begins)); !strings.Contains(page, "did not sign you in") {
		t.Errorf("nobody is signed in at the provider: %s", page)
	}
	o.p.Users["carol"] = map[string]any{"groups": []string{"owners"}}
	o.p.SignIn("mallory") // who has no role
	if _, page := read(browser.Get(begins)); !strings.Contains(page, "You signed in as "+o.p.Issuer+"#mallory, who has no role here.") {
		t.Errorf("a person without a role: %s", page)
	}
	o.p.SignIn("carol")
	at, page := read(browser.Get(begins))
	if !strings.Contains(page, o.p.Issuer+"#carol") || !strings.Contains(page, `value="approve"`) {
		t.Fatalf("%s has no form to vote: %s", at, page)
	}
	read(browser.PostForm(at, url.Values{"vote": {"approve"}, "digest": {o.bindingOf(t, run, o.person("dora"))}, "reason": {""}}))
	o.ended(t, run, ledger.Executed, "")
	verifies(t, o.dir)
	o.staysOut(t, "s3cret-of-the-console", "eyJhbGciOi") // so every token begins
}
