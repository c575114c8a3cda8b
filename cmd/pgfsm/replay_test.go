package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/cli"
	"pgfsm/internal/test/check"
)

// TestReplaySaysWhatAFileIs: a damaged trace of a folder is named whatever its name is, and the error says what a file is.
func TestReplaySaysWhatAFileIs(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile(filepath.FromSlash("../../traces/testdata/good/document-fetched.json"))
	check.NoError(t, err)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(good); err != nil {
		t.Fatal(err)
	}
	check.NoError(t, z.Close())
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	check.NoError(t, os.WriteFile(policy, []byte("version: 1\npolicies: [{id: all, effect: allow}]\n"), 0o600))
	for _, tt := range []struct {
		name, doc, want string
		found           bool // in a folder
	}{
		{"mark", "\ufeff" + string(good), "not JSON: it begins with a byte order mark", true},
		{"cut", string(good[:len(good)-100]), "it ends too early", true},
		{"cut-in-the-bundle", "\n " + string(good[:200]), "it ends too early", true},
		{"broken", `{"bundle":{"content":nothing}`, "not JSON: ", true},
		{"gzip", packed.String(), "it is compressed with gzip", false},
		{"other", `{"format":"other/v1"}`, `its format is "other/v1"`, false},
		{"none", `{}`, "it names no format", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, tt.name+".json")
			check.NoError(t, os.WriteFile(file, []byte(tt.doc), 0o600))
			r := command(t.Context(), nil, "replay", file)
			if r.Code != cli.ExitFailed || !strings.Contains(r.Stdout, "not a trace: "+tt.want) || strings.Contains(r.Stdout, "ledger") {
				t.Errorf("replay FILE = %d, %s%s; want %d and %q", r.Code, r.Stdout, r.Stderr, cli.ExitFailed, tt.want)
			}
			want := map[bool]string{true: tt.want, false: "holds no trace"}[tt.found]
			for _, args := range [][]string{{"replay", dir},
				{"policy", "diff", "--traces", dir, policy, policy}} {
				r := command(t.Context(), nil, args...)
				if r.Code != cli.ExitFailed || !strings.Contains(r.Stdout+r.Stderr, want) {
					t.Errorf("%q = %d, %s%s; want %d and %q", args, r.Code, r.Stdout, r.Stderr, cli.ExitFailed, want)
				}
			}
		})
	}
}
