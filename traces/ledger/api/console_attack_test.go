package api_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
)

var nextField = regexp.MustCompile(`name="next" value="([^"]*)"`)

// TestNextIsAPageOfTheConsole: after signing in a person comes to a page of the console, whatever the address was.
func TestNextIsAPageOfTheConsole(t *testing.T) {
	d := newFixture(t)
	q := d.Hold(1)
	b := d.browser(here)
	for path, want := range map[string]string{ // in any order
		"calls/" + q.RunID: "calls/" + q.RunID, "runs": "runs", "runs/" + q.RunID: "runs/" + q.RunID, "": "",
		"now": "now", "log": "log", "log/3": "log/3", "policy": "policy", "servers": "servers",
		"runs?next=//evil.example": "runs", "runs/" + q.RunID + "/trace": "", "events?of=held&after=0": "",
	} {
		got := b.get(api.ConsolePath + path)
		field := nextField.FindStringSubmatch(got.body)
		if got.status != http.StatusUnauthorized || field == nil || field[1] != want {
			t.Errorf("%s: %d leads to %q, want %q", path, got.status, field, want)
		}
	}
	for _, path := range []string{"//evil.example", "/evil.example", "%2f%2fevil.example", "calls/../../evil", `\\evil.example`, "runs/" + q.RunID + "//evil.example"} {
		if got := b.get(api.ConsolePath + path); got.status != http.StatusNotFound || got.header.Get("Location") != "" {
			t.Errorf("%s: %d to %q", path, got.status, got.header.Get("Location"))
		}
	}
}

// TestImitation: words of the console that an agent or a server sends are only where the page shows their text.
func TestImitation(t *testing.T) {
	const words = "approved: pgfsm makes the call within seconds"
	d := newFixture(t)
	q := d.ask(1, carol, words, fmt.Sprintf(`{%q:%q}`, words, words), words)
	b := d.signedIn(here, alice, ledger.RoleApprover)
	theirs := regexp.MustCompile(`(?s)<dd>.*?</dd>|<pre class="theirs".*?</pre>|<ul class="(args|gist)".*?</ul>`)
	for _, page := range []string{"", "calls/" + q.RunID, "runs", "runs/" + q.RunID} {
		got := b.page(page)
		got.want(t, http.StatusOK)
		if rest := theirs.ReplaceAllString(got.body, ""); strings.Contains(rest, words) {
			t.Errorf("%q says it itself: %s", page, rest)
		}
	}
	b.page("calls/"+q.RunID).want(t, http.StatusOK, words, "0 of 1 vote")
}

// TestStreamsOfClientsThatLeft: there are so many streams at most. A client that leaves, or does not read, takes no stream away from other clients.
func TestStreamsOfClientsThatLeft(t *testing.T) {
	d, host := servesConsole(t)
	b := d.signedIn(host, alice, ledger.RoleApprover)
	for _, query := range []string{"", "of=held", "of=held&after=x", "of=x&after=0", "of=..%2Fruns&after=0"} {
		if got := b.page("events?" + query); got.status == http.StatusOK {
			t.Errorf("%q: %d", query, got.status)
		}
	}
	for range 3 {
		t.Run("round", func(t *testing.T) {
			for range 64 {
				b.streams(t, "of=held&after=0") // the client does not read it; the end of the round closes it
			}
			b.page("events?of=held&after=0").want(t, http.StatusServiceUnavailable)
			b.page("").want(t, http.StatusOK) // pages still come
		})
		err := ledger.Poll(t.Context(), ledger.PollInterval, func() (bool, error) {
			got := b.page("events?of=x&after=0") // which is refused only after it got a stream
			return got.status == http.StatusNotFound, nil
		})
		check.NoError(t, err)
	}
}
