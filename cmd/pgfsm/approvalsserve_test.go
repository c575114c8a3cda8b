package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"pgfsm/traces/ledger"
)

// A serving is the service at work.
type serving struct {
	h      *house
	url    string
	stderr *bytes.Buffer
	stop   context.CancelFunc
	ended  chan int
}

// hookSecret is the environment with the secret of web hooks.
var hookSecret = map[string]string{"HOOK_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}

func (h *house) serves(args ...string) *serving {
	h.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s := &serving{h: h, stderr: new(bytes.Buffer), stop: stop, ended: make(chan int, 1)}
	read, write := io.Pipe()
	args = append([]string{"approvals", "serve", "-c", h.config, "--admin", "127.0.0.1:0"}, args...)
	go func() {
		code := run(ctx, args, world{
			stdin: strings.NewReader(""), stdout: write, stderr: s.stderr,
			getenv: func(name string) (string, bool) { v, ok := hookSecret[name]; return v, ok },
		})
		write.Close()
		s.ended <- code
	}()
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		h.t.Fatalf("the service says no address: %v, exit code %d, stderr: %s", err, <-s.ended, s.stderr)
	}
	s.url = strings.TrimSpace(line)
	h.t.Cleanup(stop)
	return s
}

// ends stops the service, which must end well.
func (s *serving) ends() {
	s.h.t.Helper()
	s.stop()
	if code := <-s.ended; code != exitYes {
		s.h.t.Errorf("exit code = %d, want %d, stderr: %s", code, exitYes, s.stderr)
	}
}

// decides has dora decide over HTTP.
func (s *serving) decides(verb, run string) {
	s.h.t.Helper()
	decide(s.h.t, s.url, verb, run, s.h.dora[tokenVariable])
}

// TestServe: what is decided over HTTP is gone on with, once, and hooks are told.
func TestServe(t *testing.T) {
	t.Parallel()
	told := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		kind, _ := at(b, "/type")
		run, _ := at(b, "/data/run")
		told <- string(kind) + string(run)
	}))
	defer hook.Close()
	h := newHouse(t, heldPolicy, fmt.Sprintf("approvals: {hooks: [{url: %q, secret: \"${env:HOOK_SECRET}\"}]}", hook.URL))
	s := h.serves()
	run, _ := h.held()
	if got, want := <-told, `"approval.requested""`+run+`"`; got != want {
		t.Errorf("the hook was told %s, want %s", got, want)
	}
	s.decides("approve", run)
	if got, want := <-told, `"approval.decided""`+run+`"`; got != want {
		t.Errorf("the hook was told %s, want %s", got, want)
	}
	runEnded(t, h.dir, run, ledger.Executed, "")
	denied, _ := h.held()
	s.decides("deny", denied)
	runEnded(t, h.dir, denied, ledger.Denied, "approval_denied")
	s.ends()
	h.made(1)
	if !strings.Contains(s.stderr.String(), "the run "+run+" ended: answered") {
		t.Errorf("stderr = %s", s.stderr)
	}
	command(t.Context(), nil, "resume", "-c", h.config, "--json", denied).want(t, exitNo, "/reason", "Denied by dora: as decided")
	verifies(t, h.dir)
}

// What was decided while no service ran is gone on with when one does; one that only decides leaves it to others.
func TestServeAfterwards(t *testing.T) {
	t.Parallel()
	h := newHouse(t, heldPolicy, "")
	run, _ := h.held()
	s := h.serves("--no-resume")
	s.decides("approve", run)
	denied, _ := h.held()
	s.decides("deny", denied)
	runEnded(t, h.dir, denied, ledger.Denied, "approval_denied")
	s.ends()
	h.made(0)
	s = h.serves()
	runEnded(t, h.dir, run, ledger.Executed, "")
	s.ends()
	h.made(1)
	verifies(t, h.dir)
}

// Two services on one ledger make one call.
func TestTwoServices(t *testing.T) {
	t.Parallel()
	h := newHouse(t, heldPolicy, "")
	one, two := h.serves(), h.serves()
	var runs []string
	for range 4 {
		run, _ := h.held()
		one.decides("approve", run)
		runs = append(runs, run)
	}
	for _, run := range runs {
		runEnded(t, h.dir, run, ledger.Executed, "")
	}
	one.ends()
	two.ends()
	h.made(4)
	verifies(t, h.dir)
}

// An interrupt ends the service in good order, also while a call is under way, which is finished.
func TestServeInterrupted(t *testing.T) {
	t.Parallel()
	h := newHouse(t, heldPolicy, "")
	leave := make(chan struct{})
	h.server.answer = func(method string) string {
		if method == "tools/call" {
			h.calls.Add(1)
			<-leave
		}
		return honest(method)
	}
	run, _ := h.held()
	cmd, _, stderr := child(t.Context(), "pgfsm", nil, "approvals", "serve", "-c", h.config, "--admin", "127.0.0.1:0")
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("no address: %v, stderr: %s", err, stderr)
	}
	(&serving{h: h, url: strings.TrimSpace(line)}).decides("approve", run)
	h.server.await(t, "tools/call")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for { // until it does not listen any more
		got, err := http.Get(strings.TrimSpace(line) + "/healthz")
		if err != nil {
			break
		}
		got.Body.Close()
	}
	close(leave)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the service ended with %v, stderr: %s", err, stderr)
	}
	runEnded(t, h.dir, run, ledger.Executed, "")
	verifies(t, h.dir)
}

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	h := newHouse(t, heldPolicy, "approvals: {hooks: [{url: \"https://chat.example.com\", secret: \"${env:HOOK_SECRET}\"}]}")
	plain, _ := puppetConfig(t, h.server, "", "")
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	for _, c := range []struct {
		name string
		env  map[string]string
		args []string
		want string
	}{
		{"other-machines", hookSecret, []string{"-c", h.config, "--admin", "0.0.0.0:0"}, "reverse proxy with TLS"},
		{"port-is-taken", hookSecret, []string{"-c", h.config, "--admin", strings.TrimPrefix(taken.URL, "http://")}, "address already in use"},
		{"no-ledger", hookSecret, []string{"-c", plain, "--admin", "127.0.0.1:0"}, "names no ledger"},
		{"secret-not-set", nil, []string{"-c", h.config, "--admin", "127.0.0.1:0"}, "HOOK_SECRET, which is not set"},
		{"secret-too-short", map[string]string{"HOOK_SECRET": "12345678"}, []string{"-c", h.config, "--admin", "127.0.0.1:0"}, "24 or more"},
		{"host-is-a-url", hookSecret, []string{"-c", h.config, "--host", "https://a"}, "no host name"},
		{"argument", hookSecret, []string{"-c", h.config, "x"}, "unknown command"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := command(t.Context(), c.env, append([]string{"approvals", "serve"}, c.args...)...)
			r.want(t, exitCould)
			if !strings.Contains(r.stderr, c.want) {
				t.Errorf("stderr = %s, want %q", r.stderr, c.want)
			}
		})
	}
}

var curlFence = regexp.MustCompile("(?s)```sh\n(curl .*?)```")

// TestDocsCurl runs the examples of docs/reference/api.md against a service, each in a shell of its own.
func TestDocsCurl(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		skip(t, "there is no curl here")
	}
	doc := textOf(t, "../../docs/reference/api.md")
	examples := curlFence.FindAllStringSubmatch(doc, -1)
	if len(examples) < 4 {
		t.Fatalf("%d examples, want at least 4", len(examples))
	}
	h := newHouse(t, heldPolicy, "")
	s := h.serves("--no-resume")
	for _, example := range examples {
		run, binding := h.held()
		text := strings.ReplaceAll(example[1], "http://127.0.0.1:9464", s.url)
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", text)
		cmd.Env = append(os.Environ(), "PGFSM_TOKEN="+h.dora[tokenVariable], "RUN="+run, "DIGEST="+binding, "no_proxy=*")
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte(run)) {
			t.Errorf("%s: %v\n%s", text, err, out)
		}
	}
	s.ends()
}
