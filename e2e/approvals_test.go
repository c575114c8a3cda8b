package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
	"pgfsm/traces/ledger"
)

// An office is a gateway whose policy holds calls, with its people.
type office struct {
	*served
	u       *mcptest.Server
	dir     string
	bob, ci string // tokens of an approver and of an agent
}

// newOffice opens one. More is added to its configuration.
func newOffice(t *testing.T, policy, more string) *office {
	t.Helper()
	return newOfficeOn(t, inFile, policy, more)
}

// inFile is the ledger of most tests, and inOffice is the configuration of one with it.
const (
	inFile   = "sqlite:pgfsm.db"
	inOffice = "policy: policy.yaml\nledger: " + inFile + "\n"
)

// newOfficeOn opens one with a ledger.
func newOfficeOn(t *testing.T, url, policy, more string) *office {
	t.Helper()
	o := &office{u: mcptest.New(t, mcptest.Except("tools/list", mcptest.TwoTools))}
	o.dir = gatewayFolder(t, o.u, strings.Replace(inOffice, inFile, clitest.Quote(url), 1)+more)
	if url != inFile {
		o.writes(t, "ledger.url", url)
	}
	o.writes(t, "policy.yaml", policy)
	o.served = serve(t, o.dir)
	o.bob, o.ci = makeToken(t, o.config, "approver", "bob"), makeToken(t, o.config, "agent", "ci")
	return o
}

func (o *office) writes(t *testing.T, name, text string) {
	t.Helper()
	clitest.Write(t, filepath.Join(o.dir, name), text)
}

// held makes a call that is held, and returns its run.
func (o *office) held(t *testing.T, a *agent, args string) string {
	t.Helper()
	got := a.call("echo__look", args)
	if got.code() != "approval_required" || got.Result.Meta.Decision.RunID == "" {
		t.Fatalf("it is not held: %s\n%s", got.Raw, o.stderr)
	}
	return got.Result.Meta.Decision.RunID
}

func (o *office) ended(t *testing.T, run string, want ledger.Status, code string) {
	t.Helper()
	runEnded(t, o.dir, run, want, code)
}

// runEnded waits until a run in the ledger of a folder has ended, and wants how.
func runEnded(t *testing.T, dir, run string, want ledger.Status, code string) {
	t.Helper()
	var q ledger.RunRow
	soon(t, "the run has ended", func() bool {
		for _, r := range recorded(t, dir) {
			if r.RunID == run {
				q = r
			}
		}
		return q.Ended != ""
	})
	if q.Status != want || q.Code != code {
		t.Errorf("the run is %s, %q, want %s, %q", q.Status, q.Code, want, code)
	}
}

// TestServeFailuresOfDecisions: what can go wrong between a call that is held and its end.
func TestServeFailuresOfDecisions(t *testing.T) {
	t.Parallel()
	t.Run("web-hook-down", func(t *testing.T) {
		t.Parallel()
		var rung atomic.Int32
		hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			rung.Add(1)
			w.WriteHeader(http.StatusInternalServerError)
		}))
		defer hook.Close()
		for name, url := range map[string]string{"refuses": hook.URL, "not-there": "http://127.0.0.1:9"} { // in any order
			t.Run(name, func(t *testing.T) {
				o := newOffice(t, holdLook, fmt.Sprintf("approvals: {hooks: [{url: %q, secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}]}\n", url))
				a := o.agent("/mcp", o.ci)
				run := o.held(t, a, `{"n":1}`)
				if url == hook.URL {
					soon(t, "the hook was told", func() bool { return rung.Load() > 0 })
				}
				o.decide(t, "approve", run, o.bob)
				a.becomes(t, "echo__look", `{"n":1}`, "approval_required", "hi")
				o.u.Reached(t, 1)
			})
		}
	})
	t.Run("nobody-decides", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, strings.Replace(holdLook, "1h", "1s", 1), "")
		a := o.agent("/mcp", o.ci)
		run := o.held(t, a, `{"n":1}`)
		got := a.until(t, "echo__look", `{"n":1}`, "approval_required")
		got.wants(t, "approval_expired", "not_sent", "same")
		if got.Result.Meta.Decision.RunID != run {
			t.Errorf("another run expired: %s", got.Raw)
		}
		if again := o.held(t, a, `{"n":1}`); again == run {
			t.Errorf("the next call is the same run")
		}
		o.u.Reached(t, 0)
	})
	t.Run("policy-changed-on-disk", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, holdLook, "")
		a := o.agent("/mcp", o.ci)
		old := o.held(t, a, `{"n":1}`)
		o.writes(t, "policy.yaml", strings.Replace(holdLook, "id: people", "id: others", 1))
		now := o.held(t, a, `{"n":2}`)
		o.decide(t, "approve", now, o.bob)
		a.becomes(t, "echo__look", `{"n":2}`, "approval_required", "hi")
		o.stop(t, exitYes)
		o.served = serve(t, o.dir)
		o.decide(t, "approve", old, o.bob)
		a = o.agent("/mcp", o.ci)
		got := a.until(t, "echo__look", `{"n":1}`, "approval_required")
		got.wants(t, "bundle_changed", "not_sent", "later")
		o.u.Reached(t, 1)
		verifies(t, o.dir)
	})
	t.Run("server-down-when-people-have-agreed", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, holdLook, "")
		a := o.agent("/mcp", o.ci)
		run := o.held(t, a, `{"n":1}`)
		var down atomic.Bool
		honestly := o.u.Answer
		down.Store(true)
		o.u.Answer = func(m string) string {
			if down.Load() {
				return `{"broken":true}`
			}
			return honestly(m)
		}
		o.decide(t, "approve", run, o.bob)
		soon(t, "it was tried in vain", func() bool { return strings.Contains(o.stderr.String(), "cannot be resumed") })
		o.u.Reached(t, 0)
		down.Store(false)
		a.becomes(t, "echo__look", `{"n":1}`, "approval_required", "hi")
		o.u.Reached(t, 1)
		verifies(t, o.dir)
	})
}

// tokenOf is the id of a token.
func tokenOf(text string) string { return strings.Split(text, "_")[1] }

func (a *agent) streams(t *testing.T, message string) *stream {
	t.Helper()
	resp, err := a.send(clitest.Patient(t), http.MethodPost, message)
	check.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	return &stream{resp: resp, in: bufio.NewScanner(resp.Body)}
}

// taskClient takes tasks.
func (o *office) taskClient(token string) *stateless {
	return &stateless{s: o.served, url: o.mcp, token: token, can: `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`}
}

// task asks for a task or cancels it, by method.
func (c *stateless) task(t *testing.T, method, id string) answered {
	t.Helper()
	return c.says(t, method, id, `"taskId":`+clitest.Quote(id))
}
