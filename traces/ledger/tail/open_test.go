package tail

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestOpen(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger.db")
	for _, o := range []Options{{}, {ReadOnly: true}, {ReadOnly: true, Create: true}} {
		if _, err := Open(ledger, o); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v: %v, want fs.ErrNotExist", o, err)
		}
	}
	if files, err := filepath.Glob(ledger + "*"); err != nil || files != nil {
		t.Errorf("%v, %v: something was made", files, err)
	}
	f := in(t, ledger, Options{Create: true})
	for _, name := range []string{ledger + "-tail", ledger + "-tail-bell"} {
		info, err := os.Lstat(name)
		if err != nil || info.Mode() != 0o600 || info.Size() != 0 {
			t.Errorf("%s: %v, %v, %d bytes, want an empty one of mode 0600", name, info.Mode(), err, info.Size())
		}
	}
	if f.capacity != Capacity {
		t.Errorf("its capacity is %d, want %d", f.capacity, Capacity)
	}
	begin(t, f, "one")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, "opened to be made where one is", []string{"0 one"}, left(t, in(t, ledger, Options{Create: true})))
}

func TestFilesThatCannotBeTrusted(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func(path string) error
		want error
	}{
		{"a-plain-file", func(path string) error { return written(path, 0o600) }, nil},
		{"others-may-read", func(path string) error { return written(path, 0o644) }, nil},
		{"others-may-write", func(path string) error { return written(path, 0o602) }, ErrUnsafe},
		{"a-group-may-write", func(path string) error { return written(path, 0o620) }, ErrUnsafe},
		{"a-folder", func(path string) error { return os.Mkdir(path, 0o700) }, ErrUnsafe},
		{"a-link", func(path string) error { return os.Symlink("real", path) }, ErrUnsafe},
		{"a-link-to-nothing", func(path string) error { return os.Symlink("nothing", path) }, ErrUnsafe},
		{"two-names", func(path string) error { return os.Link(filepath.Join(filepath.Dir(path), "real"), path) }, ErrUnsafe},
	} {
		for _, suffix := range []string{Suffix, Suffix + bellSuffix} {
			t.Run(tc.name+suffix, func(t *testing.T) {
				folder := t.TempDir()
				ledger := filepath.Join(folder, "ledger.db")
				if err := errors.Join(written(filepath.Join(folder, "real"), 0o600), tc.make(ledger+suffix)); err != nil {
					t.Fatal(err)
				}
				f, err := Open(ledger, Options{Create: true})
				if !errors.Is(err, tc.want) {
					t.Fatalf("Open = %v, want %v", err, tc.want)
				}
				if err == nil {
					f.Close()
				}
				if _, err := os.Lstat(filepath.Join(folder, "nothing")); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%v: something was made behind a link", err)
				}
				if suffix == Suffix && tc.want != nil {
					for _, o := range []Options{{}, {ReadOnly: true}} {
						if _, err := Open(ledger, o); !errors.Is(err, tc.want) {
							t.Errorf("Open with %+v = %v, want %v", o, err, tc.want)
						}
					}
				}
			})
		}
	}
}

func written(path string, mode os.FileMode) error {
	if err := os.WriteFile(path, nil, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// TestMoved: a path that leads to another file is noticed, and a lock of that is none.
func TestMoved(t *testing.T) {
	for _, tc := range []struct {
		name string
		move func(path string) error
	}{
		{"moved-away", func(path string) error { return os.Rename(path, path+".old") }},
		{"replaced", func(path string) error { return errors.Join(os.Rename(path, path+".old"), written(path, 0o600)) }},
		{"behind-a-link", func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.Symlink(path+".old", path))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, ledger := fresh(t, room)
			if err := f.Same(); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(f.Unlock(), tc.move(ledger+Suffix)); err != nil {
				t.Fatal(err)
			}
			if err := f.Same(); !errors.Is(err, errMoved) {
				t.Errorf("Same = %v, want that it was moved", err)
			}
			if tc.name == "behind-a-link" {
				return // it is the same file, so the lock of this name is the lock of this file
			}
			for _, try := range []func() (bool, error){f.TryShared, f.TryExclusive} {
				if ok, err := try(); ok || err == nil {
					t.Errorf("the lock: %t, %v, want an error", ok, err)
				}
			}
			if _, err := f.Pending(); !errors.Is(err, ErrBusy) {
				t.Errorf("Pending = %v, want ErrBusy", err)
			}
			if tc.name == "replaced" { // nobody holds the other file's lock
				other := in(t, ledger, Options{})
				pends(t, other, false)
			}
		})
	}
}

// TestFolderThatIsOnlyRead: what is there can be locked and read, and nothing is made.
func TestFolderThatIsOnlyRead(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write it all the same")
	}
	f, ledger := fresh(t, room)
	begin(t, f, "one")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(ledger+Suffix+bellSuffix), os.Chmod(filepath.Dir(ledger), 0o500)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(filepath.Dir(ledger), 0o700) })
	f = in(t, ledger, Options{ReadOnly: true, capacity: room})
	pends(t, f, true)
	same(t, "in a folder that is only read", []string{"0 one"}, left(t, f))
	if stop, ok := f.Ring(); ok {
		t.Error("a bell was made, or rings without a file")
	} else {
		stop()
	}
	if _, err := Open(ledger+"2", Options{Create: true}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Open = %v, want fs.ErrPermission", err)
	}
}

// TestModeOfTheLedger: who may read a ledger may read its tail, and nobody else may write it.
func TestModeOfTheLedger(t *testing.T) {
	for _, tt := range []struct {
		name         string
		ledger, want os.FileMode
	}{
		{"mine-alone", 0o600, 0o600},
		{"a-group-reads", 0o640, 0o640},
		{"all-read", 0o644, 0o644},
		{"a-group-writes", 0o660, 0o640},
		{"read-only", 0o440, 0o640},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ledger := filepath.Join(t.TempDir(), "ledger.db")
			if err := errors.Join(os.WriteFile(ledger, nil, 0o600), os.Chmod(ledger, tt.ledger)); err != nil {
				t.Fatal(err)
			}
			f, err := Open(ledger, Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, name := range []string{ledger + Suffix, ledger + Suffix + bellSuffix} {
				info, err := os.Stat(name)
				if err != nil {
					t.Fatal(err)
				}
				if got := info.Mode().Perm(); got != tt.want && runtime.GOOS != "windows" {
					t.Errorf("%s has mode %s, want %s", filepath.Base(name), got, tt.want)
				}
			}
		})
	}
}
