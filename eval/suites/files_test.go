package suites_test

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
)

// each calls do for every file of the suites that is no Go file.
func each(t *testing.T, do func(name string, text []byte)) {
	t.Helper()
	n := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || path.Ext(name) == ".go" {
			return err
		}
		text, err := fs.ReadFile(os.DirFS("."), name)
		n++
		do(name, text)
		return err
	})
	if err != nil || n < 50 {
		t.Fatalf("only %d files were looked at: %v", n, err)
	}
}

func TestFilesHideNothing(t *testing.T) {
	each(t, func(name string, text []byte) {
		for i, b := range text {
			if b >= 0x7f || b < ' ' && b != '\n' {
				t.Errorf("%s:%d holds the byte %#02x: write it as an escape", name, 1+bytes.Count(text[:i], []byte("\n")), b)
				return
			}
		}
	})
}

// TestFilesAreUsed finds variants that no case names any more.
func TestFilesAreUsed(t *testing.T) {
	text := map[string]string{} // by suite: its cases
	for _, suite := range table {
		name := suite.name
		lines, err := os.ReadFile(path.Join(name, "cases.jsonl"))
		check.NoError(t, err)
		text[name] = string(lines)
	}
	each(t, func(name string, _ []byte) {
		suite, inside, _ := strings.Cut(name, "/")
		if folder := path.Dir(inside); (folder == "tools" || folder == "grants") && !strings.Contains(text[suite], `"`+inside+`"`) {
			t.Errorf("no case of %s names %s", suite, inside)
		}
	})
}
