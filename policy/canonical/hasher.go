package canonical

import (
	"crypto/sha256"
	"hash"
	"sync"
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
	h := &Hasher{h: sha256.New()}
	h.start(kind)
	return h
}

// hashers are for things that are hashed at once and are large.
var hashers = sync.Pool{New: func() any { return &Hasher{h: sha256.New()} }}

// start begins the digest of a thing of another kind.
func (s *Hasher) start(kind string) {
	s.begin = append(append(append(s.begin[:0], kindPrefix...), kind...), 0)
	s.h.Reset()
	s.h.Write(s.begin)
}

// Write adds a piece. It never fails.
func (s *Hasher) Write(piece []byte) { s.h.Write(piece) }

// Digest returns the digest of all pieces and begins the next.
func (s *Hasher) Digest() Digest {
	text := written(s.end())
	return Digest(text[:])
}

func (s *Hasher) end() [sha256.Size]byte {
	s.h.Sum(s.sum[:0])
	s.h.Reset()
	s.h.Write(s.begin)
	return s.sum
}
