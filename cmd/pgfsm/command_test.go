package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgfsm/mcp/toy"
)

// ran is what came of one run of the command.
type ran struct {
	code           int
	stdout, stderr string
}

// command runs the command in this process.
func command(ctx context.Context, env map[string]string, args ...string) ran {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, world{
		stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr,
		getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	})
	return ran{code, stdout.String(), stderr.String()}
}

// member returns what stands at a JSON pointer of standard output, "" if nothing does.
func (r ran) member(pointer string) string {
	v, err := at([]byte(r.stdout), pointer)
	if err != nil {
		return ""
	}
	return strings.Trim(string(v), `"`)
}

// want holds a run to its exit code and to some members of its document.
func (r ran) want(t *testing.T, code int, members ...string) {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code = %d, want %d\nstdout: %s\nstderr: %s", r.code, code, r.stdout, r.stderr)
	}
	for i := 0; i+1 < len(members); i += 2 {
		if got := r.member(members[i]); got != members[i+1] {
			t.Errorf("%s = %q, want %q\nstdout: %s", members[i], got, members[i+1], r.stdout)
		}
	}
}

// child makes the command as a process of its own, under another name if it is to be confined.
func child(ctx context.Context, name string, env []string, args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	return cmd, &stdout, &stderr
}

// folder makes a folder with files, given by name and text.
func folder(t testing.TB, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i+1 < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, files[i+1])
	}
	return dir
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// files lists everything below a folder, each with its size and mode.
func files(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			list = append(list, fmt.Sprintf("%s %d %s %s", path, info.Size(), info.Mode(), info.ModTime()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// demoFleet starts the demo servers in this process.
func demoFleet(t *testing.T) *toy.Fleet {
	t.Helper()
	fleet, err := toy.Listen(context.Background(), slices.Repeat([]string{"127.0.0.1:0"}, 3))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fleet.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return fleet
}

// calls counts the tools/call that reached a fleet.
func calls(f *toy.Fleet) (n int) {
	for _, s := range f.Servers() {
		n += len(s.Calls())
	}
	return n
}

// A puppet is an MCP server over streamable HTTP that does what a test wants it to: answer gives the result of a
// method, "" hangs until the client has gone.
type puppet struct {
	*httptest.Server
	answer func(method string) string
	came   chan string // the methods that came; nobody has to listen

	gone chan struct{}
}

const (
	hello   = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"puppet","version":"1"}}`
	oneTool = `{"tools":[{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`
	oneText = `{"content":[{"type":"text","text":"hi"}]}`
)

// honest answers as a server with one tool.
func honest(method string) string {
	return map[string]string{"initialize": hello, "tools/list": oneTool, "tools/call": oneText}[method]
}

// but is honest but for one method.
func but(method, result string) func(string) string {
	return func(m string) string {
		if m == method {
			return result
		}
		return honest(m)
	}
}

func newPuppet(t *testing.T, answer func(method string) string) *puppet {
	t.Helper()
	p := &puppet{answer: answer, came: make(chan string, 100), gone: make(chan struct{})}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Server.Close)
	t.Cleanup(sync.OnceFunc(func() { close(p.gone) }))
	return p
}

func (p *puppet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	method, _ := at(body, "/method")
	name := strings.Trim(string(method), `"`)
	id, err := at(body, "/id")
	if err != nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	known := honest(name) != ""
	if known {
		select {
		case p.came <- name:
		default:
		}
	}
	w.Header().Set("Content-Type", "application/json")
	switch result := p.answer(name); {
	case !known:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`, id)
	case result == "":
		select {
		case <-r.Context().Done():
		case <-p.gone:
		}
	default:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
	}
}

// await waits until a method has come.
func (p *puppet) await(t *testing.T, method string) {
	t.Helper()
	for {
		select {
		case got := <-p.came:
			if got == method {
				return
			}
		case <-t.Context().Done():
			t.Fatalf("%s never came", method)
		}
	}
}

// skip skips a test for what the machine lacks, but never in CI: there a check that is not made is a check that failed.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// patience is far more than any fault that is configured may take.
const patience = time.Minute

// patient is a context that is cancelled, not timed out, when a run takes longer than a fault may: it then ends with
// another code than any that a fault is expected to end with.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(patience, cancel)
	t.Cleanup(func() { timer.Stop(); cancel() })
	return ctx
}
