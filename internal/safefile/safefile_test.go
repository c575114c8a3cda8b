package safefile_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/safefile"
	"pgfsm/internal/test/check"
)

func TestCheckOwner(t *testing.T) {
	for _, c := range []struct {
		name  string
		mode  fs.FileMode
		owner int
		want  string // in the error; empty for none
	}{
		{"the-systems-own", 0o644, 0, ""},
		{"group-may-write", 0o620, 1000, "chmod go-w"},
		{"another-owner", 0o600, 1001, "chown"},
		{"no-owner", 0o600, -1, "chown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := safefile.CheckOwner(c.mode, c.owner, 1000)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("CheckOwner(%v, %d, 1000) = %v, want %q in it", c.mode, c.owner, err, c.want)
			}
		})
	}
}

func TestCheckFolder(t *testing.T) {
	for _, c := range []struct {
		name    string
		mode    fs.FileMode
		owner   int
		private bool
		want    string // in the error; empty for none
	}{
		{"ours-alone", 0o755, 1000, false, ""},
		{"the-systems-own", 0o755, 0, false, ""},
		{"private-group-may-write", 0o775, 1000, true, ""},
		{"sticky", 0o777 | fs.ModeSticky, 0, false, ""},
		{"group-may-write", 0o775, 1000, false, "chmod g-w"},
		{"world-may-write", 0o757, 1000, true, "chmod go-w"},
		{"another-owner", 0o755, 1001, true, "chown 1000"},
		{"another-owner-and-sticky", 0o777 | fs.ModeSticky, 1001, true, "chown 1000"},
		{"no-owner", 0o755, -1, false, "chown 1000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := safefile.CheckFolder(c.mode, c.owner, 1000, c.private)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("CheckFolder(%v, %d, 1000, %v) = %v, want %q in it", c.mode, c.owner, c.private, err, c.want)
			}
		})
	}
}

// TestReplace shows that a file is replaced only if it still has the content that was read, and that nothing is left beside it.
func TestReplace(t *testing.T) {
	for _, c := range []struct {
		name      string
		file, was string // "-": no file
		size      int    // of the new content
		want      string // in the error; empty for none
	}{
		{"unchanged", "old", "old", 3, ""},
		{"empty-file", "", "", 3, ""},
		{"new-file", "-", "-", 3, ""},
		{"changed", "other", "old", 3, "is no longer what was read"},
		{"removed", "-", "old", 3, "is no longer what was read"},
		{"created-meanwhile", "other", "-", 3, "is no longer what was read"},
		{"created-meanwhile-and-empty", "", "-", 3, "is no longer what was read"},
		{"at-the-limit", "old", "old", safefile.MaxBytes, ""},
		{"one-past", "old", "old", safefile.MaxBytes + 1, "at most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "link.json")
			if c.file != "-" {
				check.NoError(t, os.WriteFile(path, []byte(c.file), 0o640))
				check.NoError(t, os.Symlink("real.json", link))
				path = link
			}
			var was []byte
			if c.was != "-" {
				was = []byte(c.was)
			}
			err := safefile.Replace(path, was, make([]byte, c.size), 0o600)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("Replace() = %v, want %q in it", err, c.want)
			}
			if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %q, %v", left, err)
			}
			text, info, err := safefile.Read(path)
			switch {
			case c.want != "" && c.file == "-":
				return
			case err != nil:
				t.Fatal(err)
			case c.want == "" && len(text) != c.size, c.want != "" && string(text) != c.file:
				t.Errorf("Read() has %d bytes", len(text))
			}
			mode := fs.FileMode(0o600)
			if c.file != "-" {
				mode = 0o640
				if now, err := os.Lstat(link); err != nil || now.Mode().Type() != fs.ModeSymlink {
					t.Errorf("the link became %v, %v", now, err)
				}
			}
			if info.Mode() != mode {
				t.Errorf("mode = %v, want %v", info.Mode(), mode)
			}
		})
	}
}
