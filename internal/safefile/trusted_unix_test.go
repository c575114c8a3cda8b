//go:build unix

package safefile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/safefile"
)

// TestReadTrustedFolders shows that the folder of a file counts, and the folder of a link to it.
func TestReadTrustedFolders(t *testing.T) {
	dir := t.TempDir()
	ours, open := filepath.Join(dir, "ours"), filepath.Join(dir, "open")
	for _, folder := range []string{ours, open} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "file"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../ours/file", filepath.Join(open, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../open/file", filepath.Join(ours, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"ours/file": "", "open/file": "chmod go-w " + open, "open/link": "chmod go-w " + open, "ours/link": "chmod go-w ",
	} {
		_, err := safefile.ReadTrusted(filepath.Join(dir, path))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("ReadTrusted(%s) = %v, want %q in it", path, err, want)
		}
	}
}
