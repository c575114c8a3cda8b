package sqlrows

import (
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// A Row is one row of a query. Its methods read the columns in order. If a column does not have the
// expected type, Err returns an error.
type Row struct {
	Values []any // string, int64, []byte, or nil for NULL
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

// ID reads the next column as a UUID; NULL becomes empty.
func (r *Row) ID() string {
	b := r.optional(16)
	if b == nil {
		return ""
	}
	return uuid.UUID(b).String()
}

// Digest reads the next column as a digest; NULL becomes empty.
func (r *Row) Digest() canonical.Digest {
	b := r.optional(tlog.HashSize)
	if b == nil {
		return ""
	}
	return canonical.Digest(canonical.DigestPrefix + hex.EncodeToString(b))
}

// optional reads the next column as bytes of a length; nil for NULL.
func (r *Row) optional(length int) []byte {
	v, ok := r.Values[r.at].([]byte)
	if r.Values[r.at] != nil && (!ok || len(v) != length) {
		r.fail(fmt.Sprintf("%d bytes", length))
		v = nil
	}
	r.at++
	return v
}

// Time reads the next column as a time in milliseconds since 1970; NULL becomes empty.
func (r *Row) Time() string {
	ms, ok := r.Values[r.at].(int64)
	isNull := r.Values[r.at] == nil
	t := time.UnixMilli(ms).UTC()
	if !isNull && (!ok || t.Year() < 0 || t.Year() > 9999) {
		r.fail("a time in milliseconds")
	}
	r.at++
	if isNull {
		return ""
	}
	return t.Format(policy.TimeForm)
}

// OptionalText reads the next column as text; NULL becomes empty.
func (r *Row) OptionalText() string {
	if r.Values[r.at] == nil {
		r.at++
		return ""
	}
	return r.Text()
}

// Err returns the error of the first column with an unexpected type.
func (r *Row) Err() error { return r.err }

func (r *Row) nextInt() int { return int(r.Int64()) }

func (r *Row) fail(want string) {
	if r.err == nil {
		r.err = fmt.Errorf("column %d is not %s but %T: %w", r.at+1, want, r.Values[r.at], ledger.ErrMalformed)
	}
}
