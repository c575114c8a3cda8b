package storetest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/states"
	"pgfsm/traces/ledger"
)

func emptyStore(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	nothing(t, s)
	view(t, s, func(r ledger.Reader) {
		if end, err := r.End(); err != nil || end != (ledger.End{}) {
			t.Errorf("End = %+v, %v", end, err)
		}
		h, err := r.ReadHashes([]int64{0})
		missing(t, "ReadHashes", h, err)
		if n, err := r.CountHashes(); n != 0 || err != nil {
			t.Errorf("CountHashes = %d, %v, want none", n, err)
		}
		seq, err := r.LastIndexOf(id(1))
		missing(t, "LastIndexOf", seq, err)
		for _, run := range []string{"none", "", id(1)} {
			q, err := r.Run(run)
			missing(t, "Run", q, err)
			wantEqual(t, "EntriesOf", []ledger.Entry(nil), list(t, r.EntriesOf(run)))
		}
		b, err := r.Blob(digest("none"))
		missing(t, "Blob", b, err)
		k, err := r.Token("none")
		missing(t, "Token", k, err)
		blocked, err := r.Block("none")
		missing(t, "Block", blocked, err)
		connected, err := r.Connection("none", "none")
		missing(t, "Connection", connected, err)
	})
}

// wantEqual compares rows; an empty list or value equals a missing one.
func wantEqual(t *testing.T, what string, want, got any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) && !cmp.Equal(want, got, cmpopts.EquateEmpty()) { // cmp takes seconds for long texts
		t.Errorf("%s (-want +got):\n%s", what, cmp.Diff(want, got, cmpopts.EquateEmpty()))
	}
}

// rowsOfAllKinds holds rows of each kind, which are written and read back. The entries are those of the run.
type rowsOfAllKinds struct {
	Entries  []ledger.Entry
	Request  ledger.RunRow
	Blob     ledger.Blob
	Token    ledger.Token
	Block    ledger.Block
	Delivery ledger.Delivery

	Connection ledger.Connection
}

func (w rowsOfAllKinds) roundTrip(t *testing.T, h Harness) {
	t.Helper()
	s, _ := h.fresh(t)
	update(t, s, func(tx ledger.Tx) error {
		for _, write := range []func() error{
			func() error { return add(tx, w.Entries...) },
			func() error { return tx.AddRun(w.Request) },
			func() error { return tx.PutBlob(w.Blob) },
			func() error { return tx.PutToken(w.Token) },
			func() error { return tx.PutBlock(w.Block) },
			func() error { return tx.PutConnection(w.Connection) },
			func() error { return tx.PutDelivery(w.Delivery) },
			func() error { return tx.SetNextDelivery("hook", 7) },
		} {
			if err := write(); err != nil {
				return err
			}
		}
		return nil
	})
	view(t, s, func(r ledger.Reader) {
		var got rowsOfAllKinds
		var errs [6]error
		got.Entries = list(t, r.Entries(0))
		last := w.Entries[len(w.Entries)-1]
		hashes, err := r.ReadHashes([]int64{tlog.StoredHashIndex(0, last.Index)})
		errs[0] = err
		wantEqual(t, "hashes", []tlog.Hash{tlog.RecordHash(last.Leaf())}, hashes)
		if n, err := r.CountHashes(); n != int64(len(w.Entries)) || err != nil {
			t.Errorf("CountHashes = %d, %v, want %d", n, err, len(w.Entries))
		}
		got.Request, errs[1] = r.Run(w.Request.RunID)
		got.Blob, errs[2] = r.Blob(w.Blob.Digest)
		got.Token, errs[3] = r.Token(w.Token.ID)
		got.Block, errs[4] = r.Block(w.Block.Name)
		got.Connection, errs[5] = r.Connection(w.Connection.Person, w.Connection.Server)
		got.Delivery = onlyRow(t, r.Deliveries("", late+"z", 10))
		wantEqual(t, "errors", [6]error{}, errs)
		wantEqual(t, "rows", w, got)
		if end, err := r.End(); err != nil || end != (ledger.End{Size: last.Index + 1, At: last.At, Type: last.Type}) {
			t.Errorf("End = %+v, %v", end, err)
		}
		if entry, err := r.LastIndexOf(w.Request.RunID); err != nil || entry != w.Request.Entry {
			t.Errorf("LastIndexOf = %d, %v, want %d", entry, err, w.Request.Entry)
		}
		wantEqual(t, "EntriesOf", w.Entries, list(t, r.EntriesOf(w.Request.RunID)))
		inCapitals, err := r.Run(strings.ToUpper(w.Request.RunID))
		missing(t, "Run", inCapitals, err)
		wantEqual(t, "Runs", w.Request, onlyRow(t, r.Runs(ledger.Filter{})))
		wantEqual(t, "Blobs", w.Blob, onlyRow(t, r.Blobs()))
		wantEqual(t, "Tokens", w.Token, onlyRow(t, r.Tokens()))
		wantEqual(t, "Blocks", w.Block, onlyRow(t, r.Blocks()))
		if n, err := r.NextDelivery("hook"); n != 7 || err != nil {
			t.Errorf("Delivered = %d, %v, want 7", n, err)
		}
	})
}

// onlyRow returns the one row of a sequence.
func onlyRow[T any](t *testing.T, rows iter.Seq2[T, error]) T {
	t.Helper()
	all := list(t, rows)
	if len(all) != 1 {
		t.Fatalf("%d rows, want 1", len(all))
	}
	return all[0]
}

func fullRows(t *testing.T, h Harness) {
	w := rowsOfAllKinds{
		nil, filled[ledger.RunRow](t), filled[ledger.Blob](t), filled[ledger.Token](t), filled[ledger.Block](t), filled[ledger.Delivery](t),
		filled[ledger.Connection](t),
	}
	w.Connection.Scopes, w.Connection.Asked = []string{"repo", "read:org"}, []string{"gist"} // without spaces
	first := entry(w.Request.Entry-1, w.Request.RunID)
	w.Entries = []ledger.Entry{first, following(first, w.Request.Entry)}
	w.Delivery.Next = early
	w.roundTrip(t, h)
}

func zeroRows(t *testing.T, h Harness) {
	w := rowsOfAllKinds{
		Entries:  []ledger.Entry{{RunID: id(0), At: early, Body: jsontext.Value("{}")}},
		Request:  ledger.RunRow{RunID: id(0), At: early, Updated: early, Bundle: digest("")},
		Delivery: ledger.Delivery{State: "waiting"},

		Connection: ledger.Connection{State: ledger.ConnectionLost, Sealed: []byte{}},
	}
	w.roundTrip(t, h)
}

// incompressible returns random text: a store cannot compress it to fit an index.
func incompressible(size int) string {
	b := make([]byte, size/2)
	rand.NewChaCha8([32]byte{}).Read(b)
	return hex.EncodeToString(b)
}

func oddText(t *testing.T, h Harness) {
	for name, text := range map[string]string{ // in any order
		"quotes": `it's "so"; DROP TABLE entries --`, "lines": "a\r\nb\x00c\t", "scripts": "žluťoučký 🐎 \u202e\u200d", "number": "1e3", "space": " ",
		"not-utf-8": "\xff\xfe", "long": incompressible(1 << 20),
	} {
		t.Run(name, func(t *testing.T) {
			key := text[:min(len(text), 256)] // the keys of rows are short
			rowsOfAllKinds{
				Entries: []ledger.Entry{{RunID: id(0), At: early, Body: jsontext.Value(text)}},
				Request: row(0, ledger.RunRow{Actor: text, Display: text, OnBehalfOf: text, OnBehalfOfDisplay: text, Client: text, Server: text, Tool: text,
					Args: text, Policy: text, Reason: text, Task: key, Trace: text, Binding: digest("b"), Kind: states.KindAgent}),
				Blob: ledger.Blob{Digest: digest(text), Text: text}, Token: ledger.Token{ID: key, Name: text},
				Block:    ledger.Block{Name: key, By: text},
				Delivery: ledger.Delivery{State: "waiting", Hook: key, Error: text},

				Connection: ledger.Connection{Person: key, Account: text, State: ledger.ConnectionReady, Sealed: []byte(text)},
			}.roundTrip(t, h)
		})
	}
}

func entryOrder(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	update(t, s, func(tx ledger.Tx) error {
		for i := range int64(400) {
			if err := add(tx, entry(i+1, "")); err != nil {
				return err
			}
		}
		return nil
	})
	view(t, s, func(r ledger.Reader) {
		if n, err := last(r); err != nil || n != 400 {
			t.Errorf("the last entry is %d, %v, want 400", n, err)
		}
		wantEqual(t, "Entries(398)", []int64{398, 399, 400}, indexes(list(t, r.Entries(398))))
		wantEqual(t, "Entries(401)", []int64(nil), indexes(list(t, r.Entries(401))))
		if n := len(list(t, r.Entries(0))); n != 400 {
			t.Errorf("%d entries, want 400", n)
		}
	})
}

// entriesOfRuns checks that the entries of a run are those that its row leads to.
func entriesOfRuns(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	log := []ledger.Entry{entry(0, id(0)), entry(1, id(1)), entry(2, "")}
	for i := int64(3); i < 400; i++ {
		if i%3 == 2 {
			log = append(log, entry(i, ""))
		} else {
			log = append(log, following(log[i-3], i))
		}
	}
	itself := following(log[399], 400) // no ledger has such an entry
	itself.RunID, itself.Previous, itself.Prev = id(2), 400, ""
	ends, is, loops := row(0, ledger.RunRow{Entry: 399}), row(1, ledger.RunRow{Entry: 4}), row(2, ledger.RunRow{Entry: 400})
	update(t, s, func(tx ledger.Tx) error {
		return errors.Join(add(tx, append(log, itself)...), addRuns(tx, ends, is, loops))
	})
	view(t, s, func(r ledger.Reader) {
		all := list(t, r.EntriesOf(id(0)))
		if len(all) != 134 {
			t.Fatalf("%d entries, want 134", len(all))
		}
		for n, e := range all {
			wantEqual(t, "EntriesOf", log[3*n], e)
		}
		wantEqual(t, "EntriesOf a row that names an earlier entry", []int64{1, 4}, indexes(list(t, r.EntriesOf(id(1)))))
		wantEqual(t, "EntriesOf a run whose entry follows itself", []int64{400}, indexes(list(t, r.EntriesOf(id(2)))))
	})
	update(t, s, func(tx ledger.Tx) error { return tx.Prune(nil, []string{id(0), "none"}, nil) })
	view(t, s, func(r ledger.Reader) {
		wantEqual(t, "EntriesOf a run whose row is missing", []int64(nil), indexes(list(t, r.EntriesOf(id(0)))))
		wantEqual(t, "runs", []int{1, 2}, runs(list(t, r.Runs(ledger.Filter{}))))
		wantEqual(t, "Entries", log[0], list(t, r.Entries(0))[0])
	})
}

func tokenAndBlobOrder(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	var want []string
	update(t, s, func(tx ledger.Tx) error {
		for i, id := range []string{"m", "z", "a"} {
			if err := tx.PutToken(ledger.Token{ID: id, Created: []string{early, later, later}[i]}); err != nil {
				return err
			}
		}
		for i := range 20 {
			b := blob(fmt.Sprint(i))
			want = append(want, string(b.Digest))
			if err := tx.PutBlob(b); err != nil {
				return err
			}
		}
		return nil
	})
	slices.Sort(want)
	view(t, s, func(r ledger.Reader) {
		var tokens, blobs []string
		for _, k := range list(t, r.Tokens()) {
			tokens = append(tokens, k.ID)
		}
		for _, b := range list(t, r.Blobs()) {
			blobs = append(blobs, string(b.Digest))
		}
		wantEqual(t, "Tokens", []string{"m", "a", "z"}, tokens)
		wantEqual(t, "Blobs", want, blobs)
	})
}

func deliveries(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	update(t, s, func(tx ledger.Tx) error {
		for _, d := range []ledger.Delivery{
			{Entry: 10, Hook: "b", Next: early, State: "waiting"}, {Entry: 2, Hook: "b", Next: later, State: "waiting"},
			{Entry: 2, Hook: "a", Next: early, State: "waiting"}, {Entry: 3, Hook: "a", Next: early, State: "done"},
			{Entry: 4, Hook: "a", Next: early, State: "given_up"}, {Entry: 5, Hook: "a", Next: late, State: "waiting"},
		} {
			if err := tx.PutDelivery(d); err != nil {
				return err
			}
		}
		return nil
	})
	for _, tc := range []struct {
		name, hook, due string
		limit           int
		want            []string
	}{
		{"all-due", "", late, 10, []string{"2a", "2b", "5a", "10b"}},
		{"due-is-inclusive", "", later, 10, []string{"2a", "2b", "10b"}},
		{"not-yet-due", "", early, 10, []string{"2a", "10b"}},
		{"limit", "", late, 2, []string{"2a", "2b"}},
		{"none-due", "", "2025-12-31T23:59:59.000Z", 10, nil},
		{"limit-of-none", "", late, 0, nil},
		{"of-one-hook", "b", late, 10, []string{"2b", "10b"}},
		{"of-one-hook-and-due", "b", early, 10, []string{"10b"}},
		{"of-one-hook-with-a-limit", "b", late, 1, []string{"2b"}},
		{"of-no-such-hook", "c", late, 10, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, d := range collect(t, s, func(r ledger.Reader) iter.Seq2[ledger.Delivery, error] {
				return r.Deliveries(tc.hook, tc.due, tc.limit)
			}) {
				got = append(got, fmt.Sprintf("%d%s", d.Entry, d.Hook))
			}
			wantEqual(t, "deliveries", tc.want, got)
		})
	}
}
