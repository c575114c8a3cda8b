package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/golden"
)

// archive opens the files of a txtar archive.
func archive(a *txtar.Archive) Open {
	return func(path string) ([]byte, error) {
		for _, f := range a.Files {
			if f.Name == path {
				return f.Data, nil
			}
		}
		return nil, fs.ErrNotExist
	}
}

// leaked is the text of secrets in the bad files: no message may contain it.
const leaked = "sk-live"

// TestBadFiles holds every message to the one that is kept: each file's place, text, source line and remedy.
func TestBadFiles(t *testing.T) {
	names, err := filepath.Glob("testdata/bad/*.txtar")
	if err != nil || len(names) < 40 {
		t.Fatalf("%d bad files (%v), want at least 40", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			check.NoError(t, err)
			loaded, err := Load("pgfsm.yaml", archive(a), Overrides{})
			if err == nil {
				t.Fatalf("Load accepted it: %+v", loaded)
			}
			got := err.Error() + "\n"
			if strings.Contains(got, leaked) {
				t.Errorf("the message shows a secret:\n%s", got)
			}
			want := &a.Files[len(a.Files)-1]
			if golden.Updating() {
				want.Data = []byte(got)
				check.NoError(t, os.WriteFile(name, txtar.Format(a), 0o644))
			}
			if want.Name != "want" {
				t.Fatalf("the last file is %q, want %q", want.Name, "want")
			}
			if diff := cmp.Diff(string(want.Data), got); diff != "" {
				t.Errorf("Load (-want +got):\n%s", diff)
			}
		})
	}
}
