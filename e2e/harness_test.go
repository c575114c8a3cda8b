package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/mcp/gateway"
)

// A served gateway is a process of pgfsm serve.
type served struct {
	t          *testing.T
	cmd        *exec.Cmd
	mcp, admin string
	base       string // of mcp, without a path
	dir        string
	config     string
	stderr     *lines
	announced  string // the first line
}

// lines collects what a process says.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// serve starts the gateway of a folder's pgfsm.yaml and waits until it listens.
func serve(t *testing.T, dir string, args ...string) *served {
	t.Helper()
	return start(t, dir, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
}

// start starts a command that serves and waits until it has named its admin address.
func start(t *testing.T, dir string, args ...string) *served {
	t.Helper()
	return startWith(t, dir, nil, args...)
}

// startWith is start with variables of the environment.
func startWith(t *testing.T, dir string, env []string, args ...string) *served {
	t.Helper()
	s := &served{t: t, dir: dir, config: filepath.Join(dir, "pgfsm.yaml"), stderr: new(lines)}
	if !slices.Contains(args, "--admin") {
		args = append(args, "--admin", "127.0.0.1:0")
	}
	s.cmd, _, _ = child(context.Background(), "pgfsm", env, append(args, "-c", s.config)...)
	s.cmd.Stdout, s.cmd.Stderr, s.cmd.Dir = nil, s.stderr, dir
	out, err := s.cmd.StdoutPipe()
	check.NoError(t, err)
	check.NoError(t, s.cmd.Start())
	t.Cleanup(s.kill)
	in := bufio.NewScanner(out)
	for in.Scan() {
		s.announced = cmp.Or(s.announced, in.Text())
		kind, u, _ := strings.Cut(in.Text(), " ")
		_, listening, public := strings.Cut(in.Text(), ", listening on ")
		if public {
			u = listening
		}
		switch kind {
		case "mcp":
			s.base = strings.TrimSuffix(u, "/mcp")
			s.mcp = s.base + "/mcp"
		case "admin":
			s.admin = u
			return s
		default: // approvals serve names one address
			s.admin = cmp.Or(listening, kind)
			return s
		}
	}
	t.Fatalf("it does not serve: %v\n%s", s.cmd.Wait(), s.stderr)
	return nil
}

// interrupt asks the gateway to end.
func (s *served) interrupt(t *testing.T) {
	t.Helper()
	check.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
}

// ends waits for the end of the gateway, and wants its exit code and some words on standard error.
func (s *served) ends(t *testing.T, code int, says ...string) {
	t.Helper()
	s.cmd.Wait() // its error is the exit code
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("exit %d, want %d\n%s", got, code, s.stderr)
	}
	for _, words := range says {
		if !strings.Contains(s.stderr.String(), words) {
			t.Errorf("standard error lacks %q:\n%s", words, s.stderr)
		}
	}
}

// stop ends the gateway.
func (s *served) stop(t *testing.T, code int, says ...string) {
	t.Helper()
	s.interrupt(t)
	s.ends(t, code, says...)
}

// kill ends it as the system may.
func (s *served) kill() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

// An agent is a client of the gateway with a session.
type agent struct {
	s       *served
	url     string
	token   string
	session string
	id      int
	mu      sync.Mutex
}

// agent opens a session at a path of the gateway.
func (s *served) agent(path, token string) *agent {
	s.t.Helper()
	return s.agentThat(path, token, `{}`)
}

// agentThat opens a session of a client with capabilities.
func (s *served) agentThat(path, token, can string) *agent {
	s.t.Helper()
	a := &agent{s: s, url: s.base + path, token: token}
	resp, body := a.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + can + `,` +
		`"clientInfo":{"name":"test","version":"1"}}}`)
	if a.session = resp.Header.Get("Mcp-Session-Id"); a.session == "" {
		s.t.Fatalf("initialize: %s\n%s\n%s", resp.Status, body, s.stderr)
	}
	a.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return a
}

// post sends one message and returns the answer: of a stream the last message.
func (a *agent) post(message string) (*http.Response, []byte) {
	a.s.t.Helper()
	resp, body, err := a.try(message)
	if err != nil {
		a.s.t.Fatalf("%v\n%s", err, a.s.stderr)
	}
	return resp, body
}

func (a *agent) try(message string) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), clitest.Patience)
	defer cancel()
	resp, err := a.send(ctx, http.MethodPost, message)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	all, err := messages(resp)
	if len(all) == 0 {
		return resp, nil, err
	}
	return resp, all[len(all)-1], err
}

// send makes a request in the session.
func (a *agent) send(ctx context.Context, method, message string) (*http.Response, error) {
	headers := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if a.session != "" {
		headers.Set("Mcp-Session-Id", a.session)
	}
	if a.token != "" {
		headers.Set("Authorization", "Bearer "+a.token)
	}
	return send(ctx, method, a.url, headers, message)
}

func send(ctx context.Context, method, url string, headers http.Header, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = headers
	return http.DefaultClient.Do(req)
}

// An answered call is what a tools/call came to.
type answered struct {
	Raw   []byte
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Result *struct {
		Type    string `json:"resultType"`
		TaskID  string `json:"taskId"`
		IsError bool   `json:"isError"`
		Meta    struct {
			Decision gateway.Decision `json:"io.pgfsm/decision"`
		} `json:"_meta"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"result"`
}

// code is that of a refusal, the text of a result, or that of an error.
func (a answered) code() string {
	switch {
	case a.Error != nil:
		return fmt.Sprint(a.Error.Code)
	case a.Result == nil:
		return "no answer: " + string(a.Raw)
	case a.Result.Meta.Decision.Code != "":
		return a.Result.Meta.Decision.Code
	case len(a.Result.Content) > 0:
		return a.Result.Content[0].Text
	}
	return string(a.Raw)
}

// call calls a tool with raw arguments.
func (a *agent) call(tool, args string) answered {
	a.s.t.Helper()
	a.mu.Lock()
	a.id++
	id := a.id
	a.mu.Unlock()
	_, body := a.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, args))
	return read(a.s.t, body)
}

// gets calls a tool and wants what the answer comes to.
func (a *agent) gets(t *testing.T, tool, args, want string) {
	t.Helper()
	if got := a.call(tool, args); got.code() != want {
		t.Errorf("%s %s: %s, want %s\n%s", tool, args, got.Raw, want, a.s.stderr)
	}
}

// becomes repeats a call until the answer is another than before, and wants what it comes to then.
func (a *agent) becomes(t *testing.T, tool, args, before, want string) {
	t.Helper()
	if got := a.until(t, tool, args, before); got.code() != want {
		t.Errorf("%s %s: %s, want %s\n%s", tool, args, got.Raw, want, a.s.stderr)
	}
}

func read(t *testing.T, body []byte) answered {
	t.Helper()
	got := answered{Raw: body}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return got
}

// remove ends the session.
func (a *agent) remove() {
	a.s.t.Helper()
	resp, err := a.send(context.Background(), http.MethodDelete, "")
	if err != nil {
		a.s.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		a.s.t.Fatalf("DELETE: %s", resp.Status)
	}
}
