package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/tool"
	"pgfsm/traces/ledger"
)

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// serves starts the service that only decides, or makes the calls too.
func (h *house) serves(args ...string) *served {
	h.t.Helper()
	return start(h.t, h.dir, append([]string{"approvals", "serve"}, args...)...)
}

// TestServe: what is decided over HTTP is gone on with, once, and hooks are told.
func TestServe(t *testing.T) {
	t.Parallel()
	told, decideAt := make(chan string, 10), new(atomic.Value)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		kind, _ := clitest.ValueAt(b, "/type")
		run, _ := clitest.ValueAt(b, "/data/run")
		decide, _ := clitest.ValueAt(b, "/data/decide")
		decideAt.Store(string(decide))
		told <- string(kind) + string(run)
	}))
	defer hook.Close()
	// The reminder is due ten seconds after the call is held.
	h := newHouse(t, heldPolicy, fmt.Sprintf("approvals: {remind_before: 59m50s, hooks: [{url: %q, secret: %q}]}", hook.URL, hookSecret))
	s := h.serves()
	run, _ := h.held()
	for _, kind := range []string{"requested", "reminder"} {
		if got, want := <-told, `"approval.`+kind+`""`+run+`"`; got != want {
			t.Errorf("the hook was told %s, want %s", got, want)
		}
	}
	if got, want := decideAt.Load(), `"`+s.admin+"/console/calls/"+run+`"`; got != want {
		t.Errorf("the hook was told to decide at %s, want %s", got, want)
	}
	s.decide(t, "approve", run, h.dora[tokenVariable])
	if got, want := <-told, `"approval.decided""`+run+`"`; got != want {
		t.Errorf("the hook was told %s, want %s", got, want)
	}
	runEnded(t, h.dir, run, ledger.Executed, "")
	denied, _ := h.held()
	s.decide(t, "deny", denied, h.dora[tokenVariable])
	runEnded(t, h.dir, denied, ledger.Denied, "approval_denied")
	s.stop(t, exitYes, "msg=call run="+run+" actor=", "state=answered")
	h.made(1)
	command(t.Context(), nil, "resume", "-c", h.config, "--json", denied).Want(t, exitNo, "/reason", "Denied by dora: as decided")
	verifies(t, h.dir)
}

// What was decided while no service ran is gone on with when one does; one that only decides leaves it to others.
func TestServeAfterwards(t *testing.T) {
	t.Parallel()
	h := newHouse(t, heldPolicy, "")
	run, _ := h.held()
	s := h.serves("--no-resume")
	s.decide(t, "approve", run, h.dora[tokenVariable])
	denied, _ := h.held()
	s.decide(t, "deny", denied, h.dora[tokenVariable])
	runEnded(t, h.dir, denied, ledger.Denied, "approval_denied")
	s.stop(t, exitYes)
	h.made(0)
	s = h.serves()
	runEnded(t, h.dir, run, ledger.Executed, "")
	s.stop(t, exitYes)
	h.made(1)
	verifies(t, h.dir)
}

var curlFence = regexp.MustCompile("(?s)```sh\n(curl .*?)```")

// TestDocsCurl runs the examples of docs/reference/api.md against a service, each in a shell of its own.
func TestDocsCurl(t *testing.T) {
	t.Parallel()
	tool.Path(t, "curl", "curl")
	doc := clitest.Read(t, "../docs/reference/api.md")
	examples := curlFence.FindAllStringSubmatch(doc, -1)
	if len(examples) < 4 {
		t.Fatalf("%d examples, want at least 4", len(examples))
	}
	h := newHouse(t, heldPolicy, "")
	s := h.serves("--no-resume")
	for _, example := range examples {
		run, binding := h.held()
		text := strings.ReplaceAll(example[1], "http://127.0.0.1:9464", s.admin)
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", text)
		cmd.Env = append(os.Environ(), "PGFSM_TOKEN="+h.dora[tokenVariable], "RUN="+run, "DIGEST="+binding, "no_proxy=*")
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte(run)) {
			t.Errorf("%s: %v\n%s", text, err, out)
		}
	}
	s.stop(t, exitYes)
}
