package sqlrows

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/traces/ledger"
)

// A Row is one row of a query. Its columns are taken one after the other; a value of another type than the column should have makes the
// row's error.
type Row struct {
	Values []any // string, int64 or []byte
	at     int
	err    error
}

// Text takes the next column.
func (r *Row) Text() string {
	v, ok := r.Values[r.at].(string)
	if !ok {
		r.unreadable("text")
	}
	r.at++
	return v
}

// Int64 takes the next column.
func (r *Row) Int64() int64 {
	v, ok := r.Values[r.at].(int64)
	if !ok {
		r.unreadable("a number")
	}
	r.at++
	return v
}

// Bytes takes the next column.
func (r *Row) Bytes() []byte {
	v, ok := r.Values[r.at].([]byte)
	if !ok {
		r.unreadable("bytes")
	}
	r.at++
	return v
}

// Hash takes the next column.
func (r *Row) Hash() (h tlog.Hash) {
	v, ok := r.Values[r.at].([]byte)
	if !ok || copy(h[:], v) != len(v) || len(v) != len(h) {
		r.unreadable("32 bytes")
	}
	r.at++
	return h
}

// Err is the error of the first column that had another type.
func (r *Row) Err() error { return r.err }

func (r *Row) int() int { return int(r.Int64()) }

func (r *Row) unreadable(want string) {
	if r.err == nil {
		r.err = fmt.Errorf("column %d is not %s but %T: %w", r.at+1, want, r.Values[r.at], ledger.ErrMalformed)
	}
}
