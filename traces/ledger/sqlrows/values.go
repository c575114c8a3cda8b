package sqlrows

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// values collects the values of a statement. Empty ids, times and digests become NULL. The first
// value that has not the form of its column is an error: it could not be read back.
type values struct {
	list []any
	err  error
}

func (v *values) add(more ...any) { v.list = append(v.list, more...) }

// addID adds the 16 bytes of a UUID.
func (v *values) addID(id string) {
	u, err := uuid.Parse(id)
	v.addBytes("id", id, u[:], err == nil && u.String() == id)
}

// addTime adds a time in milliseconds since 1970.
func (v *values) addTime(text string) {
	if text == "" {
		v.add(nil)
		return
	}
	ms, ok := milliseconds(text)
	if !ok {
		v.fail("time", text)
	}
	v.add(ms)
}

// addDigest adds the 32 bytes of a digest.
func (v *values) addDigest(d canonical.Digest) {
	sum, err := hex.DecodeString(strings.TrimPrefix(string(d), canonical.DigestPrefix))
	v.addBytes("digest", string(d), sum,
		err == nil && len(sum) == sha256.Size && string(d) == canonical.DigestPrefix+hex.EncodeToString(sum))
}

func (v *values) addBytes(kind, text string, value []byte, ok bool) {
	switch {
	case text == "":
		v.add(nil)
		return
	case !ok:
		v.fail(kind, text)
	}
	v.add(value)
}

func (v *values) fail(kind, text string) {
	if v.err == nil {
		v.err = fmt.Errorf("%q is no %s that a ledger can have", text, kind)
	}
}

// milliseconds parses a time of the ledger's form.
func milliseconds(text string) (int64, bool) {
	t, err := time.Parse(policy.TimeForm, text)
	return t.UnixMilli(), err == nil && t.Format(policy.TimeForm) == text
}
