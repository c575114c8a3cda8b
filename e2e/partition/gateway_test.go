//go:build linux

package partition_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pgfsm/internal/test/check"
)

// startWithin bounds how long a gateway may take to listen, on a machine that is busy with other things and with the database away.
const startWithin = 2 * time.Minute

// askWithin bounds one request: afterwards the client does not know what became of it.
const askWithin = 4 * time.Second

// A gateway is one of several processes of pgfsm serve. It is started again when it ends.
type gateway struct {
	t       *testing.T
	binary  string
	dir     string                    // has its configuration and its log
	on      atomic.Pointer[listening] // nil: it does not listen
	process *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	starts  int
	fenced  int // how often it ended by itself
}

// listening is where a gateway listens.
type listening struct{ mcp, admin string }

// start starts the process and waits until it listens or has ended.
func (g *gateway) start() {
	g.t.Helper()
	g.starts++
	log, err := os.OpenFile(filepath.Join(g.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	check.NoError(g.t, err)
	cmd := exec.Command(g.binary, "serve", "-c", filepath.Join(g.dir, "pgfsm.yaml"), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	cmd.Stderr, cmd.SysProcAttr = log, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	check.NoError(g.t, err)
	g.process, g.ended = cmd, make(chan struct{})
	started := make(chan error)
	go func(ended chan struct{}) { // the system ends the process with the thread that started it: this goroutine keeps its thread
		runtime.LockOSThread()
		defer close(ended)
		defer log.Close()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		in := bufio.NewScanner(out)
		var on listening
		for in.Scan() {
			switch kind, url, _ := strings.Cut(in.Text(), " "); kind {
			case "mcp":
				on.mcp = url
			case "admin":
				on.admin = url
				g.on.Store(&on)
			}
		}
		cmd.Wait() // how it ended is in its state
		g.on.Store(nil)
	}(g.ended)
	check.NoError(g.t, <-started)
}

// gone reports whether the process has ended.
func (g *gateway) gone() bool {
	select {
	case <-g.ended:
		return true
	default:
		return false
	}
}

// listens waits until the gateway listens. One that ends is started again: its lease may have been ended while it was stopped, or the database away.
func (g *gateway) listens() {
	g.t.Helper()
	for end := time.Now().Add(startWithin); g.on.Load() == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			g.t.Fatalf("%s does not listen\n%s", g.dir, g.lastLog())
		}
		g.supervise()
	}
}

// supervise starts the gateway again if it has ended by itself.
func (g *gateway) supervise() {
	g.t.Helper()
	if !g.gone() {
		return
	}
	if code := g.process.ProcessState.ExitCode(); code != exitCould {
		g.t.Errorf("%s ended by itself with code %d\n%s", g.dir, code, g.lastLog())
	}
	g.fenced++
	g.start()
}

// exitCould is the code with which pgfsm says that it could not go on.
const exitCould = 2

func (g *gateway) signal(s syscall.Signal) {
	if err := g.process.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		g.t.Error(err)
	}
}

// end ends the process with a signal, and waits.
func (g *gateway) end(s syscall.Signal) {
	g.t.Helper()
	g.signal(s)
	select {
	case <-g.ended:
	case <-time.After(startWithin):
		g.t.Errorf("%s does not end\n%s", g.dir, g.lastLog())
		g.signal(syscall.SIGKILL)
		<-g.ended
	}
}

func (g *gateway) log() string {
	text, err := os.ReadFile(filepath.Join(g.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// lastLog is the end of the gateway's log.
func (g *gateway) lastLog() string {
	text := g.log()
	return text[max(0, len(text)-4000):]
}

// An answer is what a client got. The zero answer is none: what became of the request is unknown.
type answer struct {
	status int // of HTTP
	body   []byte
}

// send makes a request. It goes on its own connection, as another client's would.
func send(ctx context.Context, method, url string, headers http.Header, body string) answer {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}
	}
	req.Header = headers
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}
	}
	return answer{resp.StatusCode, all}
}

// called is the answer to a tools/call.
type called struct {
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
	Result *struct {
		Meta struct {
			Decision struct {
				Code   string `json:"code"`
				Effect string `json:"effect"`
				RunID  string `json:"run_id"`
			} `json:"io.pgfsm/decision"`
		} `json:"_meta"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"result"`
}

// call calls a tool at a gateway, as a client of the revision without sessions.
func call(ctx context.Context, on *listening, token, tool, args string) (status int, got called) {
	const revision = "2026-07-28"
	headers := http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {revision},
		"Mcp-Method": {"tools/call"}, "Mcp-Name": {tool}, "Authorization": {"Bearer " + token},
	}
	a := send(ctx, http.MethodPost, on.mcp, headers, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{},`+
		`"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}}}`, tool, args, revision))
	body := a.body
	if at := bytes.LastIndex(body, []byte("data: {")); at >= 0 { // a stream: its last message
		body, _, _ = bytes.Cut(body[at+len("data: "):], []byte("\n"))
	}
	if json.Unmarshal(body, &got) != nil {
		return a.status, called{}
	}
	return a.status, got
}
