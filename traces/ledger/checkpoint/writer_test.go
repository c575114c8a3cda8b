package checkpoint_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger/checkpoint"
)

// TestWriter shows that a checkpoint is written when the log has grown, and that nothing is signed for another history.
func TestWriter(t *testing.T) {
	k, m := newKey(t, origin), logOf(t, 3)
	w := &checkpoint.Writer{Dir: filepath.Join(t.TempDir(), "checkpoints"), Every: time.Hour, Signers: []note.Signer{k.signer}}
	w.View = func(_ context.Context, do func(checkpoint.Checkpoint, tlog.HashReader) error) error {
		c, err := checkpoint.Take(origin, m.size(), m)
		if err != nil {
			return err
		}
		return do(c, m)
	}
	files := func(want ...string) {
		t.Helper()
		all, err := os.ReadDir(w.Dir)
		check.NoError(t, err)
		var names []string
		for _, f := range all {
			names = append(names, f.Name())
		}
		if slices.Sort(want); !slices.Equal(names, want) {
			t.Fatalf("files = %q, want %q", names, want)
		}
	}
	write := func(inconsistent bool) {
		t.Helper()
		if err := w.Write(t.Context()); (err != nil) != inconsistent || err != nil && !errors.Is(err, checkpoint.ErrInconsistent) {
			t.Fatalf("Write() = %v, want an inconsistent log: %t", err, inconsistent)
		}
	}
	write(false)
	write(false)
	files("checkpoint-3")
	m.grow(t, 9, "entry")
	write(false)
	files("checkpoint-3", "checkpoint-12")
	signed, err := os.ReadFile(filepath.Join(w.Dir, "checkpoint-12"))
	check.NoError(t, err)
	if o, err := checkpoint.Open(signed, checkpoint.Keys{Log: []note.Verifier{k.verifier}}); err != nil || o.Size != 12 {
		t.Fatalf("Open() = %v, %v", o, err)
	}
	original := m
	m = original.copied(t, 11)
	write(true)
	m.grow(t, 5, "other")
	write(true)
	files("checkpoint-3", "checkpoint-12")
	m = original
	m.grow(t, 1, "entry")
	write(false)
	files("checkpoint-3", "checkpoint-12", "checkpoint-13")
}

// TestWriterReadsItsFiles shows that nothing is signed if the last file in the folder is not the checkpoint that its name says.
func TestWriterReadsItsFiles(t *testing.T) {
	k, m := newKey(t, origin), logOf(t, 3)
	none, err := checkpoint.Sign(checkpoint.Checkpoint{Origin: origin}, k.signer)
	check.NoError(t, err)
	for _, tt := range []struct {
		name, file string
		text       []byte
		ok         bool
	}{
		{"checkpoint-of-no-entries", "checkpoint-9", none, false},
		{"garbage", "checkpoint-9", []byte("x"), false},
		{"another-name", "checkpoint-009", []byte("x"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &checkpoint.Writer{Dir: t.TempDir(), Every: time.Hour, Signers: []note.Signer{k.signer}}
			w.View = func(_ context.Context, do func(checkpoint.Checkpoint, tlog.HashReader) error) error {
				c, err := checkpoint.Take(origin, m.size(), m)
				if err != nil {
					return err
				}
				return do(c, m)
			}
			check.NoError(t, os.WriteFile(filepath.Join(w.Dir, tt.file), tt.text, 0o600))
			if err := w.Write(t.Context()); (err == nil) != tt.ok {
				t.Errorf("Write() = %v, want ok %t", err, tt.ok)
			}
		})
	}
}
