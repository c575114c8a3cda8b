package canonical

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// DigestPrefix begins every written digest.
const DigestPrefix = "sha256:"

// A Digest names bytes by their SHA-256, as "sha256:" and 64 lower-case hexadecimal digits. The
// zero Digest names nothing and equals no computed digest.
type Digest string

// Sum returns the digest of a value of the given kind ("plan", "trace step", …) from its canonical
// bytes, in one or more pieces. Values of different kinds never share a digest.
func Sum(kind string, pieces ...[]byte) Digest {
	h := sha256.New()
	h.Write([]byte("pgfsm " + kind + "\x00"))
	for _, piece := range pieces {
		h.Write(piece)
	}

	// Arrays, and not the functions that return slices: nothing but the text is allocated.
	var sum [sha256.Size]byte
	var text [len(DigestPrefix) + 2*sha256.Size]byte
	copy(text[:], DigestPrefix)
	hex.Encode(text[len(DigestPrefix):], h.Sum(sum[:0]))
	return Digest(text[:])
}

// SumOf returns the digest of the canonical form of v.
func SumOf(kind string, v any) (Digest, error) {
	b, err := Marshal(v)
	if err != nil {
		return "", err
	}
	return Sum(kind, b), nil
}

// ParseDigest parses a digest and accepts only the form that [Sum] returns.
func ParseDigest(s string) (Digest, error) {
	text, ok := strings.CutPrefix(s, DigestPrefix)
	if !ok || len(text) != 2*sha256.Size || strings.ToLower(text) != text {
		return "", fmt.Errorf("%q is not a digest: want %q and %d lower-case hexadecimal digits", s, DigestPrefix,
			2*sha256.Size)
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
