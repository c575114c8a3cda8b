package canonical

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// DigestPrefix begins every written digest.
const DigestPrefix = "sha256:"

// A Digest names bytes by their SHA-256, as "sha256:" and 64 lower-case hexadecimal digits. The zero Digest names
// nothing and equals no computed digest.
type Digest string

// Sum returns the digest of a thing of the given kind ("plan", "trace step", …) from its canonical bytes, which may come in
// pieces. Two things of different kinds never share a digest, whatever their bytes.
func Sum(kind string, pieces ...[]byte) Digest {
	text := written(sum(kind, pieces...))
	return Digest(text[:])
}

// Names reports whether d is the digest of b, as [Sum] gives it.
func (d Digest) Names(kind string, b []byte) bool {
	text := written(sum(kind, b))
	return string(d) == string(text[:])
}

func sum(kind string, pieces ...[]byte) [sha256.Size]byte {
	size := len(kindPrefix) + len(kind) + 1
	for _, piece := range pieces {
		size += len(piece)
	}
	var small [smallThing]byte
	if size > len(small) {
		h := hashers.Get().(*Hasher)
		defer hashers.Put(h)
		h.start(kind)
		for _, piece := range pieces {
			h.Write(piece)
		}
		return h.end()
	}
	thing := append(append(append(small[:0], kindPrefix...), kind...), 0)
	for _, piece := range pieces {
		thing = append(thing, piece...)
	}
	return sha256.Sum256(thing)
}

// smallThing is the size up to which a thing is hashed without a hasher of its own.
const smallThing = 1 << 10

// kindPrefix stands before the kind in what is hashed.
const kindPrefix = "pgfsm "

// writtenSize is the length of a written digest.
const writtenSize = len(DigestPrefix) + 2*sha256.Size

func written(sum [sha256.Size]byte) (text [writtenSize]byte) {
	copy(text[:], DigestPrefix)
	hex.Encode(text[len(DigestPrefix):], sum[:])
	return text
}

// SumOf returns the digest of the canonical form of v.
func SumOf(kind string, v any) (Digest, error) {
	b, err := Marshal(v)
	if err != nil {
		return "", err
	}
	return Sum(kind, b), nil
}

// ParseDigest reads a written digest. There is exactly one spelling of each.
func ParseDigest(s string) (Digest, error) {
	text, ok := strings.CutPrefix(s, DigestPrefix)
	if !ok || len(text) != 2*sha256.Size || strings.ToLower(text) != text {
		return "", fmt.Errorf("%q is not a digest: want %q and %d lower-case hexadecimal digits", s, DigestPrefix, 2*sha256.Size)
	}
	if _, err := hex.DecodeString(text); err != nil {
		return "", fmt.Errorf("%q is not a digest: %w", s, err)
	}
	return Digest(s), nil
}

// Short returns the first twelve hexadecimal digits, for people.
func (d Digest) Short() string {
	text := strings.TrimPrefix(string(d), DigestPrefix)
	return text[:min(12, len(text))]
}
