package api_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgfsm/internal/present"
	"pgfsm/traces/ledger"
)

// runLink is a link to the page of a run.
var runLink = regexp.MustCompile(`href="[^"]*(?:runs|calls)/([0-9a-f-]{36})"`)

// TestRunLists: the API and the console list the same runs by the same filters: the API the oldest first, the console the
// newest.
func TestRunLists(t *testing.T) {
	d := newFixture(t)
	token, b := d.token(ledger.RoleAuditor, "auditor"), d.signedIn(here, alice, ledger.RoleApprover)
	var held []string
	for range 52 {
		held = append(held, d.Hold(1).RunID)
	}
	denied := d.Hold(1)
	d.deny(denied, d.token(ledger.RoleApprover, alice)).wantCode(t, 200, "")

	read := func(path string) (ids []string, next string) {
		t.Helper()
		var l struct {
			Requests []present.Run
			Next     string
		}
		got := d.call(http.MethodGet, path, token, "")
		got.wantCode(t, 200, "")
		got.into(t, &l)
		for _, r := range l.Requests {
			ids = append(ids, r.Run)
		}
		return ids, l.Next
	}
	shown := func(path string) (ids []string, body string) {
		t.Helper()
		got := b.page(path)
		got.want(t, http.StatusOK)
		for _, link := range runLink.FindAllStringSubmatch(got.body, -1) {
			ids = append(ids, link[1])
		}
		return ids, got.body
	}

	var all []string
	for path := "/pending?limit=20"; path != ""; {
		ids, next := read(path)
		all = append(all, ids...)
		if path = ""; next != "" {
			path = "/pending?limit=20&after=" + next
		}
	}
	if !slices.Equal(all, held) {
		t.Errorf("the pages of the API hold %q, want %q", all, held)
	}
	if ids, next := read("/requests?limit=53"); len(ids) != 53 || next != "" {
		t.Errorf("a page that is just full has %d runs, next %q", len(ids), next)
	}
	slices.Reverse(held)
	for _, page := range []string{"?", "runs?status=pending"} {
		first, body := shown(page)
		older, _ := shown(page + "&before=" + held[49])
		if !slices.Equal(first, held[:50]) || !slices.Equal(older, held[50:]) || !strings.Contains(body, "before="+held[49]) {
			t.Errorf("%q lists %q, and then %q", page, first, older)
		}
	}

	chosen := "status=denied&since=24h&until=2999-01-01T00:00:00Z&code=approval_denied&actor=" + denied.Actor +
		"&server=" + denied.Server + "&tool=" + denied.Tool + "&policy=" + denied.Policy
	for query, found := range map[string]bool{ // in any order
		"status=denied": true, "status=expired": false, "actor=" + carol: true, "actor=x": false, "task=x": false, "tool=" + denied.Tool: true,
		"tool=x": false, "server=x": false, "policy=looked-at": true, "policy=x": false, "code=approval_denied": true, "code=x": false,
		"since=1h": true, "until=2020-01-01": false, "since=2001-01-01&until=2001-01-01T00:00:01Z": false, chosen: true,
	} {
		ids, _ := read("/requests?limit=200&" + query)
		listed, _ := shown("runs?" + query)
		if slices.Contains(ids, denied.RunID) != found || slices.Contains(listed, denied.RunID) != found {
			t.Errorf("%s: the API lists %q, the page %q", query, ids, listed)
		}
	}
	if ids, _ := read("/requests?status=denied,expired"); !slices.Equal(ids, []string{denied.RunID}) {
		t.Errorf("denied are %q", ids)
	}
	for query, found := range map[string]bool{"text=policy-002": true, "text=policy-003": false} { // in any order
		if ids, _ := shown("runs?" + query); slices.Contains(ids, denied.RunID) != found {
			t.Errorf("%s: the page lists %q", query, ids)
		}
	}
	b.page("runs?status=x").want(t, http.StatusBadRequest, "give some of")
	b.page("runs?tool=a+b&status=denied").want(t, http.StatusOK, "pgfsm ledger list --status denied --tool &#39;a b&#39;")
}
