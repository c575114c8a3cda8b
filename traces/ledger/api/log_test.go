package api_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/internal/test/check"
	"pgfsm/internal/visible"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/ledgertest"
)

// rows are the entries that a page lists.
func rows(body string) (all []string) {
	_, rest, _ := strings.Cut(body, `id="entries"`)
	rest, _, _ = strings.Cut(rest, "<h2>Checkpoints")
	for _, row := range strings.Split(rest, `<td class="right num">`)[1:] {
		link, _, _ := strings.Cut(row, "</a>")
		_, index, _ := strings.Cut(link, ">")
		all = append(all, index)
	}
	return all
}

// TestLog: the API and the console list the same entries, newest first, by the same filters.
func TestLog(t *testing.T) {
	d := newFixture(t)
	q := d.Hold(1)
	for range 60 {
		d.Token("robot", ledger.RoleAgent)
	}
	auditor, b := d.token(ledger.RoleAuditor, "auditor"), d.signedIn(here, "erin", ledger.RoleAuditor)
	d.Clock.Add(50 * time.Minute)
	d.deny(q, d.token(ledger.RoleApprover, alice)).wantCode(t, 200, "")

	read := func(query string) (indexes []string, l present.Log) {
		t.Helper()
		got := d.call(http.MethodGet, "/entries?"+query, auditor, "")
		got.wantCode(t, 200, "")
		got.into(t, &l)
		for _, e := range l.Entries {
			if !e.Intact || e.Hash == "" || e.Text == "" || e.Body == "" {
				t.Errorf("an entry is not as it was recorded: %+v", e)
			}
			indexes = append(indexes, strconv.FormatInt(e.Entry, 10))
		}
		return indexes, l
	}
	for query, want := range map[string]int{ // in any order
		"": 50, "type=decision.made": 1, "type=approval.requested": 1, "type=approval.denied&by=" + alice: 1, "by=" + carol: 1, "by=nobody": 0,
		"run=" + q.RunID: 2, "run=" + q.RunID + "&type=approval.denied": 1, "run=none": 0, "since=30m": 2, "since=30m&type=token.created": 1,
		"until=30m": 50, "before=1": 1, "before=14": 14, "type=ledger.pruned": 0,
	} {
		page := b.page("log?" + query)
		if got, _ := read(query); len(got) != want || !slices.Equal(got, rows(page.body)) {
			t.Errorf("%q: the API lists %v, the page %v, want %d entries", query, got, rows(page.body), want)
		}
	}
	for _, filter := range []string{"limit=1", "limit=1&type=log.created", "limit=1&by=local:root", "limit=1&run=" + q.RunID, "limit=1&since=30m"} {
		want, _ := read(strings.Replace(filter, "limit=1", "limit=200", 1))
		var seen []string
		for query := filter; query != ""; {
			got, l := read(query)
			seen = append(seen, got...)
			if query = ""; l.Next > 0 {
				query = filter + "&before=" + strconv.FormatInt(l.Next, 10)
			}
		}
		if len(want) == 0 || !slices.Equal(seen, want) {
			t.Errorf("%s: the pages have %v, want %v", filter, seen, want)
		}
	}

	b.page("log").want(t, http.StatusOK, "pgfsm ledger tail -n 50", "This service writes no checkpoints", "pgfsm ledger verify --checkpoint",
		"?before=17", `data-events="`)
	older := b.page("log?before=14")
	older.want(t, http.StatusOK, "runs/"+q.RunID, "approval.requested", `href="?"><svg`)
	if strings.Contains(older.body, "> Newest</a> <a") {
		t.Error("the last page has a link to older entries")
	}
	b.page("log?type=token.created").want(t, http.StatusOK, `href="?before=16&amp;type=token.created">Older <svg`)
	b.page("log?type=token.created&before=14").want(t, http.StatusOK, `href="?type=token.created"><svg`)
	b.page("log?type=token.created&by=a+b&since=24h").want(t, http.StatusOK,
		"pgfsm ledger tail -n 50 --type token.created --by &#39;a b&#39; --since 24h", "None of them matches")
	for _, query := range []string{"type=%3Cscript%3E", "since=x", "until=x", "before=0", "before=x"} {
		got := b.page("log?" + query)
		got.want(t, http.StatusBadRequest, `role="alert"`)
		if len(rows(got.body)) > 0 {
			t.Errorf("%s: the page lists entries", query)
		}
	}
}

// TestWhoSeesEntries: entries have results, which only auditors see.
func TestWhoSeesEntries(t *testing.T) {
	d := newFixture(t)
	d.Ask(carol, statestest.Content())
	b := d.signedIn(here, bob, ledger.RoleAuditor)
	for _, role := range []string{ledger.RoleApprover, ledger.RoleAdmin} {
		other := d.signedIn(here, "one of "+role, role)
		got := other.page("log?type=run.ended")
		got.want(t, http.StatusOK, "Only auditors see the entries of the log", "Checkpoints")
		if strings.Contains(got.body, "run.ended") || strings.Contains(got.body, carol) || len(rows(got.body)) > 0 {
			t.Errorf("%s sees entries: %s", role, got.body)
		}
		other.page("log/2").want(t, http.StatusForbidden, "This needs a token of the role auditor")
	}
	b.page("log/3").want(t, http.StatusOK, "run.ended", "which the header below has", "&#34;type&#34;:&#34;run.ended&#34;")
	b.page("log/0").want(t, http.StatusOK, "log.created")
	b.page("log/99").want(t, http.StatusNotFound, "no such entry")
	for _, id := range []string{"01", "-1", "1x", "99999999999999999999"} {
		b.page("log/"+id).want(t, http.StatusNotFound, "no such page")
	}
}

// TestLogOfChangedEntries: the page says that an entry is not as it was recorded, or was pruned.
func TestLogOfChangedEntries(t *testing.T) {
	d := newFixture(t)
	d.Ask(carol, statestest.Content())
	b := d.signedIn(here, bob, ledger.RoleAuditor)
	if got := b.page("log"); strings.Contains(got.body, "changed</span>") {
		t.Errorf("an entry is said to be changed: %s", got.body)
	}
	err := d.Update(t.Context(), func(tx ledger.Tx) error {
		end, err := tx.End()
		if err != nil {
			return err
		}
		forged := ledger.Entry{Index: end.Size, At: end.At, Type: ledger.TokenCreated, Body: []byte(`not JSON`)}
		before, err := tx.ReadHashes([]int64{0})
		if err != nil {
			return err
		}
		return tx.AddEntry(forged, before)
	})
	check.NoError(t, err)
	got := b.page("log")
	got.want(t, http.StatusOK, "changed</span>", "the events cannot be read")
	index := rows(got.body)[0]
	b.page("log/"+index).want(t, http.StatusOK, "Somebody may have changed it")

	forgedHeader := canonical.MustSorted(checkpoint.Header{Types: []string{hostile}})
	check.NoError(t, d.Update(t.Context(), func(tx ledger.Tx) error {
		var pruned []ledger.PrunedEntry
		for e, err := range tx.Entries(2) {
			if err != nil {
				return err
			}
			pruned = append(pruned, ledger.PrunedEntry{Index: e.Index, Header: e.Leaf()})
		}
		pruned[1].Header = forgedHeader
		return tx.Prune(pruned[:2], nil, nil)
	}))

	b.page("log").want(t, http.StatusOK, "2 of them were pruned, and only their headers are left")
	pruned := b.page("log/2")
	pruned.want(t, http.StatusOK, "The body of this entry was pruned", "<dd>request.created<br>risk.scored<br>",
		"which the header below has", "&#34;class&#34;:&#34;run&#34;", "pgfsm ledger export --since")
	if strings.Contains(pruned.body, carol) || strings.Contains(pruned.body, "Body as recorded") {
		t.Errorf("the page of a pruned entry shows its body: %s", pruned.body)
	}

	changed := b.page("log/3")
	changed.want(t, http.StatusOK, "Somebody may have changed it", "The body of this entry was pruned", "&lt;script&gt;hacked()")
	if visible.Lines(changed.body) != changed.body || strings.Contains(changed.body, "which the header below has") {
		t.Errorf("the page of a changed header shows it as recorded, or unescaped: %s", changed.body)
	}
}

// signs writes a checkpoint of the ledger into a folder, as a gateway does.
func (d *fixture) signs(dir string, signer note.Signer) {
	d.TB.Helper()
	name := fmt.Sprint("checkpoint-", ledgertest.State(d.TB, d.Store).Size)
	check.NoError(d.TB, os.WriteFile(filepath.Join(dir, name), ledgertest.SignState(d.TB, d.Store, signer), 0o600))
}

// TestLogCheckpoints: the page compares checkpoints with the log, and says who signed them.
func TestLogCheckpoints(t *testing.T) {
	d := newFixture(t)
	d.handler.Checkpoints = t.TempDir()
	b := d.signedIn(here, alice, ledger.RoleAuditor)
	b.page("log").want(t, http.StatusOK, "There is no checkpoint yet")
	signer, public := ledgertest.NewSigner(t, d.Store)
	d.signs(d.handler.Checkpoints, signer)
	b.page("log").want(t, http.StatusOK, "no key of the log has signed it")
	check.NoError(t, d.AddKey(t.Context(), ledger.LocalUser("local:root"), public))
	d.signs(d.handler.Checkpoints, signer)
	key := fmt.Sprintf("%s+%08x", signer.Name(), signer.KeyHash())
	got := d.signedIn(there, bob, ledger.RoleApprover).page("log")
	got.want(t, http.StatusOK, "the log has these entries", key)
	b.page("log/0").want(t, http.StatusOK, "a signed checkpoint of ")
	forged, err := checkpoint.Sign(checkpoint.Checkpoint{Origin: signer.Name(), Size: 2}, signer)
	check.NoError(t, err)
	check.NoError(t, os.WriteFile(filepath.Join(d.handler.Checkpoints, "checkpoint-2"), forged, 0o600))
	b.page("log").want(t, http.StatusOK, "its first 2 entries are not those of the checkpoint", "the log has these entries")
}
