package canonical

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// A Hasher computes digests of values of one kind from pieces of their canonical form, one digest after the other. It is
// not safe for concurrent use.
type Hasher struct {
	kind string
	h    hash.Hash
}

// NewHasher begins the digest of a value of the given kind; see [Sum].
func NewHasher(kind string) *Hasher {
	h := &Hasher{kind, sha256.New()}
	h.begin()
	return h
}

func (s *Hasher) begin() {
	s.h.Reset()
	s.h.Write([]byte(kindPrefix + s.kind + "\x00"))
}

// Write adds a piece. It never fails.
func (s *Hasher) Write(piece []byte) { s.h.Write(piece) }

// Digest returns the digest of all pieces and begins the next.
func (s *Hasher) Digest() Digest {
	d := Digest(DigestPrefix + hex.EncodeToString(s.h.Sum(nil)))
	s.begin()
	return d
}
