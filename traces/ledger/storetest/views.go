package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
)

// null is how [Harness.Query] shows NULL.
const null = "NULL"

// Views checks what people see who query a store in SQL: it is the same in every store.
func Views(t *testing.T, h Harness) {
	s, path := h.fresh(t)
	full, least := filled[ledger.RunRow](t), row(2, ledger.RunRow{Args: ledger.ArgsInEntry})
	first, gone, passed := entry(1, full.RunID), entry(3, id(3)), entry(4, "")
	first.At = "2026-01-01T23:59:59.999Z"
	const call = `{"call":{"args":{"b":[1.50,"\u0000"],"a":"\"ž\\"}},"type":"request.created"}`
	const decided = `{"code":"c","gate":"access","outcome":"deny","policy":"p","reason":"nul: \u0000 ž","type":"decision.made"}`
	first.Body = jsontext.Value(`{"by":"ann#\u0000","events":[` + call + `,` + decided + `],"run":"` + full.RunID + `","salt":""}`)
	second := following(first, 2)
	second.Body = jsontext.Value(`{"by":"ben","events":[` + call + `],"run":"` + id(2) + `","salt":""}`)
	passed.Body = jsontext.Value(`{"by":"cat","events":[{"type":"mcp.passed"}],"salt":""}`)
	update(t, s, func(tx ledger.Tx) error {
		return errors.Join(add(tx, first, second, removed(gone), passed), addRuns(tx, full, least))
	})

	shownCall := strings.ReplaceAll(call, `\u0000`, `\ufffd`)
	least.Args = `{"b":[1.50,"\ufffd"],"a":"\"ž\\"}`
	table := h.Query(t, path, "SELECT * FROM requests ORDER BY first")
	for i, want := range []ledger.RunRow{least, full} {
		wantEqual(t, "requests", shownRun(t, table[0], want), table[i+1])
	}
	wantEqual(t, "columns of requests", reflect.TypeFor[ledger.RunRow]().NumField(), len(table[0]))
	wantEqual(t, "events", [][]string{
		{"idx", "run_id", "at", "by", "type", "event"},
		{"1", full.RunID, first.At, "ann#\ufffd", "request.created", shownCall},
		{"1", full.RunID, first.At, "ann#\ufffd", "decision.made", strings.ReplaceAll(decided, `\u0000`, `\ufffd`)},
		{"2", id(2), early, "ben", "request.created", shownCall},
		{"4", null, early, "cat", "mcp.passed", `{"type":"mcp.passed"}`},
	}, h.Query(t, path, "SELECT * FROM events"))
	wantEqual(t, "decisions", [][]string{
		{"idx", "run_id", "at", "outcome", "gate", "policy", "code", "reason"},
		{"1", full.RunID, first.At, "deny", "access", "p", "c", "nul: \ufffd ž"},
	}, h.Query(t, path, "SELECT * FROM decisions"))

	want := [][]string{{"at"}}
	update(t, s, func(tx ledger.Tx) error {
		for i := range 1000 {
			e := passed
			e.Index, e.At = int64(5+i), fmt.Sprintf("2026-07-01T12:34:56.%03dZ", i)
			want = append(want, []string{e.At})
			if err := add(tx, e); err != nil {
				return err
			}
		}
		return nil
	})
	wantEqual(t, "times", want, h.Query(t, path, "SELECT at FROM events WHERE idx > 4 ORDER BY idx"))
}

// shownRun returns how the view shows the row of a run: each column is named as a field of the row.
func shownRun(t *testing.T, columns []string, r ledger.RunRow) (shown []string) {
	t.Helper()
	mayBeMissing := []string{"expires", "owner", "sent", "ended", "delivered"}
	for _, column := range columns {
		name := strings.ReplaceAll(column, "_", "")
		f := reflect.ValueOf(r).FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) })
		if !f.IsValid() {
			t.Fatalf("no row has the column %s", column)
		}
		text := fmt.Sprint(f)
		if f.Kind() == reflect.Slice {
			list, err := json.Marshal(r.Approvers)
			check.NoError(t, err)
			text = string(list)
		}
		if text == "" && (f.Type() == reflect.TypeFor[canonical.Digest]() || slices.Contains(mayBeMissing, column)) {
			text = null
		}
		shown = append(shown, text)
	}
	return shown
}
