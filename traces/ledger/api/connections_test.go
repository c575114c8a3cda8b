package api_test

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
)

// connecting makes the service one at which people connect accounts at the server forge.
func (d *fixture) connecting() (changes *[]string) {
	changes = new([]string)
	d.change(func(o *api.Options) {
		o.Connectable = connectable(7)
		o.Connected = func(change string) { *changes = append(*changes, change) }
	})
	return changes
}

// connectable returns two servers, and a key that seals.
func connectable(key byte) func() *api.Connectable {
	return func() *api.Connectable {
		return &api.Connectable{Keys: ledger.SealKeys{bytes.Repeat([]byte{key}, ledger.SealKeyBytes)}, Servers: []api.ConnectableServer{
			{Name: "forge", Resource: "https://forge.example.com/mcp", Hint: "forge.example.com › <tokens>"},
			{Name: "tickets", Resource: "https://tickets.example.com/mcp", Hint: "tickets.example.com › Access tokens"},
		}}
	}
}

func connectForm(server, account, token string) url.Values {
	return url.Values{"do": {"connect"}, "server": {server}, "account": {account}, "token": {token}}
}

// A person without another role signs in, sees the own connections only, and connects and disconnects an account.
func TestPeopleConnectAccounts(t *testing.T) {
	d := newFixture(t)
	d.Hold(1)
	changes := d.connecting()
	const token = "pat-ann-4711"
	ann, ben := d.signedIn(here, "ann", ledger.RolePerson), d.signedIn(here, "ben", ledger.RolePerson)
	home := ann.page("")
	if home.status != http.StatusSeeOther || !strings.HasSuffix(home.header.Get("Location"), "/connections") {
		t.Errorf("the first page: %d %s", home.status, home.header.Get("Location"))
	}
	for _, page := range []string{"runs", "log", "now", "servers", "policy", "events"} {
		if got := ann.page(page); got.status != http.StatusForbidden {
			t.Errorf("%s: %d", page, got.status)
		}
	}
	ann.page("connections").want(t, http.StatusOK, "not connected", "forge.example.com › &lt;tokens&gt;")
	for _, tc := range []struct {
		name   string
		form   url.Values
		status int
		words  string
	}{
		{"token-with-a-space", connectForm("forge", "", "pat ann 4711"), http.StatusUnprocessableEntity, "spaces"},
		{"short-token", connectForm("forge", "", "pat"), http.StatusUnprocessableEntity, "3 bytes"},
		{"label-that-deceives", connectForm("forge", "ann\u202e", token), http.StatusUnprocessableEntity, "name of the account"},
		{"unknown-server", connectForm("wiki", "", token), http.StatusBadRequest, "form"},
		{"unknown-field", url.Values{"do": {"connect"}, "server": {"forge"}, "token": {token}, "person": {"ben"}}, http.StatusBadRequest, "form"},
		{"nothing-to-disconnect", url.Values{"do": {"disconnect"}, "server": {"forge"}}, http.StatusUnprocessableEntity, "no such connection"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ann.post(ann.base+"connections", tc.form)
			got.want(t, tc.status, tc.words)
			if strings.Contains(got.body, token) || strings.Contains(got.body, "pat ann 4711") {
				t.Error("the page repeats the token")
			}
		})
	}
	ann.post(ann.base+"connections", connectForm("forge", "ann", token), header("Sec-Fetch-Site", "cross-site")).wantStatus(t, http.StatusForbidden)
	ann.post(ann.base+"connections", connectForm("forge", "ann <gh>", " "+token+"\n")).wantStatus(t, http.StatusSeeOther)
	mine := ann.page("connections")
	mine.want(t, http.StatusOK, ">connected<", "ann &lt;gh&gt;")
	if strings.Contains(mine.body, token) {
		t.Error("the page shows the token")
	}
	theirs := ben.page("connections")
	theirs.want(t, http.StatusOK, "not connected")
	if strings.Contains(theirs.body, "&lt;gh&gt;") {
		t.Error("a person sees another's account")
	}
	ben.post(ben.base+"connections", url.Values{"do": {"disconnect"}, "server": {"forge"}}).wantStatus(t, http.StatusUnprocessableEntity)
	ann.page("connections").want(t, http.StatusOK, ">connected<")
	d.change(func(o *api.Options) { o.Connectable = connectable(8) })
	ann.page("connections").want(t, http.StatusOK, "or the row was changed: connect again")
	ann.post(ann.base+"connections", url.Values{"do": {"disconnect"}, "server": {"forge"}}).wantStatus(t, http.StatusSeeOther)
	ann.page("connections").want(t, http.StatusOK, "not connected")
	if len(*changes) != 2 {
		t.Errorf("changes: %q", *changes)
	}
	if strings.Contains(d.notes.String(), token) {
		t.Error("the log has the token")
	}
}

// A person cannot fill the ledger with connections.
func TestConnectingIsLimited(t *testing.T) {
	d := newFixture(t)
	d.connecting()
	ann := d.signedIn(here, "ann", ledger.RolePerson)
	for n := range 1000 {
		if got := ann.post(ann.base+"connections", connectForm("forge", "", "pat-ann-4711")); got.status != http.StatusSeeOther {
			got.want(t, http.StatusTooManyRequests, "Try again in a few seconds")
			if n < 10 {
				t.Errorf("%d connections were made", n)
			}
			return
		}
	}
	t.Error("a thousand connections were made")
}

// The page is not for tokens of other roles. A service without connections signs in nobody for it.
func TestConnectionsAreForPeople(t *testing.T) {
	d := newFixture(t)
	d.Hold(1)
	got := d.browser(here).post("/console/sign-in", url.Values{"token": {d.Token("ann", ledger.RolePerson)}, "next": {"connections"}})
	got.wantStatus(t, http.StatusForbidden)
	d.connecting()
	for _, role := range []string{ledger.RoleAgent, ledger.RoleHook} {
		d.browser(here).post("/console/sign-in", url.Values{"token": {d.Token("bot-"+role, role)}, "next": {""}}).wantStatus(t, http.StatusForbidden)
	}
	for _, role := range []string{ledger.RoleApprover, ledger.RoleAuditor, ledger.RoleAdmin} {
		b := d.signedIn(here, "mia-"+role, role)
		b.page("connections").want(t, http.StatusForbidden, "This needs a token of the role person")
		if home := b.page("runs"); strings.Contains(home.body, ">Connections<") {
			t.Error("the navigation leads to a page that the person may not open")
		}
	}
}

func (r reply) wantStatus(t testing.TB, status int) {
	t.Helper()
	if r.status != status {
		t.Errorf("%d, want %d: %s", r.status, status, r.body)
	}
}
