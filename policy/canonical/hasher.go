package canonical

import (
	"crypto/sha256"
	"hash"
)

// A Hasher computes digests of one kind of thing from pieces of its canonical form, so that what is large need not be
// put together first. It is used over and over, by one goroutine.
type Hasher struct {
	h     hash.Hash
	begin []byte
	sum   [sha256.Size]byte
}

// NewHasher begins the digest of a thing of the given kind; see [Sum].
func NewHasher(kind string) *Hasher {
	h := &Hasher{h: sha256.New(), begin: append([]byte(kindPrefix+kind), 0)}
	h.h.Write(h.begin)
	return h
}

// Write adds a piece. It never fails.
func (s *Hasher) Write(piece []byte) { s.h.Write(piece) }

// Digest returns the digest of all pieces and begins the next.
func (s *Hasher) Digest() Digest {
	d := written(s.h.Sum(s.sum[:0]))
	s.h.Reset()
	s.h.Write(s.begin)
	return d
}
