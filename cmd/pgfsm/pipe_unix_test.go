//go:build unix

package main

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pgfsm/internal/cli"
	"pgfsm/internal/test/check"
)

// TestConfigurationThatIsAPipe: nobody waits for what is written to it.
func TestConfigurationThatIsAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pgfsm.yaml")
	check.NoError(t, syscall.Mkfifo(path, 0o600))
	r := command(t.Context(), nil, "config", "check", "-c", path)
	r.Want(t, cli.ExitFailed)
	if !strings.Contains(r.Stderr, "not a regular file") {
		t.Errorf("stderr = %q, want it to say what the file is", r.Stderr)
	}
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

// TestLostOutputIsNotAYes: what cannot be written was not said. A reader who left is their own choice.
func TestLostOutputIsNotAYes(t *testing.T) {
	full := errors.New("no space left on device")
	for _, args := range [][]string{{"verify"}, {"verify", "--json"}, {"version"}, {"graph"}, {"config", "check"}, {"tools"}} {
		for _, tc := range []struct {
			err  error
			code int
		}{{full, cli.ExitFailed}, {syscall.EPIPE, cli.ExitYes}} {
			var stderr strings.Builder
			code := run(t.Context(), args, world{
				stdin: strings.NewReader(""), stdout: failingWriter{tc.err}, stderr: io.Writer(&stderr),
				getenv: func(string) (string, bool) { return "", false },
			})
			if code != tc.code || (stderr.Len() > 0) != (tc.code != cli.ExitYes) {
				t.Errorf("%v with output that fails with %v: exit code %d, stderr %q; want %d", args, tc.err, code, stderr.String(), tc.code)
			}
		}
	}
}
