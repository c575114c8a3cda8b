package canonical

import (
	"crypto/sha256"
	"hash"
)

// A Hasher computes the digest of one kind of thing from pieces of its canonical form, so that what is large or is
// shared by many things need not be put together or hashed again.
type Hasher struct{ h hash.Hash }

// NewHasher begins the digest of a thing of the given kind; see [Sum].
func NewHasher(kind string) Hasher {
	h := sha256.New()
	h.Write(append([]byte(kindPrefix+kind), 0))
	return Hasher{h}
}

// Write adds a piece. It never fails.
func (s Hasher) Write(piece []byte) { s.h.Write(piece) }

// Digest returns the digest of all pieces so far.
func (s Hasher) Digest() Digest {
	var sum [sha256.Size]byte
	return written(s.h.Sum(sum[:0]))
}
