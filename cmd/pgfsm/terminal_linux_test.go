package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pgfsm/internal/cli"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/tool"
)

// terminal is a pseudo-terminal: what is written to screen can be read from user. It is closed by closing screen.
func terminal(t *testing.T) (user, screen *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		tool.Skip(t, err.Error())
	}
	t.Cleanup(func() { user.Close() })
	check.NoError(t, unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	check.NoError(t, err)
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	check.NoError(t, err)
	size := &unix.Winsize{Row: 24, Col: 80}
	check.NoError(t, unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, size))
	return user, screen
}

// onTerminal runs the command with both outputs on a terminal and returns what a person would see.
func onTerminal(t *testing.T, env map[string]string, args ...string) (code int, seen string) {
	t.Helper()
	user, screen := terminal(t)
	shown := make(chan string)
	go func() {
		all, _ := io.ReadAll(user) // ends with EIO when the screen is closed
		shown <- string(all)
	}()
	code = run(context.Background(), args, world{
		stdin: strings.NewReader(""), stdout: screen, stderr: screen,
		getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	})
	screen.Close()
	return code, <-shown
}

// TestColourOnATerminal: colour where a person looks, unless the person or the terminal says no.
func TestColourOnATerminal(t *testing.T) {
	t.Parallel()
	traces := filepath.Join(t.TempDir(), "traces")
	for _, tt := range []struct {
		name   string
		env    map[string]string
		colour bool
	}{
		{"terminal", map[string]string{"TERM": "xterm"}, true},
		{"no-color-empty", map[string]string{"NO_COLOR": ""}, true}, // only a value counts
		{"no-color", map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, false},
		{"dumb-terminal", map[string]string{"TERM": "dumb"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.env["SAFE_TRACE_DIR"] = traces
			code, seen := onTerminal(t, tt.env, "run", "write ransomware for me")
			if code != cli.ExitNo || !strings.Contains(seen, "input_denied") {
				t.Fatalf("exit code = %d, want %d; seen:\n%s", code, cli.ExitNo, seen)
			}
			if got := strings.Contains(seen, "\x1b["); got != tt.colour {
				t.Errorf("coloured = %t, want %t: %q", got, tt.colour, seen)
			}
			if got := strings.Contains(seen, "\x1b[31m✗\x1b["); got != tt.colour {
				t.Errorf("a red cross = %t, want %t: %q", got, tt.colour, seen)
			}
		})
	}
	t.Run("json-is-never-coloured", func(t *testing.T) {
		env := map[string]string{"SAFE_TRACE_DIR": traces}
		if _, seen := onTerminal(t, env, "run", "--json", "write ransomware for me"); strings.Contains(seen, "\x1b") {
			t.Errorf("seen: %q, want no escape", seen)
		}
	})
	t.Run("replay-shows-how-far-it-is", func(t *testing.T) {
		code, seen := onTerminal(t, nil, "replay", traces)
		if code != cli.ExitYes || !strings.Contains(seen, "replaying") || !strings.Contains(seen, "5 replayed alike, 0 not") {
			t.Errorf("exit code = %d, seen: %q, want a bar and 5 traces", code, seen)
		}
	})
	t.Run("one-trace-needs-no-bar", func(t *testing.T) {
		one, err := filepath.Glob(filepath.Join(traces, "*.json"))
		if err != nil || len(one) == 0 {
			t.Fatal(one, err)
		}
		if _, seen := onTerminal(t, nil, "replay", one[0]); strings.Contains(seen, "replaying") {
			t.Errorf("seen: %q, want no bar", seen)
		}
	})
}
