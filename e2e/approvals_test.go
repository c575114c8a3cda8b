package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"pgfsm/internal/test/cli"
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
	o := &office{u: mcptest.New(t, mcptest.But("tools/list", mcptest.TwoTools))}
	o.dir = gatewayFolder(t, o.u, strings.Replace(inOffice, inFile, cli.Quote(url), 1)+more)
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
	cli.Write(t, filepath.Join(o.dir, name), text)
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
	var q ledger.Request
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
	t.Run("token-revoked", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, holdLook, "")
		a := o.agent("/mcp", o.ci)
		run := o.held(t, a, `{"n":1}`)
		command(t.Context(), nil, "token", "revoke", "-c", o.config, tokenOf(o.ci)).Want(t, exitYes)
		for _, message := range []string{callMessage("echo__look", `{"n":1}`), `{"jsonrpc":"2.0","id":"p","method":"ping"}`} {
			if resp, body := a.post(message); resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("the token was revoked: %s %s", resp.Status, body)
			}
		}
		o.decide(t, "approve", run, o.bob)
		o.ended(t, run, ledger.Denied, "approval_mismatch")
		o.u.Reached(t, 0)
		verifies(t, o.dir)
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
	resp, err := a.send(cli.Patient(t), http.MethodPost, message)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return &stream{resp: resp, in: bufio.NewScanner(resp.Body)}
}

// TestServeHoldsCallsOpen: within approvals.hold the answer to the call itself tells what people decided.
func TestServeHoldsCallsOpen(t *testing.T) {
	t.Parallel()
	const progress = `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"echo__look","arguments":{"n":%d},"_meta":{"progressToken":"p-1"}}}`
	for _, tt := range []struct{ name, verb, want string }{
		{"approved-within-the-hold", "approve", "hi"},
		{"denied-within-the-hold", "deny", "approval_denied"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, holdLook, "approvals: {hold: 1m}\n")
			a := o.agent("/mcp", o.ci)
			answer := a.streams(t, fmt.Sprintf(progress, 1))
			said := answer.next()
			if !bytes.Contains(said, []byte(`"notifications/progress"`)) || !bytes.Contains(said, []byte(`"progressToken":"p-1"`)) ||
				!bytes.Contains(said, []byte("A person has to decide")) {
				t.Fatalf("it says %s\n%s", said, o.stderr)
			}
			run := recorded(t, o.dir)[0].RunID
			o.decide(t, tt.verb, run, o.bob)
			for bytes.Contains(said, []byte(`"method"`)) {
				said = answer.next()
			}
			if got := read(t, said); got.code() != tt.want {
				t.Errorf("the outcome is %s, want %s", said, tt.want)
			}
			if answer.next() != nil {
				t.Error("something comes behind the answer")
			}
			if q := recorded(t, o.dir)[0]; q.Delivered == "" {
				t.Errorf("the outcome was told, and is not recorded as told: %+v", q)
			}
		})
	}
	t.Run("client-gone-while-it-is-held-open", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, holdLook, "approvals: {hold: 1m}\n")
		c := &stateless{s: o.served, url: o.mcp, token: o.ci, can: `{}`, progress: "p-1"}
		resp, err := c.ask(t.Context(), "tools/call", "echo__look", `"name":"echo__look","arguments":{"n":1}`)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close() // the stream has begun, so the call waits
		run := recorded(t, o.dir)[0].RunID
		o.decide(t, "approve", run, o.bob)
		o.ended(t, run, ledger.Executed, "")
		if got := c.call(t, "echo__look", `{"n":1}`); got.code() != "hi" {
			t.Errorf("a repetition is told: %s", got.Raw)
		}
		o.u.Reached(t, 1)
	})
	t.Run("on-pending-error", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, holdLook, "approvals: {on_pending: error}\n")
		got := o.agent("/mcp", o.ci).call("echo__look", `{"n":1}`)
		got.wants(t, "approval_required", "not_sent", "same")
		if r := got.Result.Meta.Decision; r.After <= 0 || !strings.HasSuffix(r.Decide, "/console/calls/"+r.RunID) {
			t.Errorf("the answer is %s", got.Raw)
		}
	})
}

// TestServeShowsWhereToDecide: who can be shown a URL is shown it, once for each call that is held.
func TestServeShowsWhereToDecide(t *testing.T) {
	t.Parallel()
	o := newOffice(t, holdLook, "serve: {decide_url: \"https://approvals.example.com/runs/{run_id}\"}\n")
	a := o.agentThat("/mcp", o.ci, `{"elicitation":{"form":{},"url":{}}}`)
	shown := 0
	for range 3 {
		s := a.streams(t, callMessage("echo__look", `{"n":1}`))
		for said := s.next(); said != nil; said = s.next() {
			method, _ := cli.At(said, "/method")
			if string(method) != `"elicitation/create"` {
				got := read(t, said)
				if want := "https://approvals.example.com/runs/" + got.Result.Meta.Decision.RunID; got.Result.Meta.Decision.Decide != want {
					t.Errorf("the answer is %s, want it to name %s", said, want)
				}
				continue
			}
			shown++
			mode, _ := cli.At(said, "/params/mode")
			url, _ := cli.At(said, "/params/url")
			if run := recorded(t, o.dir)[0].RunID; string(mode) != `"url"` || string(url) != cli.Quote("https://approvals.example.com/runs/"+run) {
				t.Errorf("shown is %s", said)
			}
			id, _ := cli.At(said, "/id")
			a.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept"}}`, id))
		}
	}
	if shown != 1 {
		t.Errorf("the URL was shown %d times, want once", shown)
	}
	if got := len(recorded(t, o.dir)); got != 1 {
		t.Errorf("%d runs, want one", got)
	}
	o.u.Reached(t, 0)
}

// taskClient takes tasks.
func (o *office) taskClient(token string) *stateless {
	return &stateless{s: o.served, url: o.mcp, token: token, can: `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`}
}

// task asks for a task or cancels it, by method.
func (c *stateless) task(t *testing.T, method, id string) answered {
	t.Helper()
	return c.says(t, method, id, `"taskId":`+cli.Quote(id))
}

// TestServeTasks: a call that waits is a task to who takes one. It is in the ledger before the answer is sent, and is nobody
// else's.
func TestServeTasks(t *testing.T) {
	t.Parallel()
	status := func(a answered) string {
		v, err := cli.At(a.Raw, "/result/status")
		if err != nil {
			return string(a.Raw)
		}
		return strings.Trim(string(v), `"`)
	}
	made := func(t *testing.T, o *office, c *stateless, args string) (id, run string) {
		t.Helper()
		got := c.call(t, "echo__look", args)
		if got.Result == nil || got.Result.Type != "task" || got.Result.TaskID == "" {
			t.Fatalf("it is no task: %s\n%s", got.Raw, o.stderr)
		}
		run, _, _ = strings.Cut(got.Result.TaskID, ".")
		return got.Result.TaskID, run
	}
	for _, tt := range []struct{ name, verb, want string }{
		{"approved", "approve", "hi"},
		{"denied", "deny", "approval_denied"},
	} {
		t.Run("killed-behind-the-answer-and-"+tt.name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, holdLook, "")
			id, run := made(t, o, o.taskClient(o.ci), `{"n":1}`)
			o.kill()
			o.served = serve(t, o.dir)
			c := o.taskClient(o.ci)
			if got := c.task(t, "tasks/get", id); status(got) != "working" {
				t.Errorf("after the next start: %s", got.Raw)
			}
			o.decide(t, tt.verb, run, o.bob)
			var got answered
			soon(t, "the task is completed", func() bool {
				got = c.task(t, "tasks/get", id)
				return status(got) != "working"
			})
			text, _ := cli.At(got.Raw, "/result/result/content/0/text")
			code, _ := cli.At(got.Raw, "/result/result/_meta/io.pgfsm~1decision/code")
			failed, _ := cli.At(got.Raw, "/result/result/isError")
			if said := strings.Trim(string(code)+string(text), `"`); status(got) != "completed" || !strings.HasPrefix(said, tt.want) ||
				(string(failed) == "true") != (tt.verb == "deny") {
				t.Errorf("the task is %s", got.Raw)
			}
			if again := c.task(t, "tasks/get", id); !bytes.Equal(again.Raw, got.Raw) {
				t.Errorf("asked again it is %s, and was %s", again.Raw, got.Raw)
			}
			verifies(t, o.dir)
		})
	}
	t.Run("somebody-elses-and-forged", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, holdLook, "")
		id, run := made(t, o, o.taskClient(o.ci), `{"n":1}`)
		other := makeToken(t, o.config, "agent", "other")
		none := o.taskClient(o.ci).task(t, "tasks/get", "nothing")
		for _, f := range []struct {
			name, id string
			who      string
		}{
			{"somebody-elses", id, other}, {"without-a-token", id, ""}, {"the-run-alone", run, o.ci}, {"no-handle", run + ".", o.ci},
			{"another-handle", run + "." + strings.Repeat("0", 32), o.ci}, {"a-longer-one", id + "0", o.ci},
			{"a-shorter-one", id[:len(id)-1], o.ci}, {"upper-case", strings.ToUpper(id), o.ci}, {"long", strings.Repeat("x", 1000), o.ci},
		} {
			for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
				if got := o.taskClient(f.who).task(t, method, f.id); !bytes.Equal(got.Raw, none.Raw) || got.code() != "-32602" {
					t.Errorf("%s, %s: %s, want as for one that never was: %s", f.name, method, got.Raw, none.Raw)
				}
			}
		}
		if got := o.taskClient(o.ci).task(t, "tasks/get", id); status(got) != "working" {
			t.Errorf("its own: %s", got.Raw)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, holdLook, "")
		c := o.taskClient(o.ci)
		id, run := made(t, o, c, `{"n":1}`)
		if got := c.task(t, "tasks/cancel", id); got.Error != nil {
			t.Fatalf("cancel: %s", got.Raw)
		}
		o.ended(t, run, ledger.Denied, "approval_denied")
		got := c.task(t, "tasks/get", id)
		if failed, _ := cli.At(got.Raw, "/result/result/isError"); status(got) != "completed" || string(failed) != "true" {
			t.Errorf("the task is %s", got.Raw)
		}
		o.u.Reached(t, 0)
		verifies(t, o.dir)
	})
}
