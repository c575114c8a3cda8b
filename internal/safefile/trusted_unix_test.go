//go:build unix

package safefile_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pgfsm/internal/safefile"
	"pgfsm/internal/test/check"
)

// TestReadTrustedFolders shows that the folder of a file counts, and the folder of a link to it.
func TestReadTrustedFolders(t *testing.T) {
	dir := t.TempDir()
	ours, open := filepath.Join(dir, "ours"), filepath.Join(dir, "open")
	for _, folder := range []string{ours, open} {
		check.NoError(t, os.Mkdir(folder, 0o755))
		check.NoError(t, os.WriteFile(filepath.Join(folder, "file"), nil, 0o644))
	}
	check.NoError(t, os.Symlink("../ours/file", filepath.Join(open, "link")))
	check.NoError(t, os.Symlink("../open/file", filepath.Join(ours, "link")))
	check.NoError(t, os.Chmod(open, 0o777))
	for path, want := range map[string]string{
		"ours/file": "", "open/file": "chmod go-w " + open, "open/link": "chmod go-w " + open, "ours/link": "chmod go-w ",
	} {
		_, err := safefile.ReadTrusted(filepath.Join(dir, path))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("ReadTrusted(%s) = %v, want %q in it", path, err, want)
		}
	}
}

// TestReplaceKeepsTheGroup: a service that reads a file by its group can read the file's next version.
func TestReplaceKeepsTheGroup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	check.NoError(t, os.WriteFile(path, []byte("a"), 0o640))
	groups, err := os.Getgroups()
	check.NoError(t, err)
	want := os.Getgid()
	if os.Getuid() == 0 {
		want = 12345 // root may give a file to any group
	} else if len(groups) > 0 {
		want = groups[len(groups)-1]
	}
	check.NoError(t, os.Chown(path, -1, want))

	check.NoError(t, safefile.Replace(path, []byte("a"), []byte("b"), 0o600))
	info, err := os.Stat(path)
	check.NoError(t, err)
	if got := int(info.Sys().(*syscall.Stat_t).Gid); got != want || info.Mode().Perm() != 0o640 {
		t.Errorf("the group is %d and the mode %v, want %d and 0640", got, info.Mode().Perm(), want)
	}
}
