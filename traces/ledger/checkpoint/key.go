package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	formats "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"pgfsm/internal/safefile"
)

// maxOrigin is the maximum length of an origin in bytes: a cosignature has one byte for the length.
const maxOrigin = 255

// CheckOrigin returns an error unless a text can name a log and its keys.
func CheckOrigin(origin string) error {
	bad := func(r rune) bool { return r == '+' || unicode.IsSpace(r) || unicode.IsControl(r) }
	if origin == "" || len(origin) > maxOrigin || !utf8.ValidString(origin) || strings.ContainsFunc(origin, bad) {
		return fmt.Errorf("the origin %.300q does not have 1 to %d bytes without spaces, control characters and +",
			origin, maxOrigin)
	}
	return nil
}

// NewKey draws an Ed25519 key of the log with this origin. The private key signs checkpoints; the
// verifier key is public.
func NewKey(origin string) (private, verifier string, err error) {
	if err := CheckOrigin(origin); err != nil {
		return "", "", err
	}
	return note.GenerateKey(nil, origin)
}

// keyMode is the mode of a file with a private key; others holds the bits that its mode must not
// have.
const keyMode, forbiddenMode = 0o600, 0o077

// WriteKey writes a private key to a new file.
func WriteKey(path, private string) error {
	return safefile.Create(path, []byte(private+"\n"), keyMode)
}

// ReadSigner reads a private key from a file that only its owner can read.
func ReadSigner(path string) (note.Signer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&forbiddenMode != 0 {
		return nil, fmt.Errorf("%s: others may read or write this private key (mode %04o): run chmod 600 on it", path,
			info.Mode().Perm())
	}
	text, err := safefile.ReadTrusted(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	signer, err := note.NewSigner(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%s is not a private key of pgfsm ledger key new: %w", path, err)
	}
	return signer, nil
}

// LogVerifier parses the verifier key of a log. Its error does not show the text, which may be a
// private key.
func LogVerifier(vkey string) (note.Verifier, error) {
	v, err := note.NewVerifier(vkey)
	if err != nil {
		return nil, fmt.Errorf("not a verifier key of a log (NAME+HASH+KEY): %w", err)
	}
	return v, nil
}

// WitnessVerifier parses the verifier key of a witness: a key for cosignatures, or a plain Ed25519
// key.
func WitnessVerifier(vkey string) (note.Verifier, error) {
	text := vkey
	if converted, err := formats.VKeyToCosignatureV1(vkey); err == nil {
		text = converted
	}
	v, err := formats.NewVerifierForCosignatureV1(text)
	if err != nil {
		return nil, fmt.Errorf("not a verifier key of a witness (NAME+HASH+KEY): %w", err)
	}
	// The library does not compare the hash.
	if !strings.HasPrefix(text, keyName(v.Name(), v.KeyHash())+"+") {
		return nil, errors.New("not a verifier key of a witness (NAME+HASH+KEY): its hash is of another key")
	}
	return v, nil
}

// keyName returns the beginning of a verifier key: the key's name and hash.
func keyName(name string, hash uint32) string { return fmt.Sprintf("%s+%08x", name, hash) }
