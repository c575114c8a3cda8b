package storetest

import (
	"fmt"
	"reflect"
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

func entry(index int64, run string) ledger.Entry {
	return ledger.Entry{
		Index: index, RunID: run, N: int(index), Type: ledger.RequestCreated, At: early, By: "ann", Prev: fmt.Sprint(index - 1),
		Events: jsontext.Value(fmt.Sprintf(`[{"n":%d}]`, index)),
	}
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

func request(run string) ledger.RunRow {
	return ledger.RunRow{RunID: run, At: early, Status: ledger.Allowed, Actor: "ann", Server: "files", Tool: "read"}
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

func runs(requests []ledger.RunRow) []string {
	var all []string
	for _, r := range requests {
		all = append(all, r.RunID)
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
