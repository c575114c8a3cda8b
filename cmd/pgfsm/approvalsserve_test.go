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
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlite"
)

const heldPolicy = `version: 1
policies: [{id: waits, match: {tool: "*"}, effect: pending, approvers: [owners], expires: 1h, reason: Owners look at it.}]
`

// A house is a configuration with a ledger in which every call is held, a puppet as its server that counts calls, and an
// owner's token.
type house struct {
	t      *testing.T
	puppet *puppet
	calls  *atomic.Int32
	config string
	path   string // of the ledger
	dora   string
	env    map[string]string
}

func newHouse(t *testing.T, more string) *house {
	t.Helper()
	h := &house{t: t, calls: new(atomic.Int32), env: map[string]string{"HOOK_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}
	h.puppet = newPuppet(t, func(method string) string {
		if method == "tools/call" {
			h.calls.Add(1)
		}
		return honest(method)
	})
	h.config, _ = puppetConfig(t, h.puppet, "", "policy: policy.yaml\nroles: {owners: [dora]}\nledger: sqlite:pgfsm.db\n"+more)
	h.path = filepath.Join(filepath.Dir(h.config), "pgfsm.db")
	if err := os.WriteFile(filepath.Join(filepath.Dir(h.config), "policy.yaml"), []byte(heldPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	r := command(t.Context(), nil, "token", "create", "--ledger", "sqlite:"+h.path, "--role", "approver", "--name", "dora", "--json")
	r.want(t, exitYes)
	h.dora = r.member("/secret")
	return h
}

// held asks for a call, which waits then.
func (h *house) held() (run, binding string) {
	h.t.Helper()
	r := command(h.t.Context(), nil, "call", "--json", "-c", h.config, "puppet", "look", "{}")
	r.want(h.t, exitPending)
	return r.member("/run_id"), r.member("/approval/binding")
}

// A serving is the service at work.
type serving struct {
	h      *house
	url    string
	stderr *bytes.Buffer
	stop   context.CancelFunc
	ended  chan int
}

func (h *house) serves(args ...string) *serving {
	h.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s := &serving{h: h, stderr: new(bytes.Buffer), stop: stop, ended: make(chan int, 1)}
	read, write := io.Pipe()
	args = append([]string{"approvals", "serve", "-c", h.config, "--admin", "127.0.0.1:0"}, args...)
	go func() {
		code := run(ctx, args, world{
			stdin: strings.NewReader(""), stdout: write, stderr: s.stderr,
			getenv: func(name string) (string, bool) { v, ok := h.env[name]; return v, ok },
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

// asks makes a call over HTTP.
func (s *serving) asks(method, path, body string) (int, string) {
	s.h.t.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.h.dora)
	r.Header.Set("Content-Type", "application/json")
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		s.h.t.Fatal(err)
	}
	defer got.Body.Close()
	b, err := io.ReadAll(got.Body)
	if err != nil {
		s.h.t.Fatal(err)
	}
	return got.StatusCode, string(b)
}

func (s *serving) decides(verb, run, binding string) {
	s.h.t.Helper()
	if code, body := s.asks(http.MethodPost, "/"+verb+"/"+run, fmt.Sprintf(`{"expected_digest": %q, "reason": "as decided"}`, binding)); code != http.StatusOK {
		s.h.t.Fatalf("%s = %d: %s", verb, code, body)
	}
}

// awaits waits until a run has ended, and wants how.
func (h *house) awaits(run string, want ledger.Status) {
	h.t.Helper()
	store, err := sqlite.OpenReadOnly(h.path)
	if err != nil {
		h.t.Fatal(err)
	}
	defer store.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var q ledger.Request
	err = ledger.Poll(ctx, 5*time.Millisecond, func() (bool, error) {
		err := store.View(ctx, func(r ledger.Reader) (err error) {
			q, err = r.Request(run)
			return err
		})
		return q.Ended != "", err
	})
	if err != nil || q.Status != want {
		h.t.Errorf("the run stands at %s, %v, want %s", q.Status, err, want)
	}
}

func (h *house) verifies() {
	h.t.Helper()
	command(h.t.Context(), nil, "ledger", "verify", "--ledger", "sqlite:"+h.path).want(h.t, exitYes)
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
	h := newHouse(t, fmt.Sprintf("approvals: {hooks: [{url: %q, secret: \"${env:HOOK_SECRET}\"}]}", hook.URL))
	s := h.serves()
	run, binding := h.held()
	if got, want := <-told, `"approval.requested""`+run+`"`; got != want {
		t.Errorf("the hook was told %s, want %s", got, want)
	}
	s.decides("approve", run, binding)
	if got, want := <-told, `"approval.decided""`+run+`"`; got != want {
		t.Errorf("the hook was told %s, want %s", got, want)
	}
	h.awaits(run, ledger.Executed)
	denied, binding := h.held()
	s.decides("deny", denied, binding)
	h.awaits(denied, ledger.Denied)
	s.ends()
	if n := h.calls.Load(); n != 1 {
		t.Errorf("%d calls were made, want 1", n)
	}
	if !strings.Contains(s.stderr.String(), "the run "+run+" ended: answered") {
		t.Errorf("stderr = %s", s.stderr)
	}
	command(t.Context(), nil, "resume", "-c", h.config, "--json", denied).want(t, exitNo, "/reason", "Denied by dora: as decided")
	h.verifies()
}

// What was decided while no service ran is gone on with when one does; one that only decides leaves it to others.
func TestServeAfterwards(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	run, binding := h.held()
	s := h.serves("--no-resume")
	s.decides("approve", run, binding)
	denied, binding := h.held()
	s.decides("deny", denied, binding)
	h.awaits(denied, ledger.Denied)
	s.ends()
	if n := h.calls.Load(); n != 0 {
		t.Fatalf("%d calls were made by a service that only decides", n)
	}
	s = h.serves()
	h.awaits(run, ledger.Executed)
	s.ends()
	if n := h.calls.Load(); n != 1 {
		t.Errorf("%d calls were made, want 1", n)
	}
	h.verifies()
}

// Two services on one ledger make one call.
func TestTwoServices(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	one, two := h.serves(), h.serves()
	var runs []string
	for range 4 {
		run, binding := h.held()
		one.decides("approve", run, binding)
		runs = append(runs, run)
	}
	for _, run := range runs {
		h.awaits(run, ledger.Executed)
	}
	one.ends()
	two.ends()
	if n := h.calls.Load(); n != 4 {
		t.Errorf("%d calls were made, want 4", n)
	}
	h.verifies()
}

// An interrupt ends the service in good order, also while a call is under way, which is finished.
func TestServeInterrupted(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	leave := make(chan struct{})
	h.puppet.answer = func(method string) string {
		if method == "tools/call" {
			h.calls.Add(1)
			<-leave
		}
		return honest(method)
	}
	run, binding := h.held()
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
	(&serving{h: h, url: strings.TrimSpace(line)}).decides("approve", run, binding)
	h.puppet.await(t, "tools/call")
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
	h.awaits(run, ledger.Executed)
	h.verifies()
}

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "approvals: {hooks: [{url: \"https://chat.example.com\", secret: \"${env:HOOK_SECRET}\"}]}")
	plain, _ := puppetConfig(t, h.puppet, "", "")
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	for _, c := range []struct {
		name string
		env  map[string]string
		args []string
		want string
	}{
		{"other-machines", h.env, []string{"-c", h.config, "--admin", "0.0.0.0:0"}, "reverse proxy with TLS"},
		{"port-is-taken", h.env, []string{"-c", h.config, "--admin", strings.TrimPrefix(taken.URL, "http://")}, "address already in use"},
		{"no-ledger", h.env, []string{"-c", plain, "--admin", "127.0.0.1:0"}, "names no ledger"},
		{"secret-not-set", nil, []string{"-c", h.config, "--admin", "127.0.0.1:0"}, "HOOK_SECRET, which is not set"},
		{"secret-too-short", map[string]string{"HOOK_SECRET": "12345678"}, []string{"-c", h.config, "--admin", "127.0.0.1:0"}, "24 or more"},
		{"host-is-a-url", h.env, []string{"-c", h.config, "--host", "https://a"}, "no host name"},
		{"argument", h.env, []string{"-c", h.config, "x"}, "unknown command"},
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
	doc, err := os.ReadFile("../../docs/reference/api.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := curlFence.FindAllStringSubmatch(string(doc), -1)
	if len(examples) < 4 {
		t.Fatalf("%d examples, want at least 4", len(examples))
	}
	h := newHouse(t, "")
	s := h.serves("--no-resume")
	for _, example := range examples {
		run, binding := h.held()
		text := strings.ReplaceAll(example[1], "http://127.0.0.1:9464", s.url)
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", text)
		cmd.Env = append(os.Environ(), "PGFSM_TOKEN="+h.dora, "RUN="+run, "DIGEST="+binding, "no_proxy=*")
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte(run)) {
			t.Errorf("%s: %v\n%s", text, err, out)
		}
	}
	s.ends()
}
