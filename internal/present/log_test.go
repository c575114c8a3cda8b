package present_test

import (
	"iter"
	"testing"

	"pgfsm/internal/present"
	"pgfsm/traces/ledger"
)

// entryLog is a log of many entries without events, of which it notes how many are read.
type entryLog struct {
	ledger.Reader
	size int64
	read *int64
}

func (l entryLog) End() (ledger.End, error) { return ledger.End{Size: l.size}, nil }

func (l entryLog) Entries(from int64) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		for i := from; i < l.size; i++ {
			*l.read++
			if !yield(ledger.Entry{Index: i, Body: []byte("{}")}, nil) {
				return
			}
		}
	}
}

// TestReadLogIsBounded: a page that finds no entry looks at a bounded number, and the next page goes on before them.
func TestReadLogIsBounded(t *testing.T) {
	const size = 2*present.MaxLooked + 1
	filter := present.LogFilter{EventFilter: present.EventFilter{Type: ledger.RunEnded}}
	before := int64(0)
	for _, next := range []int64{present.MaxLooked + 1, 1, 0} {
		read := int64(0)
		l, err := present.ReadLog(entryLog{size: size, read: &read}, filter, before, 50)
		if err != nil || l.Next != next || l.From != next || len(l.Entries) > 0 || l.Pruned > 0 || read > present.MaxLooked+1 {
			t.Errorf("before %d: %+v, %v; %d entries were read", before, l, err, read)
		}
		before = l.Next
	}
}
