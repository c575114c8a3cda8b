// Package golden compares what tests make with files that were looked at. With -update it writes the files.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
)

var update = flag.Bool("update", false, "write the files that tests compare with")

// Updating reports whether files are to be written.
func Updating() bool { return *update }

// File compares a file with the generated content.
func File[T ~string | ~[]byte](tb testing.TB, path string, made T) {
	tb.Helper()
	if *update {
		check.NoError(tb, os.MkdirAll(filepath.Dir(path), 0o755))
		check.NoError(tb, os.WriteFile(path, []byte(made), 0o644))
	}
	text, err := os.ReadFile(path)
	check.NoError(tb, err)
	if diff := cmp.Diff(string(text), string(made)); diff != "" {
		tb.Errorf("%s is not what was made; look at it, then run with -update (-file +made):\n%s", path, diff)
	}
}

// Section compares the part of a page between two marks with the generated content.
func Section(tb testing.TB, path, begin, end, made string) {
	tb.Helper()
	text, err := os.ReadFile(path)
	check.NoError(tb, err)
	before, rest, begun := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		tb.Fatalf("%s has no part between %q and %q", path, begin, end)
	}
	File(tb, path, before+begin+made+end+after)
}
