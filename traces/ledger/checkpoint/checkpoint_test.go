package checkpoint_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/checkpoint/witnesstest"
)

// TestOpen shows which checkpoints are verified, and by which keys.
func TestOpen(t *testing.T) {
	m := logOf(t, 7)
	now, next, other := newKey(t, origin), newKey(t, origin), newKey(t, origin)
	signed := sign(t, m, now, next)
	c, err := checkpoint.Take(origin, m.size(), m)
	check.NoError(t, err)
	foreign := newKey(t, "pgfsm-log-of-others")
	foreignSigned, err := note.Sign(&note.Note{Text: fmt.Sprintf("%s\n%d\n%s\n", origin, c.Size, c.Root)}, foreign.signer)
	check.NoError(t, err)
	for _, tt := range []struct {
		name   string
		signed []byte
		keys   []note.Verifier
		want   int    // keys that signed
		err    string // in the error
	}{
		{"one-key", sign(t, m, now), []note.Verifier{now.verifier}, 1, ""},
		{"rotation-old-key", signed, []note.Verifier{now.verifier}, 1, ""},
		{"rotation-both-keys", signed, []note.Verifier{now.verifier, next.verifier}, 2, ""},
		{"unknown-key", signed, []note.Verifier{other.verifier}, 0, "none of the given keys"},
		{"no-key", signed, nil, 0, "no key of the log is given"},
		{"another-origin-in-the-text", foreignSigned, []note.Verifier{foreign.verifier}, 0, "none of the given keys of the log " + origin},
		{"no-signature", signed[:bytes.Index(signed, []byte("\n\n"))+2], []note.Verifier{now.verifier}, 0, "malformed note"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, err := checkpoint.Open(tt.signed, checkpoint.Keys{Log: tt.keys})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("Open() = %v, %v; want %q", o, err, tt.err)
				}
				return
			}
			if err != nil || o.Checkpoint != c || len(o.Signed) != tt.want || len(o.Cosigned) != 0 {
				t.Errorf("Open() = %v, %v; want %v, signed by %d", o, err, c, tt.want)
			}
		})
	}
	if got, err := checkpoint.Read(signed); err != nil || got != c {
		t.Errorf("Read() = %v, %v; want %v", got, err, c)
	}
}

// TestOpenRefusesOtherForms shows that a validly signed text is a checkpoint in one form only.
func TestOpenRefusesOtherForms(t *testing.T) {
	k := newKey(t, origin)
	c, err := checkpoint.Take(origin, 7, logOf(t, 7))
	check.NoError(t, err)
	root := c.Root.String()
	for name, text := range map[string]string{ // each stands alone
		"extension-line": origin + "\n7\n" + root + "\nmore\n",
		"leading-zero":   origin + "\n07\n" + root + "\n",
		"short-root":     origin + "\n7\nAAAA\n",
		"long-root":      origin + "\n7\n" + root[:len(root)-1] + "AAAA\n",
		"root-padding":   origin + "\n7\n" + root[:len(root)-2] + "9=\n",
		"size-past-63":   origin + "\n9223372036854775808\n" + root + "\n",
		"size-past-53":   origin + "\n9007199254740992\n" + root + "\n",
		"two-lines":      origin + "\n7\n",
	} {
		signed, err := note.Sign(&note.Note{Text: text}, k.signer)
		check.NoError(t, err)
		if o, err := checkpoint.Open(signed, checkpoint.Keys{Log: []note.Verifier{k.verifier}}); err == nil {
			t.Errorf("%s: Open() = %v, want an error", name, o)
		}
		if c, err := checkpoint.Read(signed); err == nil {
			t.Errorf("%s: Read() = %v, want an error", name, c)
		}
	}
}

// TestSignRefuses shows that only keys of the log sign its checkpoints.
func TestSignRefuses(t *testing.T) {
	c, err := checkpoint.Take(origin, 7, logOf(t, 7))
	check.NoError(t, err)
	if signed, err := checkpoint.Sign(c); err == nil {
		t.Errorf("Sign() without a key = %q", signed)
	}
	if signed, err := checkpoint.Sign(c, newKey(t, origin).signer, newKey(t, "another-log").signer); err == nil {
		t.Errorf("Sign() with a key of another log = %q", signed)
	}
}

// TestEveryFlippedBitOfACheckpointIsFound covers the text, the log's signature and the cosignature.
func TestEveryFlippedBitOfACheckpointIsFound(t *testing.T) {
	m, k, w := logOf(t, 7), newKey(t, origin), witnesstest.New(t)
	w.Trust(t, k.text)
	signed := cosign(t, w, sign(t, m, k), m)
	keys := checkpoint.Keys{Log: []note.Verifier{k.verifier}, Witnesses: []note.Verifier{witnessVerifier(t, w.Key)}}
	if _, err := checkpoint.Open(signed, keys); err != nil {
		t.Fatal(err)
	}
	for i := range signed {
		for bit := range 8 {
			changed := bytes.Clone(signed)
			changed[i] ^= 1 << bit
			if o, err := checkpoint.Open(changed, keys); err == nil {
				t.Errorf("byte %d, bit %d: Open() = %v, want an error", i, bit, o)
			}
		}
	}
}

// TestContained shows that a checkpoint that was stored elsewhere reveals what was done to a log.
func TestContained(t *testing.T) {
	m := logOf(t, 20)
	c, err := checkpoint.Take(origin, m.size(), m)
	check.NoError(t, err)
	rewritten := m.copied(t, 10)
	rewritten.grow(t, 30, "other")
	grown := m.copied(t, 20)
	grown.grow(t, 13, "entry")
	for _, tt := range []struct {
		name   string
		origin string
		log    *memory
		ok     bool
	}{
		{"same", origin, m, true},
		{"grown", origin, grown, true},
		{"cut", origin, m.copied(t, 19), false},
		{"rewritten", origin, rewritten, false},
		{"another-log", "another-log", m, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now, err := checkpoint.Take(tt.origin, tt.log.size(), tt.log)
			check.NoError(t, err)
			err = c.Contained(now, tt.log)
			if (err == nil) != tt.ok || err != nil && !errors.Is(err, checkpoint.ErrInconsistent) {
				t.Errorf("Contained() = %v, want ok %t", err, tt.ok)
			}
		})
	}
}

// TestKeyFiles shows that a private key is read only if nobody else can read it.
func TestKeyFiles(t *testing.T) {
	private, vkey, err := checkpoint.NewKey(origin)
	check.NoError(t, err)
	path := filepath.Join(t.TempDir(), "key")
	check.NoError(t, checkpoint.WriteKey(path, private))
	if err := checkpoint.WriteKey(path, private); err == nil {
		t.Error("WriteKey() overwrote a key")
	}
	signer, err := checkpoint.ReadSigner(path)
	if err != nil || !strings.HasPrefix(vkey, fmt.Sprintf("%s+%08x+", signer.Name(), signer.KeyHash())) {
		t.Errorf("ReadSigner() = %v, %v", signer, err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o644, 0o620} {
		check.NoError(t, os.Chmod(path, mode))
		if _, err := checkpoint.ReadSigner(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("ReadSigner() with mode %v = %v", mode, err)
		}
	}
	check.NoError(t, os.WriteFile(path, []byte(vkey), 0o600))
	check.NoError(t, os.Chmod(path, 0o600))
	if _, err := checkpoint.ReadSigner(path); err == nil || strings.Contains(err.Error(), vkey) {
		t.Errorf("ReadSigner() of a verifier key = %v", err)
	}
}

// TestKeysAreRefused shows which texts are no origin and no key.
func TestKeysAreRefused(t *testing.T) {
	for _, bad := range []string{"", "a b", "a+b", "a\nb", "a\x01b", "a\u00a0b", "\xff", strings.Repeat("a", 256)} {
		if _, _, err := checkpoint.NewKey(bad); err == nil {
			t.Errorf("NewKey(%q) succeeded", bad)
		}
	}
	k, w := newKey(t, origin), witnesstest.New(t)
	if _, err := checkpoint.WitnessVerifier(k.text); err != nil {
		t.Errorf("WitnessVerifier() of a plain Ed25519 key = %v", err)
	}
	if _, err := checkpoint.LogVerifier(w.Key); err == nil {
		t.Error("LogVerifier() accepts the key of a witness")
	}
	for _, vkey := range []string{k.text, w.Key} {
		for i := range vkey {
			changed := []byte(vkey)
			changed[i] ^= 1
			if _, err := checkpoint.WitnessVerifier(string(changed)); err == nil && !strings.EqualFold(vkey, string(changed)) {
				t.Errorf("WitnessVerifier(%q) succeeded", changed)
			}
		}
	}
}
