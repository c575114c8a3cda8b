package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
)

// An Entry is one entry of the log in the form that is hashed.
type Entry struct {
	Header []byte // the leaf: canonical JSON of a [Header]
	Body   []byte // canonical JSON of a [Body]; empty: it was pruned
}

// A Header is the leaf of an entry, in canonical order. It is never removed. It names nobody, and
// nothing that a caller chose.
type Header struct {
	At    string    `json:"at"`
	Body  tlog.Hash `json:"body"`  // the SHA-256 of the body
	Class string    `json:"class"` // says whether a prune may remove the body
	N     int       `json:"n"`     // how many earlier entries the run has
	Prev  string    `json:"prev"`  // leaf hash of the run's previous entry, in base64; empty if N is 0
	Types []string  `json:"types"` // of the events, in order
}

// A Body is the part of an entry that a prune may remove, in canonical order.
type Body struct {
	By     string         `json:"by"`
	Events jsontext.Value `json:"events"`        // a list, in canonical form
	Run    string         `json:"run,omitempty"` // empty if the entry belongs to no run
	Salt   []byte         `json:"salt"`
}

// SaltBytes is the size of a body's salt. It makes the digest of a body unpredictable, so that the
// header of a pruned entry confirms no guess of what the body was.
const SaltBytes = 16

// ParseHeader reads a header, which must be in canonical form.
func ParseHeader(text []byte) (*Header, error) {
	h := new(Header)
	return h, parseCanonical(text, h)
}

// ParseBody reads a body, which must be in canonical form.
func ParseBody(text []byte) (*Body, error) {
	b := new(Body)
	if err := parseCanonical(text, b); err != nil {
		return nil, err
	}
	if b.By == "" {
		return nil, errors.New("it names nobody who caused the events")
	}
	if len(b.Salt) != SaltBytes {
		return nil, errors.New("its salt has another length")
	}
	return b, nil
}

func parseCanonical(text []byte, v any) error {
	if err := canonical.Unmarshal(text, v); err != nil {
		return err
	}
	if c, err := canonical.Sorted(v); err != nil || !bytes.Equal(c, text) {
		return errors.New("it is not in canonical form, or a member is missing")
	}
	return nil
}

// parse reads an entry whose body is not pruned, and compares the body with the header.
func (e *Entry) parse() (*Header, *Body, error) {
	h, err := ParseHeader(e.Header)
	if err != nil {
		return nil, nil, ruleProofEntries.Wrap(err)
	}
	if sha256.Sum256(e.Body) != h.Body {
		return nil, nil, ruleProofEntries.Broken("its body does not have the digest in its header")
	}
	b, err := ParseBody(e.Body)
	return h, b, ruleProofEntries.Wrap(err)
}
