package api_test

import (
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgfsm/internal/present"
	"pgfsm/traces/ledger"
)

// TestEntries: auditors read the log, newest first, by its filters.
func TestEntries(t *testing.T) {
	d := newFixture(t)
	auditor := d.token(ledger.RoleAuditor, "auditor")
	read := func(query string) (l present.Log) {
		t.Helper()
		got := d.call(http.MethodGet, "/entries"+query, auditor, "")
		got.wantCode(t, 200, "")
		got.into(t, &l)
		for _, e := range l.Entries {
			if !e.Intact || e.Hash == "" || e.Text == "" {
				t.Errorf("an entry is not as it was recorded: %+v", e)
			}
		}
		return l
	}
	q := d.Hold(1)
	d.Clock.Add(50 * time.Minute)
	d.deny(q, d.token(ledger.RoleApprover, alice)).wantCode(t, 200, "")
	all := read("")
	for i, e := range all.Entries {
		if e.Entry != int64(len(all.Entries)-1-i) {
			t.Errorf("the entry %d is at place %d", e.Entry, i)
		}
	}
	if all.Next != 0 || all.From != 0 || all.To != int64(len(all.Entries)) || all.Pruned != 0 {
		t.Errorf("%+v", all)
	}
	for query, want := range map[string]int{ // in any order
		"?type=token.created": 2, "?type=decision.made": 1, "?type=approval.requested": 1, "?type=approval.denied&by=" + alice: 1, "?by=" + carol: 1,
		"?by=nobody": 0, "?run=" + q.RunID: 2, "?run=" + q.RunID + "&type=approval.denied": 1, "?run=none": 0, "?since=30m": 2, "?until=30m": len(all.Entries) - 2,
		"?before=1": 1, "?limit=2": 2, "?type=ledger.pruned": 0,
	} {
		if got := read(query); len(got.Entries) != want {
			t.Errorf("%s: %d entries, want %d: %+v", query, len(got.Entries), want, got)
		}
	}
	for _, filter := range []string{"?", "?type=token.created", "?type=log.created", "?by=local:root", "?run=" + q.RunID, "?since=30m"} {
		var want, seen []int64
		for _, e := range read(filter).Entries {
			want = append(want, e.Entry)
		}
		for before := int64(0); ; {
			query := filter + "&limit=1"
			if before > 0 {
				query += "&before=" + strconv.FormatInt(before, 10)
			}
			l := read(query)
			for _, e := range l.Entries {
				seen = append(seen, e.Entry)
			}
			if len(l.Entries) > 1 || l.Next >= before && before > 0 {
				t.Fatalf("%s: %+v", query, l)
			}
			if before = l.Next; before == 0 {
				break
			}
		}
		if len(want) == 0 || !slices.Equal(seen, want) {
			t.Errorf("%s: the pages have %v, want %v", filter, seen, want)
		}
	}
}
