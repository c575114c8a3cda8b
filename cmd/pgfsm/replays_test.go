package main

import (
	"fmt"
	"strings"
	"testing"

	"pgfsm/internal/cli"
)

// replays wants every trace of a folder to replay alike, and this many of them.
func replays(t *testing.T, traces string, n int) {
	t.Helper()
	r := command(t.Context(), nil, "replay", traces)
	r.Want(t, cli.ExitYes)
	if want := fmt.Sprintf("%d replayed alike, 0 not", n); !strings.Contains(r.Stdout, want) {
		t.Errorf("replay says %q, want %q", r.Stdout, want)
	}
}
