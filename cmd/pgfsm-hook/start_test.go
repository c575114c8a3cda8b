package main_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgfsm/internal/test/check"
)

// maxSize bounds the program, in bytes.
const maxSize = 12e6

const call = `{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t"}`

// buildHook builds the program as it is released and returns its path, and the URL of a gateway
// that allows every call.
func buildHook(tb testing.TB) (program, url string) {
	tb.Helper()
	program = filepath.Join(tb.TempDir(), "pgfsm-hook")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if out, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, ".").CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"allowed":true}`)
	}))
	tb.Cleanup(server.Close)
	return program, server.URL
}

func askOnce(tb testing.TB, program, url string) {
	cmd := exec.Command(program, "claude", "--gateway", url)
	cmd.Env = append(os.Environ(), "PGFSM_HOOK_TOKEN=t")
	cmd.Stdin = bytes.NewReader([]byte(call))
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "{}\n" {
		tb.Fatalf("the hook printed %q, %v, want {}", out, err)
	}
}

// TestStartToAnswer starts the program as it is released: it answers, and it is small, because it
// is loaded for every call.
func TestStartToAnswer(t *testing.T) {
	program, url := buildHook(t)
	askOnce(t, program, url)
	info, err := os.Stat(program)
	check.NoError(t, err)
	if info.Size() > maxSize {
		t.Errorf("the program has %d bytes, want at most %d: it imports too much", info.Size(), int64(maxSize))
	}
}

// BenchmarkStartToAnswer measures the time from the start to the answer. On a machine that does
// nothing else, p95 should be at most 15 ms. The time depends on the machine, so no test checks it.
func BenchmarkStartToAnswer(b *testing.B) {
	program, url := buildHook(b)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		askOnce(b, program, url)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1e3, "p95-ms")
}
