package console_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/internal/test/check"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
)

// pictures returns the pictures of a page, each of which must be well-formed and have a label.
func pictures(t *testing.T, body string) (all []string) {
	t.Helper()
	for _, rest := range strings.Split(body, "<svg")[1:] {
		text, _, _ := strings.Cut(rest, "</svg>")
		text = "<svg" + text + "</svg>"
		d := xml.NewDecoder(strings.NewReader(text))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("a picture is not well-formed: %v: %s", err, text)
			}
		}
		if !strings.Contains(text, `role="img" aria-label="`) || strings.Contains(text, "style") {
			t.Errorf("a picture has no label, or a style: %s", text)
		}
		all = append(all, text)
	}
	return all
}

// TestNow: the page says what happened in a period, with what to do about refusals.
func TestNow(t *testing.T) {
	d := newFixture(t)
	b := d.signedIn(here, alice, ledger.RoleApprover)
	b.page("now").want(t, http.StatusOK, "No run was requested in this period", "None of these runs was refused", "No gateway has started",
		"pgfsm ledger summary --since 24h", ">ready<")
	bundle := statestest.MustBundle(statestest.Content(), nil)
	check.NoError(t, d.Activate(t.Context(), bundle, ledger.Why{Cause: ledger.CauseStart}))
	d.Ask(carol, statestest.Content())
	d.Clock.Add(50 * time.Minute)
	q := d.Hold(1)
	d.Clock.Add(time.Minute)
	b.vote(q, "deny", "no").want(t, http.StatusSeeOther)
	d.Hold(1)
	d.Clock.Add(10 * time.Minute)
	got := d.signedIn(there, bob, ledger.RoleAuditor).page("now?since=1h")
	got.want(t, http.StatusOK, "2 requested since", "approval_denied</a></td><td>1</td><td>"+html.EscapeString(policy.Remedy(policy.CodeApprovalDenied)), "1, the oldest requested ",
		"<dt>Median wait</dt><dd>60 s", string(bundle.Digest()), d.Owner(), "log?type=bundle.activated", `since=1h" aria-current="true"`)
	drawn := pictures(t, got.body)
	if len(drawn) != 2 || strings.Count(drawn[0], "<rect") != 2 || strings.Count(drawn[1], "<rect") != 2 {
		t.Errorf("pictures: %v", drawn)
	}
	for _, want := range []string{`<td>executed</td>`, "executed</a>"} {
		if strings.Contains(got.body, want) {
			t.Errorf("a run from before the period is counted: %s", got.body)
		}
	}
	b.page("now").want(t, http.StatusOK, "3 requested since")
	b.page("now?since=%3Cscript%3Ehacked()%3C/script%3E%E2%80%AE").want(t, http.StatusBadRequest, "give a date", "&lt;script&gt;")
	if strings.Contains(b.page("now").body, "/log/") {
		t.Error("an approver gets links to entries, which only auditors see")
	}
}

// TestNowSaysHealth: in the words of /readyz.
func TestNowSaysHealth(t *testing.T) {
	d := newFixture(t)
	b := d.signedIn(here, alice, ledger.RoleAdmin)
	d.health.Warnings = []present.Row{{Name: "bundle_differs", Value: "another replica of this ledger has another bundle"}}
	b.page("now").want(t, http.StatusOK, ">ready<", "bundle_differs", "another replica of this ledger has another bundle")
	d.health.Reasons = []present.Row{{Name: "ledger_behind", Value: "the ledger's clock is behind"}}
	got := b.page("now")
	got.want(t, http.StatusOK, "The service is not ready", "ledger_behind", "the ledger&#39;s clock is behind")
	if strings.Contains(got.body, ">ready<") || strings.Contains(got.body, "is ready") {
		t.Errorf("the page says ready: %s", got.body)
	}
}

// TestNowIsPartial: the page says so if it did not count all runs.
func TestNowIsPartial(t *testing.T) {
	d := newFixture(t)
	at := d.Clock.Now().Format(time.RFC3339)
	err := d.Update(t.Context(), func(tx ledger.Tx) error {
		for i := range ledger.MaxRecent + 5 {
			q := ledger.Request{RunID: fmt.Sprintf("%08d", i), At: at, Status: ledger.Denied, Code: hostile, Ended: at}
			if i%2 == 0 {
				q.Code = fmt.Sprint("code_", i%40)
			}
			if i < ledger.MaxWaits+2 {
				q.RunID, q.Binding = fmt.Sprintf("1%07d", i), canonical.Sum("b", nil)
			}
			if err := tx.PutRequest(q); err != nil {
				return err
			}
		}
		return nil
	})
	check.NoError(t, err)
	d.Clock.Add(time.Minute)
	got := d.signedIn(here, alice, ledger.RoleAuditor).page("now")
	got.want(t, http.StatusOK, "Counted: the last 10000 of the period", "the period has more", "0 of the last 200 held calls", "11 more codes are less frequent",
		`<mark class="odd">\u202e</mark>`)
	if visible.Lines(got.body) != got.body || strings.Count(got.body, "<script") != 1 || strings.Contains(got.body, "<img") {
		t.Errorf("a code became markup: %s", got.body)
	}
}
