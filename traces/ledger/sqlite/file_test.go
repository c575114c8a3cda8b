package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"

	"pgfsm/internal/safefile"
	"pgfsm/internal/test/check"
)

func TestFilesAreForTheirUserOnly(t *testing.T) {
	s := fresh(t)
	if _, err := s.AcquireOwnership(context.Background(), "01890a5d-ac96-774b-bcce-b302099a8057"); err != nil {
		t.Fatal(err)
	}
	check.NoError(t, s.Update(context.Background(), addEntry(1)))
	for name, want := range map[string]os.FileMode{ // in any order
		s.path: fileMode, s.path + "-wal": fileMode, s.path + "-shm": fileMode, s.path + ".owners": folderMode,
		s.path + ".owners/01890a5d-ac96-774b-bcce-b302099a8057.lock": fileMode,
	} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
}

func TestFilesThatCannotBeTrusted(t *testing.T) {
	for _, tc := range []struct {
		name   string
		make   func(path string) error
		want   error
		remedy string
	}{
		{"a-folder", func(path string) error { return os.Mkdir(path, 0o700) }, ErrUnsafeFile, "name the file itself"},
		{"a-link", func(path string) error { return os.Symlink(filepath.Join(filepath.Dir(path), "real.db"), path) }, ErrUnsafeFile, "name the file itself"},
		{"a-link-to-nothing", func(path string) error { return os.Symlink("nothing.db", path) }, ErrUnsafeFile, "name the file itself"},
		{"two-names", func(path string) error { return os.Link(filepath.Join(filepath.Dir(path), "real.db"), path) }, ErrUnsafeFile, "hard link"},
		{"others-may-write", func(path string) error { return write(path, 0o602) }, ErrUnsafeFile, "chmod go-w"},
		{"a-group-may-write", func(path string) error { return write(path, 0o620) }, ErrUnsafeFile, "chmod go-w"},
		{"others-may-read", func(path string) error { return write(path, 0o644) }, nil, ""},
		{"owners-are-a-link", func(path string) error { return os.Symlink(t.TempDir(), path+ownersSuffix) }, ErrUnsafeFile, "remove it"},
		{"owners-are-a-file", func(path string) error { return write(path+ownersSuffix, 0o600) }, ErrUnsafeFile, "remove it"},
		{"others-may-make-owners", func(path string) error {
			if err := os.Mkdir(path+ownersSuffix, 0o700); err != nil {
				return err
			}
			return os.Chmod(path+ownersSuffix, 0o702)
		}, ErrUnsafeFile, "chmod go-w"},
		{"no-folder", func(path string) error { return os.Remove(filepath.Join(filepath.Dir(path), "real.db")) }, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "ledger.db")
			check.NoError(t, write(filepath.Join(folder, "real.db"), 0o600))
			check.NoError(t, tc.make(path))
			s, err := Open(path)
			if tc.want == nil {
				check.NoError(t, err)
				s.Close()
				return
			}
			refused(t, err, tc.want, path, tc.remedy)
		})
	}
}

func write(path string, mode os.FileMode) error {
	if err := os.WriteFile(path, nil, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

func TestFolderIsMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "ledger.db")
	_, err := Open(path)
	refused(t, err, os.ErrNotExist, path, "folder must be there")
	_, err = Open("")
	refused(t, err, ErrUnsafeFile, "", "sqlite:pgfsm.db")
}

// TestOneName: a link in the folder's path does not give the file a second name, and so its owners a second folder.
func TestOneName(t *testing.T) {
	folder := t.TempDir()
	check.NoError(t, os.Mkdir(filepath.Join(folder, "real"), 0o700))
	check.NoError(t, os.Symlink("real", filepath.Join(folder, "link")))
	a, err := Open(filepath.Join(folder, "real", "ledger.db"))
	check.NoError(t, err)
	defer a.Close()
	b, err := Open(filepath.Join(folder, "link", "ledger.db"))
	check.NoError(t, err)
	defer b.Close()
	if a.Path() != b.Path() {
		t.Errorf("%s has the second name %s", a.Path(), b.Path())
	}
	const owner = "01890a5d-ac96-774b-bcce-b302099a8057"
	if _, err := a.AcquireOwnership(context.Background(), owner); err != nil {
		t.Fatal(err)
	}
	if gone, err := b.OwnerGone(context.Background(), owner); gone || err != nil {
		t.Errorf("Gone = %t, %v: it is alive under the other name", gone, err)
	}
}

// TestNamesThatMeanSomethingInAnAddress are names of files, and nothing else.
func TestNamesThatMeanSomethingInAnAddress(t *testing.T) {
	for _, name := range []string{"a?mode=memory&x=.db", "100%41.db", "a#b.db", "file:x.db", ":memory:", "ž d.db", "a+b.db", "-"} {
		path := filepath.Join(t.TempDir(), name)
		s, err := Open(path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := s.Update(context.Background(), addEntry(1)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(path + "-wal"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r, err := OpenReadOnly(path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if n := entries(t, r); n != 1 {
			t.Errorf("%s: %d entries, want 1", name, n)
		}
		r.Close()
	}
}

// TestOwnersLeaveNoFiles: neither those that end nor those that are found gone.
func TestOwnersLeaveNoFiles(t *testing.T) {
	s := fresh(t)
	const ended, killed = "01890a5d-ac96-774b-bcce-b302099a8057", "01890a5d-ac96-774b-bcce-b302099a8058"
	release, err := s.AcquireOwnership(context.Background(), ended)
	check.NoError(t, err)
	check.NoError(t, release())
	left := s.path + ownersSuffix + "/" + killed + lockSuffix
	if err := write(left, 0o600); err != nil { // nobody holds it
		t.Fatal(err)
	}
	reader, err := OpenReadOnly(s.path)
	check.NoError(t, err)
	defer reader.Close()
	if gone, err := reader.OwnerGone(context.Background(), killed); !gone || err != nil {
		t.Errorf("Gone = %t, %v", gone, err)
	}
	if _, err := os.Stat(left); err != nil {
		t.Errorf("who only reads has removed a file: %v", err)
	}
	asking := flock.New(left) // another process that asks at this moment
	if ok, err := asking.TryRLock(); !ok || err != nil {
		t.Fatal(err)
	}
	defer asking.Close()
	if gone, err := s.OwnerGone(context.Background(), killed); !gone || err != nil {
		t.Errorf("Gone = %t, %v, while somebody else asks", gone, err)
	}
	files, err := filepath.Glob(s.path + ownersSuffix + "/*")
	if err != nil || len(files) != 1 || filepath.Base(files[0]) != schemaLock {
		t.Errorf("left over: %v, %v", files, err)
	}
}

// TestOwnWhileItsFileIsRemoved: a lock on a file that has no name any more is none.
func TestOwnWhileItsFileIsRemoved(t *testing.T) {
	const owner = "01890a5d-ac96-774b-bcce-b302099a8057"
	s := fresh(t)
	file, err := s.lockFile(owner, true)
	check.NoError(t, err)
	check.NoError(t, write(file, 0o600))
	lock := flock.New(file)
	if ok, err := lock.TryLock(); !ok || err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if !safefile.IsCurrent(lock, file) {
		t.Error("the file of the lock stands")
	}
	check.NoError(t, os.Remove(file))
	if safefile.IsCurrent(lock, file) {
		t.Error("the file of the lock has no name any more")
	}
	check.NoError(t, write(file, 0o600))
	if safefile.IsCurrent(lock, file) {
		t.Error("another file has the name of the lock's")
	}
}
