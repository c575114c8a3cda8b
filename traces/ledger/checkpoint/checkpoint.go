package checkpoint

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/transparency-dev/formats/log"
	formats "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const (
	// MaxBytes bounds a signed checkpoint: the text and a few dozen signatures.
	MaxBytes = 64 << 10
	// maxSize is the largest size that every JSON parser reads exactly (RFC 7493).
	maxSize = 1<<53 - 1
	// maxYear is the last year of a time in RFC 3339.
	maxYear = 9999
)

// A Checkpoint is the state of a log: its first Size entries have this root.
type Checkpoint struct {
	Origin string
	Size   int64
	Root   tlog.Hash
}

// ErrInconsistent means that a log does not contain entries that were signed or cosigned before.
var ErrInconsistent = errors.New("the log's history was changed")

// Take returns the checkpoint of a log with size entries.
func Take(origin string, size int64, tree tlog.HashReader) (Checkpoint, error) {
	root, err := tlog.TreeHash(size, tree)
	return Checkpoint{Origin: origin, Size: size, Root: root}, err
}

// Contained returns nil if the log in the state now contains the entries of the checkpoint, and
// otherwise [ErrInconsistent].
func (c Checkpoint) Contained(now Checkpoint, tree tlog.HashReader) error {
	switch {
	case now.Origin != c.Origin:
		return RuleInconsistent.Broken("%w: it is the log %s, and the checkpoint is of the log %s", ErrInconsistent, now.Origin,
			c.Origin)
	case now.Size < c.Size:
		return RuleInconsistent.Broken("%w: it has %d entries and the checkpoint has %d; the last ones were removed, or an older copy was put back",
			ErrInconsistent, now.Size, c.Size)
	}
	root, err := tlog.TreeHash(c.Size, tree)
	if err != nil {
		return err
	}
	if root != c.Root {
		return RuleInconsistent.Broken("%w: its first %d entries are not those of the checkpoint", ErrInconsistent, c.Size)
	}
	return nil
}

// noteText returns the text to sign.
func (c Checkpoint) noteText() string {
	return string(log.Checkpoint{Origin: c.Origin, Size: uint64(c.Size), Hash: c.Root[:]}.Marshal())
}

// Sign signs a checkpoint with one or more keys of its log.
func Sign(c Checkpoint, signers ...note.Signer) ([]byte, error) {
	if err := CheckOrigin(c.Origin); err != nil {
		return nil, err
	}
	if len(signers) == 0 {
		return nil, errors.New("a checkpoint needs a key that signs it")
	}
	for _, s := range signers {
		if s.Name() != c.Origin {
			return nil, fmt.Errorf("the key %s is of another log, not of %s", keyName(s.Name(), s.KeyHash()), c.Origin)
		}
	}
	return note.Sign(&note.Note{Text: c.noteText()}, signers...)
}

// Keys holds the verifier keys that a reader trusts.
type Keys struct {
	Log       []note.Verifier // at least one of them must have signed
	Witnesses []note.Verifier // all of them must have cosigned
}

// Opened is a checkpoint whose signatures were verified.
type Opened struct {
	Checkpoint
	Signed   []string // trusted keys of the log that signed it; none: no signature was verified
	Cosigned []Cosignature
}

// A Cosignature states that the checkpoint was the largest of the log that the witness had seen at
// this time.
type Cosignature struct {
	Witness string    `json:"key"`
	At      time.Time `json:"at"`
}

// Open reads a checkpoint and verifies its signatures. Without a key of the log it fails.
func Open(signed []byte, keys Keys) (*Opened, error) {
	if len(keys.Log) == 0 {
		return nil, errors.New("the checkpoint is not verified: no key of the log is given")
	}
	n, err := openUnverified(signed)
	if err != nil {
		return nil, err
	}
	c, err := parseCheckpoint(n.Text)
	if err != nil {
		return nil, err
	}

	o := &Opened{Checkpoint: c}
	if err := o.verifySignatures(n, keys); err != nil {
		return nil, fmt.Errorf("the checkpoint is not verified: %w", err)
	}
	return o, nil
}

// verifySignatures verifies every signature of a trusted key.
func (o *Opened) verifySignatures(n *note.Note, keys Keys) error {
	byLog, err := verifiedSignatures(n, keys.Log)
	if err != nil {
		return err
	}
	for _, s := range byLog {
		o.Signed = append(o.Signed, keyName(s.Name, s.Hash))
	}
	if !slices.ContainsFunc(byLog, func(s note.Signature) bool { return s.Name == o.Origin }) {
		return ruleSigned.Broken("none of the given keys of the log %s signed it", o.Origin)
	}

	byWitnesses, err := verifiedSignatures(n, keys.Witnesses)
	if err != nil {
		return err
	}
	for _, s := range byWitnesses {
		cosignedAt, err := formats.CoSigV1Timestamp(s)
		if err != nil || cosignedAt.Unix() < 0 || cosignedAt.UTC().Year() > maxYear {
			return ruleCosigned.Broken("the cosignature of %s has no time", keyName(s.Name, s.Hash))
		}
		o.Cosigned = append(o.Cosigned, Cosignature{Witness: keyName(s.Name, s.Hash), At: cosignedAt.UTC()})
	}
	for _, w := range keys.Witnesses {
		name := keyName(w.Name(), w.KeyHash())
		if !slices.ContainsFunc(o.Cosigned, func(s Cosignature) bool { return s.Witness == name }) {
			return ruleCosigned.Broken("the witness %s has not cosigned it", name)
		}
	}

	return nil
}

// OpenNote returns the text of a signed note (c2sp.org/signed-note) that one or more of the keys have
// signed.
func OpenNote(signed []byte, keys []note.Verifier) (text string, err error) {
	n, err := openUnverified(signed)
	if err != nil {
		return "", err
	}
	verified, err := verifiedSignatures(n, keys)
	if err == nil && len(verified) == 0 {
		err = ruleSigned.Broken("none of the keys signed it")
	}
	return n.Text, err
}

// verifiedSignatures returns the signatures by some keys. Each of them must be valid; [note.Open] verifies
// only the first one of each key.
func verifiedSignatures(n *note.Note, keys []note.Verifier) (verified []note.Signature, err error) {
	for _, s := range n.UnverifiedSigs {
		i := slices.IndexFunc(keys, func(v note.Verifier) bool { return v.Name() == s.Name && v.KeyHash() == s.Hash })
		if i < 0 {
			continue
		}
		if err := verifyOne(n.Text, s, keys[i]); err != nil {
			return nil, err
		}
		verified = append(verified, s)
	}
	return verified, nil
}

// keyHashBytes is the size of the key's hash before a signature.
const keyHashBytes = 4

// verifyOne verifies the signature of a note by a key.
func verifyOne(text string, s note.Signature, key note.Verifier) error {
	signature, err := decodeSignature(s)
	if err != nil {
		return err
	}
	if !key.Verify([]byte(text), signature[keyHashBytes:]) {
		return ruleSigned.Wrap(&note.InvalidSignatureError{Name: s.Name, Hash: s.Hash})
	}
	return nil
}

// decodeSignature decodes a signature, which must be in canonical base64.
func decodeSignature(s note.Signature) ([]byte, error) {
	signature, err := base64.StdEncoding.Strict().DecodeString(s.Base64)
	if err != nil {
		return nil, ruleSignatures.Broken("the signature of %s is not in its one form: %w", keyName(s.Name, s.Hash), err)
	}
	return signature, nil
}

// Read reads a checkpoint and verifies no signature: the checkpoint may be forged or of another
// log.
func Read(signed []byte) (Checkpoint, error) {
	n, err := openUnverified(signed)
	if err != nil {
		return Checkpoint{}, err
	}
	return parseCheckpoint(n.Text)
}

// Signers returns the keys whose signatures a checkpoint has, and verifies none of them. A text
// that is not a signed checkpoint has none.
func Signers(signed []byte) (names []string) {
	n, err := openUnverified(signed)
	if err != nil {
		return nil
	}
	for _, s := range n.UnverifiedSigs {
		names = append(names, keyName(s.Name, s.Hash))
	}
	return names
}

// openUnverified parses a signed note and verifies none of its signatures. Package note accepts
// base64 in several forms; this function accepts one.
func openUnverified(signed []byte) (*note.Note, error) {
	_, err := note.Open(signed, nil)
	failure := new(note.UnverifiedNoteError)
	if !errors.As(err, &failure) {
		return nil, ruleNote.Broken("not a signed note: %w", err)
	}
	for _, s := range failure.Note.UnverifiedSigs {
		if _, err := decodeSignature(s); err != nil {
			return nil, fmt.Errorf("not a signed note: %w", err)
		}
	}
	return failure.Note, nil
}

// parseCheckpoint reads the text of a checkpoint, which must be in the canonical form.
func parseCheckpoint(text string) (Checkpoint, error) {
	var head log.Checkpoint
	if _, err := head.Unmarshal([]byte(text)); err != nil {
		return Checkpoint{}, ruleText.Wrap(err)
	}
	c := Checkpoint{Origin: head.Origin, Size: int64(head.Size)}
	copy(c.Root[:], head.Hash)
	if c.noteText() != text || head.Size > maxSize {
		return Checkpoint{}, ruleText.Broken("not a checkpoint: want three lines, the origin, the size and the root")
	}
	return c, ruleText.Wrap(CheckOrigin(c.Origin))
}
