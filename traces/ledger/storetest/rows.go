package storetest

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strconv"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/traces/ledger"
)

const (
	early = "2026-01-01T00:00:00.000Z"
	later = "2026-01-02T00:00:00.000Z"
	late  = "2026-12-31T23:59:59.000Z"
)

// runPrefix begins the ids of runs. The last twelve digits are a number.
const runPrefix = "01a20937-927b-7666-a7a9-"

// id returns the id of the nth run.
func id(n int) string { return fmt.Sprintf(runPrefix+"%012x", n) }

// filled returns a row in which every field has a distinct value other than zero, so that no field can be forgotten or mixed up.
func filled[T any](t *testing.T) T {
	t.Helper()
	var v T
	row := reflect.ValueOf(&v).Elem()
	for i := range row.NumField() {
		name := row.Type().Field(i).Name
		switch f := row.Field(i); {
		case name == "State" && row.Type() == reflect.TypeFor[ledger.Delivery]():
			f.SetString("waiting") // one of three values
		case name == "Kind" && row.Type() == reflect.TypeFor[ledger.Session]():
			f.SetString(ledger.SessionLink) // one of two values
		case name == "State" && row.Type() == reflect.TypeFor[ledger.Connection]():
			f.SetString(ledger.ConnectionLost) // one of two values
		case f.Type() == reflect.TypeFor[[]byte]():
			f.SetBytes([]byte{0, 255, byte(i)})
		case name == "RunID" || name == "Owner":
			f.SetString(id(i))
		case name == "At" || name == "Updated" || name == "Expires" || name == "Sent" || name == "Ended" || name == "Delivered":
			f.SetString(fmt.Sprintf("2026-01-02T03:04:05.%03dZ", i))
		case f.Type() == reflect.TypeFor[canonical.Digest]():
			f.SetString(string(digest(name)))
		case f.Kind() == reflect.String:
			f.SetString("the " + name)
		case f.CanInt():
			f.SetInt(int64(100 + i))
		case f.Type() == reflect.TypeFor[jsontext.Value]():
			f.SetBytes([]byte(`["the ` + name + `"]`))
		case f.Type() == reflect.TypeFor[[]string]():
			f.Set(reflect.ValueOf([]string{"first " + name, `second "` + name + `"`}))
		default:
			t.Fatalf("%s.%s: cannot fill a %s", row.Type(), name, f.Type())
		}
	}
	return v
}

// digest is a digest for rows whose digests nobody checks.
func digest(text string) canonical.Digest { return canonical.Sum("test", []byte(text)) }

// entry returns the first entry of a run, or an entry of no run.
func entry(index int64, run string) ledger.Entry {
	return ledger.Entry{Index: index, RunID: run, At: early, Body: jsontext.Value(fmt.Sprintf(`{"n":%d}`, index))}
}

// following returns the entry after another one of its run.
func following(e ledger.Entry, index int64) ledger.Entry {
	leaf := tlog.RecordHash(e.Leaf())
	next := entry(index, e.RunID)
	next.N, next.Previous, next.Prev = e.N+1, e.Index, base64.StdEncoding.EncodeToString(leaf[:])
	return next
}

// removed returns what a prune leaves of an entry.
func removed(e ledger.Entry) ledger.Entry {
	e.RunID, e.Header, e.Body = "", e.Leaf(), nil
	return e
}

// last returns the index of the last entry.
func last(r ledger.Reader) (int64, error) {
	end, err := r.End()
	return end.Size - 1, err
}

// add adds entries, each with one hash.
func add(tx ledger.Tx, entries ...ledger.Entry) error {
	for _, e := range entries {
		if err := tx.AddEntry(e, []tlog.Hash{tlog.RecordHash(e.Leaf())}); err != nil {
			return err
		}
	}
	return nil
}

// row completes the row of the nth run with what every row has.
func row(n int, r ledger.RunRow) ledger.RunRow {
	r.RunID, r.First, r.Bundle = id(n), int64(n), digest("bundle")
	if r.At == "" {
		r.At = early
	}
	r.Updated = r.At
	return r
}

func request(n int) ledger.RunRow {
	return row(n, ledger.RunRow{Status: ledger.Allowed, Actor: "ann", Server: "files", Tool: "read"})
}

// addRuns adds the rows of runs.
func addRuns(tx ledger.Tx, rows ...ledger.RunRow) error {
	for _, r := range rows {
		if err := tx.AddRun(r); err != nil {
			return err
		}
	}
	return nil
}

func blob(text string) ledger.Blob {
	return ledger.Blob{Digest: digest(text), Kind: ledger.BlobValue, Text: text}
}

// indexes, runs and texts return names of rows for comparisons.
func indexes(entries []ledger.Entry) []int64 {
	var all []int64
	for _, e := range entries {
		all = append(all, e.Index)
	}
	return all
}

func runs(rows []ledger.RunRow) []int {
	var all []int
	for _, r := range rows {
		n, _ := strconv.ParseInt(r.RunID[len(runPrefix):], 16, 64)
		all = append(all, int(n))
	}
	return all
}

func texts(blobs []ledger.Blob) []string {
	var all []string
	for _, b := range blobs {
		all = append(all, b.Text)
	}
	return all
}
