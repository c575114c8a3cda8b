package sqlrows

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/traces/ledger"
)

// A Row is one row of a query. Its methods read the columns in order. If a column does not have the
// expected type, Err returns an error.
type Row struct {
	Values []any // string, int64 or []byte
	at     int
	err    error
}

// Text reads the next column as text.
func (r *Row) Text() string {
	v, ok := r.Values[r.at].(string)
	if !ok {
		r.fail("text")
	}
	r.at++
	return v
}

// Int64 reads the next column as an integer.
func (r *Row) Int64() int64 {
	v, ok := r.Values[r.at].(int64)
	if !ok {
		r.fail("a number")
	}
	r.at++
	return v
}

// Bytes reads the next column as bytes.
func (r *Row) Bytes() []byte {
	v, ok := r.Values[r.at].([]byte)
	if !ok {
		r.fail("bytes")
	}
	r.at++
	return v
}

// Hash reads the next column as a hash.
func (r *Row) Hash() (h tlog.Hash) {
	v, ok := r.Values[r.at].([]byte)
	if !ok || copy(h[:], v) != len(v) || len(v) != len(h) {
		r.fail("32 bytes")
	}
	r.at++
	return h
}

// Err returns the error of the first column with an unexpected type.
func (r *Row) Err() error { return r.err }

func (r *Row) nextInt() int { return int(r.Int64()) }

func (r *Row) fail(want string) {
	if r.err == nil {
		r.err = fmt.Errorf("column %d is not %s but %T: %w", r.at+1, want, r.Values[r.at], ledger.ErrMalformed)
	}
}
