package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/storetest"
)

func TestMemory(t *testing.T) {
	files := make(map[string]*storetest.Memory)
	storetest.Run(t, storetest.Harness{Open: func(_ testing.TB, path string) ledger.Store {
		if m := files[path]; m != nil {
			return m.Open()
		}
		files[path] = storetest.NewMemory()
		return files[path]
	}})
}

// TestMemoryFailsWhereItIsTold: at each place, at the time it is told, and leaves nothing but what was committed.
func TestMemoryFailsWhereItIsTold(t *testing.T) {
	for _, op := range []storetest.Op{
		storetest.Begin, storetest.AddEntry, storetest.PutRequest, storetest.PutBlob, storetest.PutToken,
		storetest.PutDelivery, storetest.Delivered, storetest.Prune, storetest.PutSession, storetest.DropSession, storetest.Commit, storetest.Committed,
	} {
		t.Run(string(op), func(t *testing.T) {
			m := storetest.NewMemory()
			broken := fmt.Errorf("broken at %s", op)
			m.Fail = func(at storetest.Op, n int) error {
				if at == op && n == 2 {
					return broken
				}
				return nil
			}
			for n := range int64(3) {
				err := m.Update(context.Background(), func(tx ledger.Tx) error {
					return errors.Join(tx.AddEntry(ledger.Entry{Index: n*10 + 1, Events: jsontext.Value("[]")}, nil),
						tx.PutRequest(ledger.Request{RunID: fmt.Sprint(n)}),
						tx.PutBlob(ledger.Blob{}), tx.PutToken(ledger.Token{}), tx.PutDelivery(ledger.Delivery{State: "waiting"}),
						tx.SetDelivered("hook", n), tx.Prune(nil, nil, nil), tx.PutSession(ledger.Session{}), tx.DropSession(""))
				})
				if failed := err != nil; failed != (n == 1) || failed && !errors.Is(err, broken) {
					t.Errorf("update %d: %v", n+1, err)
				}
			}
			want := 2
			if op == storetest.Committed {
				want = 3 // durable, though nobody received of it
			}
			got := 0
			_ = m.View(context.Background(), func(r ledger.Reader) error {
				for range r.Entries(0) {
					got++
				}
				return nil
			})
			if got != want {
				t.Errorf("%d entries, want %d", got, want)
			}
		})
	}
}

func TestMemoryCrash(t *testing.T) {
	const owner = "01890a5d-ac96-774b-bcce-b302099a8057"
	m := storetest.NewMemory()
	other := m.Open()
	if _, err := m.Own(context.Background(), owner); err != nil {
		t.Fatal(err)
	}
	add := func(seq int64) func(ledger.Tx) error {
		return func(tx ledger.Tx) error {
			return tx.AddEntry(ledger.Entry{Index: seq, Events: jsontext.Value("[]")}, nil)
		}
	}
	if err := m.Update(context.Background(), add(1)); err != nil {
		t.Fatal(err)
	}
	m.Crash()
	if err := m.Update(context.Background(), add(2)); err == nil {
		t.Error("a process that crashed can write")
	}
	if gone, err := other.Gone(context.Background(), owner); !gone || err != nil {
		t.Errorf("Gone = %t, %v", gone, err)
	}
	if err := other.Update(context.Background(), add(2)); err != nil {
		t.Errorf("what was committed is lost: %v", err)
	}
}
