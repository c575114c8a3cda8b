package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/mcp/demo"
)

// command runs the command in this process.
func command(ctx context.Context, env map[string]string, args ...string) clitest.Result {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, world{
		stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr,
		getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	})
	return clitest.Result{Code: code, Stdout: stdout.String(), Stderr: stderr.String()}
}

// demoFleet starts the demo servers in this process.
func demoFleet(t *testing.T) *demo.Fleet {
	t.Helper()
	fleet, err := demo.Listen(context.Background(), slices.Repeat([]string{"127.0.0.1:0"}, 3))
	check.NoError(t, err)
	t.Cleanup(func() {
		if err := fleet.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return fleet
}

// calls counts the tools/call that reached a fleet.
func calls(f *demo.Fleet) (n int) {
	for _, s := range f.Servers() {
		n += len(s.Calls())
	}
	return n
}
