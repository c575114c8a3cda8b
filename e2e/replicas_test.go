package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/postgres/pgtest"
)

// replicasOf is the document of ledger status.
func replicasOf(t *testing.T, config string) (d ledger.Replicas) {
	t.Helper()
	got := command(t.Context(), nil, "ledger", "status", "--json", "-c", config)
	got.Want(t, exitYes)
	if err := json.Unmarshal([]byte(got.Stdout), &d); err != nil {
		t.Fatalf("%v: %s", err, got.Stdout)
	}
	return d
}

// TestServeReplicas: what several gateways on one ledger do.
func TestServeReplicas(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T){ // in any order
		"are-listed": listedReplicas, "do-not-know-the-sessions-of-others": anothersSession,
		"take-over": takeOver,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
	t.Run("take-any-request", func(t *testing.T) {
		t.Parallel()
		anyReplica(t, newLedger)
	})
}

// TestServeReplicasOnPostgres: what they do when the database, or what is before it, goes away.
func TestServeReplicasOnPostgres(t *testing.T) {
	t.Parallel()
	needsPostgres(t)
	c := cluster.Cluster(t)
	t.Run("through-a-pooler", func(t *testing.T) {
		t.Parallel()
		pooler := c.Pooler(t)
		anyReplica(t, func(t *testing.T) string { return strings.Replace(newLedger(t), c.Address(), pooler, 1) })
	})
	t.Run("end-when-another-has-taken-over", func(t *testing.T) {
		t.Parallel()
		fenced(t)
	})
	t.Run("refuse-calls-while-the-database-is-away", func(t *testing.T) {
		t.Parallel()
		proxy := pgtest.NewProxy(t, c.Address())
		databaseAway(t, proxy, strings.Replace(newLedger(t), c.Address(), proxy.Address(), 1))
	})
}

// listedReplicas: ledger status and /replicas list the gateways that run on a ledger. One with another bundle is ready and says so.
func listedReplicas(t *testing.T) {
	o := newOfficeOn(t, newLedger(t), holdLook, "")
	second := serve(t, o.dir)
	o.writes(t, "policy.yaml", strings.Replace(holdLook, "id: people", "id: others", 1))
	if d := replicasOf(t, o.config); len(d.Replicas) != 2 || d.BundlesDiffer || d.Replicas[0].Bundle != d.Replicas[1].Bundle {
		t.Fatalf("two replicas of one bundle: %+v", d)
	}
	third := serve(t, o.dir)
	if d := replicasOf(t, o.config); len(d.Replicas) != 3 || !d.BundlesDiffer {
		t.Errorf("one of three has another bundle: %+v", d)
	}
	soon(t, "the newest says that the others have another bundle", func() bool {
		_, body := third.gets(t, "/readyz", "")
		return strings.Contains(body, `"warnings":["bundle_differs"]`)
	})
	second.stop(t, exitYes)
	third.kill()
	soon(t, "one is left", func() bool {
		d := replicasOf(t, o.config)
		return len(d.Replicas) == 1 && !d.BundlesDiffer
	})
	code, body := o.gets(t, "/replicas", o.bob)
	if code != http.StatusOK || !strings.Contains(body, replicasOf(t, o.config).Replicas[0].Owner) {
		t.Errorf("GET /replicas: %d %s", code, body)
	}
}

// gets reads a path of the admin address.
func (s *served) gets(t *testing.T, path, token string) (int, string) {
	t.Helper()
	return readURL(t, s.admin+path, token)
}

// The office's policies beside holdLook.
const countLook = `version: 1
policies:
  - {id: two, match: {tool: look}, effect: allow, reason: "Two an hour.", deny: 'history.count("actor", "1h") >= 2'}
`

// beside is another replica of the office's gateway, with the same people.
func (o *office) beside(t *testing.T) *office {
	t.Helper()
	second := *o
	second.served = serve(t, o.dir)
	return &second
}

// anyReplica: of the gateways on one ledger, a client of 2026-07-28 may send any request to any of them.
func anyReplica(t *testing.T, newLedger func(*testing.T) string) {
	pair := func(t *testing.T, policy, more string) (a, b *office) {
		t.Helper()
		t.Parallel()
		a = newOfficeOn(t, newLedger(t), policy, more)
		return a, a.beside(t)
	}
	client := func(o *office, can string) *stateless {
		return &stateless{s: o.served, url: o.mcp, token: o.ci, can: can}
	}
	t.Run("a-held-call-is-repeated-elsewhere-and-made-once", func(t *testing.T) {
		a, b := pair(t, holdLook, "")
		held := client(a, `{}`).call(t, "echo__look", `{"n":1}`)
		again := client(b, `{}`).call(t, "echo__look", `{"n":1}`)
		run := held.Result.Meta.Decision.RunID
		if held.code() != "approval_required" || again.code() != "approval_required" || again.Result.Meta.Decision.RunID != run {
			t.Fatalf("one says %s, the other %s", held.Raw, again.Raw)
		}
		b.decide(t, "approve", run, a.bob)
		a.ended(t, run, ledger.Executed, "")
		if got := client(b, `{}`).call(t, "echo__look", `{"n":1}`); got.code() != "hi" {
			t.Errorf("the outcome is %s", got.Raw)
		}
		if next := client(a, `{}`).call(t, "echo__look", `{"n":1}`); next.code() != "approval_required" || next.Result.Meta.Decision.RunID == run {
			t.Errorf("the outcome was delivered, and the next call is no new one: %s", next.Raw)
		}
		a.u.Reached(t, 1)
		verifies(t, a.dir)
	})
	t.Run("a-task-is-polled-and-cancelled-elsewhere", func(t *testing.T) {
		a, b := pair(t, holdLook, "")
		tasks := `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
		first, second := client(a, tasks).call(t, "echo__look", `{"n":1}`), client(a, tasks).call(t, "echo__look", `{"n":2}`)
		if first.Result == nil || second.Result == nil || first.Result.TaskID == "" || second.Result.TaskID == "" {
			t.Fatalf("no tasks: %s, %s", first.Raw, second.Raw)
		}
		status := func(o *office, id string) string {
			v, _ := clitest.ValueAt(client(o, tasks).task(t, "tasks/get", id).Raw, "/result/status")
			return strings.Trim(string(v), `"`)
		}
		if got := status(b, first.Result.TaskID); got != "working" {
			t.Errorf("the task is %s", got)
		}
		run, _, _ := strings.Cut(first.Result.TaskID, ".")
		a.decide(t, "approve", run, a.bob)
		soon(t, "the task is completed", func() bool { return status(b, first.Result.TaskID) == "completed" })
		if got := client(b, tasks).task(t, "tasks/cancel", second.Result.TaskID); got.Error != nil {
			t.Errorf("cancel: %s", got.Raw)
		}
		run, _, _ = strings.Cut(second.Result.TaskID, ".")
		a.ended(t, run, ledger.Denied, "approval_denied")
		a.u.Reached(t, 1)
		verifies(t, a.dir)
	})
	t.Run("a-token-that-is-revoked-is-refused-by-all", func(t *testing.T) {
		a, b := pair(t, holdLook, "")
		if got := client(b, `{}`).call(t, "echo__look", `{"n":1}`); got.code() != "approval_required" {
			t.Fatalf("before: %s", got.Raw)
		}
		command(t.Context(), nil, "token", "revoke", "-c", a.config, tokenOf(a.ci)).Want(t, exitYes)
		for _, o := range []*office{a, b} {
			resp, err := client(o, `{}`).ask(clitest.Patient(t), "tools/call", "echo__look", `"name":"echo__look","arguments":{"n":1}`)
			check.NoError(t, err)
			resp.Body.Close()
			if resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("a revoked token gets %s", resp.Status)
			}
		}
	})
	t.Run("calls-are-counted-together", func(t *testing.T) {
		a, b := pair(t, countLook, "")
		var codes []string
		for i, o := range []*office{a, b, a, b} {
			codes = append(codes, client(o, `{}`).call(t, "echo__look", fmt.Sprintf(`{"n":%d}`, i)).code())
		}
		same(t, "what four calls of an agent come to", []string{"hi", "hi", "policy_denied", "policy_denied"}, codes)
		a.u.Reached(t, 2)
		verifies(t, a.dir)
	})
}

// anothersSession: a session belongs to the gateway that began it. Another one answers 404, so that the client initializes
// anew, as MCP says.
func anothersSession(t *testing.T) {
	a := newOfficeOn(t, newLedger(t), holdLook, "")
	b := a.beside(t)
	session := a.agent("/mcp", a.ci)
	session.url = b.mcp
	for method, message := range map[string]string{ // in any order
		http.MethodPost: `{"jsonrpc":"2.0","id":"p","method":"ping"}`, http.MethodGet: "", http.MethodDelete: "",
	} {
		resp, err := session.send(clitest.Patient(t), method, message)
		check.NoError(t, err)
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s with the session of another replica: %s", method, resp.Status)
		}
	}
	session.url = a.mcp
	if resp, body := session.post(`{"jsonrpc":"2.0","id":"p","method":"ping"}`); resp.StatusCode != http.StatusOK {
		t.Errorf("its own gateway answers %s %s", resp.Status, body)
	}
	if got := b.agent("/mcp", a.ci).call("echo__look", `{"n":1}`); got.code() != "approval_required" {
		t.Errorf("a new session: %s", got.Raw)
	}
}

// stateless is a client of 2026-07-28 without a token.
func (s *served) stateless(can string) *stateless { return &stateless{s: s, url: s.mcp, can: can} }

// takeOver: if a gateway is killed in a call, another one ends the run, once its lease has run out if it has one. The call is not made again.
func takeOver(t *testing.T) {
	a := newOfficeOn(t, newLedger(t), allowLook, "")
	b := a.beside(t)
	a.u.SetReply(a.u.Hangs)
	a.callsLook(t)
	if d := replicasOf(t, a.config); len(d.Replicas) != 2 || d.Replicas[0].Runs != 1 || d.Left != 0 {
		t.Errorf("while the call is under way: %+v", d)
	}
	a.kill()
	a.u.SetReply(nil)
	run := recorded(t, a.dir)[0].RunID
	runEnded(t, a.dir, run, ledger.Indeterminate, "indeterminate")
	b.u.Reached(t, 1)
	verifies(t, b.dir)
}

const allowLook = "version: 1\npolicies:\n  - {id: all, match: {tool: look}, effect: allow, reason: \"All.\"}\n"

// callsLook makes a call, and returns when it has reached the server. The answer is of no interest.
func (o *office) callsLook(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		resp, err := o.stateless(`{}`).ask(ctx, "tools/call", "echo__look", `"name":"echo__look","arguments":{"n":1}`)
		if err == nil {
			resp.Body.Close()
		}
	}()
	soon(t, "the call is under way", func() bool { return o.u.Calls.Load() == 1 })
}

// fenced: a gateway that was stopped for longer than its lease records nothing more if another one has taken over its runs. It ends, and says
// what to do.
func fenced(t *testing.T) {
	a := newOfficeOn(t, newLedger(t), allowLook, "")
	b := a.beside(t)
	answers := make(chan struct{})
	a.u.SetReply(func(w http.ResponseWriter, r *http.Request, id string) {
		<-answers
		mcptest.Writes("application/json", mcptest.Response("ID", `{"content":[]}`))(w, r, id)
	})
	a.callsLook(t)
	check.NoError(t, a.cmd.Process.Signal(syscall.SIGSTOP))
	run := recorded(t, a.dir)[0].RunID
	runEnded(t, a.dir, run, ledger.Indeterminate, "indeterminate")
	close(answers)
	check.NoError(t, a.cmd.Process.Signal(syscall.SIGCONT))
	a.ends(t, exitCould, "another process has taken the runs of this one over", "start it again")
	if d := replicasOf(t, b.config); len(d.Replicas) != 1 {
		t.Errorf("one is left: %+v", d)
	}
	runEnded(t, a.dir, run, ledger.Indeterminate, "indeterminate")
	b.u.Reached(t, 1)
	verifies(t, b.dir)
}

// databaseAway: without its database a gateway makes no call and says why it is not ready, also if the database only does not answer. It goes on
// when the database is back.
func databaseAway(t *testing.T, proxy *pgtest.Proxy, url string) {
	o := newOfficeOn(t, url, allowLook, "")
	client := o.stateless(`{}`)
	unready := func() bool {
		code, body := o.gets(t, "/readyz", "")
		return code == http.StatusServiceUnavailable && strings.Contains(body, `"reasons":["ledger_unavailable"]`) && !strings.Contains(body, "127.0.0.1")
	}
	works := func() {
		t.Helper()
		soon(t, "the gateway is ready", func() bool { return o.health(t, "/readyz") == http.StatusOK })
		if got := client.call(t, "echo__look", `{"n":1}`); got.code() != "hi" {
			t.Errorf("with its database: %s", got.Raw)
		}
	}
	works()
	for _, away := range []func(){proxy.Cut, proxy.LoseAnswers} {
		away()
		soon(t, "the gateway is not ready", unready)
		client.call(t, "echo__look", `{"n":1}`).wants(t, "record_failed", "not_sent", "later")
		proxy.Restore()
		works()
	}
	o.u.Reached(t, 3)
	verifies(t, o.dir)
}
