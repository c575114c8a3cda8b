package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
)

// asNobody runs do as a user who owns nothing, where the test is run by root, whom no permission stops.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	if os.Getuid() != 0 {
		do()
		return
	}
	const nobody = 65534
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if _, err := unix.SetfsuidRetUid(nobody); err != nil {
			t.Error(err)
			return
		}
		do()
	}()
	<-done
}

// readable makes a ledger with an entry, and lets everybody read it, and the folders it is in.
func readable(t *testing.T, closed bool) string {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, "ledger.db")
	s, err := Open(path)
	check.NoError(t, err)
	check.NoError(t, s.Update(context.Background(), addEntry(1)))
	if closed {
		check.NoError(t, s.Close())
	} else {
		t.Cleanup(func() { s.Close() })
	}
	names, err := filepath.Glob(path + "*")
	check.NoError(t, err)
	for _, name := range append(names, folder, filepath.Dir(folder)) {
		info, err := os.Stat(name)
		check.NoError(t, err)
		mode := fs.FileMode(0o444)
		if info.IsDir() {
			mode = 0o555
			t.Cleanup(func() { os.Chmod(name, 0o700) })
		}
		check.NoError(t, os.Chmod(name, mode))
	}
	return path
}

func TestReadOnly(t *testing.T) {
	s := fresh(t)
	check.NoError(t, s.Update(context.Background(), addEntry(1)))
	r, err := OpenReadOnly(s.path)
	check.NoError(t, err)
	defer r.Close()
	check.NoError(t, s.Update(context.Background(), addEntry(2)))
	if n := entries(t, r); n != 2 {
		t.Errorf("%d entries, want 2: what is in the log only belongs to it", n)
	}
	refused(t, r.Update(context.Background(), addEntry(3)), ErrReadOnly, s.path, "read only")
	_, err = r.AcquireOwnership(context.Background(), "01890a5d-ac96-774b-bcce-b302099a8057")
	refused(t, err, ErrReadOnly, s.path, "read only")
	_, err = OpenReadOnly(filepath.Join(t.TempDir(), "none.db"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OpenReadOnly of nothing: %v", err)
	}
}

// TestOpenOfAFileThatMayOnlyBeRead: opening it to write fails at once, and not with the first record.
func TestOpenOfAFileThatMayOnlyBeRead(t *testing.T) {
	path := readable(t, true)
	if err := os.Chmod(filepath.Dir(path), 0o777); err != nil { // its log could be made
		t.Fatal(err)
	}
	asNobody(t, func() {
		s, err := Open(path)
		if err == nil {
			t.Error("Open() = nil", s.Close())
			return
		}
		refused(t, err, ErrReadOnly, path, "this user needs to write")
	})
}

// TestOpenBesideAWriter: another program's transaction keeps nobody from opening the ledger.
func TestOpenBesideAWriter(t *testing.T) {
	s := fresh(t)
	err := s.Update(t.Context(), func(ledger.Tx) error {
		beside, err := openWaiting(s.path, 1)
		if err != nil {
			return err
		}
		return beside.Close()
	})
	if err != nil {
		t.Error(err)
	}
}

// TestReadOnlyFiles: an auditor who may write neither the file nor its folder.
func TestReadOnlyFiles(t *testing.T) {
	for name, rests := range map[string]bool{"at-rest": true, "while-it-is-written": false} { // in any order
		t.Run(name, func(t *testing.T) {
			path := readable(t, rests)
			asNobody(t, func() {
				r, err := OpenReadOnly(path)
				if err != nil {
					t.Error(err)
					return
				}
				defer r.Close()
				if n := entries(t, r); n != 1 || (r.frozen != nil) != rests {
					t.Errorf("%d entries, want 1; without locks: %t", n, r.frozen != nil)
				}
			})
		})
	}
	t.Run("to-write", func(t *testing.T) {
		path := readable(t, true)
		asNobody(t, func() {
			_, err := Open(path)
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "this user needs to") {
				t.Errorf("Open to write: %v", err)
			}
		})
	})
	t.Run("a-folder-to-write", func(t *testing.T) {
		folder := filepath.Dir(readable(t, true))
		asNobody(t, func() {
			_, err := Open(filepath.Join(folder, "new.db"))
			refused(t, err, fs.ErrPermission, "new.db", "may this user write it")
		})
	})
}

// TestWrittenWhileReadWithoutLocks: what was read may be of two states, and is refused.
func TestWrittenWhileReadWithoutLocks(t *testing.T) {
	path := readable(t, true)
	asNobody(t, func() {
		r, err := OpenReadOnly(path)
		if err != nil {
			t.Error(err)
			return
		}
		defer r.Close()
		err = r.View(context.Background(), func(ledger.Reader) error {
			written := make(chan error)
			go func() { // on another thread, as who owns the file
				written <- errors.Join(os.Chmod(filepath.Dir(path), 0o755), os.WriteFile(path+"-wal", []byte("somebody began to write"), 0o600))
			}()
			return <-written
		})
		if err == nil || !strings.Contains(err.Error(), "was written while it was read") {
			t.Errorf("View = %v, want it to be refused", err)
		}
	})
}
