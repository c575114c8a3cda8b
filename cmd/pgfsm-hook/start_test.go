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
)

// aimP95 is the time from the start to the answer on a machine that does nothing else. A client
// starts the program for every call.
const aimP95 = 15 * time.Millisecond

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

// TestStartToAnswer logs the size of the program and how long it takes. The time depends on the
// machine, so only a time that no client could bear fails.
func TestStartToAnswer(t *testing.T) {
	program, url := buildHook(t)
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	starts := 200
	if testing.Short() {
		starts = 10
	}

	var took []time.Duration
	for range starts {
		began := time.Now()
		askOnce(t, program, url)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	p95 := took[len(took)*95/100]
	t.Logf("%.1f MB; start to answer of %d: p50 %s, p95 %s (aim: %s)", float64(info.Size())/1e6, starts,
		took[len(took)/2].Round(time.Microsecond), p95.Round(time.Microsecond), aimP95)
	if worst := 20 * aimP95; p95 > worst {
		t.Errorf("p95 is %s, want at most %s", p95, worst)
	}
	if info.Size() > 12e6 {
		t.Errorf("the program has %d bytes, want at most 12 MB: it imports too much", info.Size())
	}
}

func BenchmarkStartToAnswer(b *testing.B) {
	program, url := buildHook(b)
	for b.Loop() {
		askOnce(b, program, url)
	}
}
