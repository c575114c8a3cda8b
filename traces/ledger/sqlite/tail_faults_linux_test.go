package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"pgfsm/traces/ledger/tail"
)

// TestTailUndecided: a commit that could neither be appended nor withdrawn may be there or not. Nothing more is committed until that is
// known, and then it is not there.
func TestTailUndecided(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := holder(t, path)
	keeps(t, s, 1, 3)
	mend := spoilWrites(t, path+tail.Suffix)
	for range 2 {
		refused(t, s.Update(t.Context(), adds("x", 4, 4, 8)), tail.ErrUndecided, path+tail.Suffix, "")
	}
	got, err := found(s)
	if diff := cmp.Diff(from(1, 3), got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	bothRead(t, crash(t, path), 1, 3)
	mend()
	s.tail.updating <- struct{}{} // as tick does when nothing is committed any more
	err = s.tail.letGo()
	<-s.tail.updating
	if err != nil {
		t.Fatal(err)
	}
	commits(t, s, 4, 5)
	bothRead(t, crash(t, path), 1, 5)
}

// TestTailThatCannotBegin: commits are written in the file, and the tail is left alone for longer than a moment.
func TestTailThatCannotBegin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := holder(t, path)
	mend := spoilWrites(t, path+tail.Suffix)
	begun := time.Now()
	commits(t, s, 1, 3)
	if again := s.tail.again.Sub(begun); again < afterFailing {
		t.Errorf("it is tried again after %v", again)
	}
	mend()
	if kept := s.Stats().Kept; kept != 0 {
		t.Errorf("%d commits were kept", kept)
	}
	bothRead(t, crash(t, path), 1, 3)
	s.tail.again = time.Time{}
	keeps(t, s, 4, 5)
	bothRead(t, crash(t, path), 1, 5)
}

// spoilWrites lets this process only read a file that it has open, until mend is called.
func spoilWrites(t *testing.T, path string) (mend func()) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	var spoiled []int
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if fd, numErr := strconv.Atoi(e.Name()); err == nil && numErr == nil && to == path {
			spoiled = append(spoiled, fd)
		}
	}
	if len(spoiled) == 0 {
		t.Fatalf("nobody has %s open", path)
	}
	put := func(flag int) {
		for _, fd := range spoiled {
			// The lock is let go of with it. Nobody else wants it here.
			f, err := unix.Open(path, flag|unix.O_CLOEXEC, 0)
			if err == nil {
				err = errors.Join(unix.Dup3(f, fd, unix.O_CLOEXEC), unix.Close(f))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	put(unix.O_RDONLY)
	return func() { put(unix.O_RDWR) }
}

// TestTailOfAnAuditor: a process that may not write the ledger cannot move left commits. It gets an error, and reads everything after another process has
// moved them, even without locks. It also needs to read the tail.
func TestTailOfAnAuditor(t *testing.T) {
	base := filepath.Join(t.TempDir(), "ledger.db")
	s := holder(t, base)
	keeps(t, s, 1, 3)
	tests := []struct {
		name string
		do   func(t *testing.T, path string) // with what was left
		says string                          // empty: everything is read
	}{
		{"left", func(*testing.T, string) {}, "a user who can write the ledger must open it first"},
		{"brought-in", func(t *testing.T, path string) { foundBy(t, openings[0].open, path) }, ""},
		{"not-to-read", func(t *testing.T, path string) {
			foundBy(t, openings[0].open, path)
			if err := os.Chmod(path+tail.Suffix, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "needs to read its tail"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := crash(t, base)
			mode := fs.FileMode(0o444)
			tt.do(t, path)
			names, err := filepath.Glob(path + "*")
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if tt.name == "not-to-read" && strings.HasSuffix(name, tail.Suffix) {
					continue
				}
				if err := os.Chmod(name, mode); err != nil {
					t.Fatal(err)
				}
			}
			for _, folder := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
				if err := os.Chmod(folder, 0o555); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.Chmod(folder, 0o700) })
			}
			asNobody(t, func() {
				r, err := OpenReadOnly(path)
				if err != nil {
					t.Error(err)
					return
				}
				defer r.Close()
				got, err := found(r)
				if tt.says != "" {
					if err == nil || !strings.Contains(err.Error(), path+tail.Suffix) || !strings.Contains(err.Error(), tt.says) {
						t.Errorf("View = %v, want an error with %q", err, tt.says)
					}
					return
				}
				if diff := cmp.Diff(from(1, 3), got); err != nil || diff != "" {
					t.Errorf("%v (-want +got):\n%s", err, diff)
				}
			})
		})
	}
}
