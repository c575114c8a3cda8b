package runner_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"pgfsm/internal/canonical"
	"pgfsm/internal/config"
	"pgfsm/internal/runner"
	"pgfsm/internal/secret"
	"pgfsm/internal/test/check"
	"pgfsm/llm"
	"pgfsm/mcp/demo"
	"pgfsm/mcp/upstream"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

func TestMain(m *testing.M) { os.Exit(ledgertest.Main(m)) }

const patience = 30 * time.Second

// question is answered by a route of the demo, with one call of policy-kb.
const question = "Summarize policy policy-002"

// hold holds every call for an hour.
var hold = statestest.Policies(rules.Policy{
	ID: "looked-at", Effect: rules.Pending, Reason: "A person looks.", Expires: time.Hour.Milliseconds(),
})

// A stage is the demo configuration with its servers, and a ledger in memory.
type stage struct {
	t       *testing.T
	options runner.Options
	memory  *ledgertest.Store
	fleet   *demo.Fleet
}

// newStage starts the demo's servers. Its policy may be nil.
func newStage(t *testing.T, content *rules.Content) *stage {
	t.Helper()
	loaded, err := config.Load(config.FileName, config.Demo.ReadFile, config.Overrides{})
	check.NoError(t, err)
	loaded.Content.Policy = content
	s := &stage{t: t, memory: ledgertest.NewStore(t)}
	if s.fleet, err = demo.Listen(context.Background(), slices.Repeat([]string{"127.0.0.1:0"}, len(loaded.Servers))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.fleet.Close() })
	s.options = runner.Options{Config: runner.Config{Bundle: statestest.MustBundle(loaded.Content, nil), Secrets: secret.New(nil), Serve: loaded.Serve}}
	s.options.Planner, s.options.Summarizer, err = llm.Configured(&loaded.Content.Planner, "", s.options.Secrets)
	check.NoError(t, err)
	var servers []upstream.Server
	for _, c := range loaded.Servers {
		servers = append(servers, upstream.Server{Name: c.Name, Type: upstream.TypeSSE, URL: s.fleet.URL(c.Name, "sse")})
	}
	s.options.Upstreams = upstream.New(servers, upstream.Limits{}, upstream.Info{}, s.options.Secrets)
	t.Cleanup(func() { _ = s.options.Upstreams.Close() })
	return s
}

// open opens the ledger as another process would.
func (s *stage) open() *ledger.Ledger { return open(s.t, s.memory) }

func open(t *testing.T, memory *ledgertest.Store) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), memory.Open(), ledger.Options{})
	check.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// runner is a Runner of its own on the ledger.
func (s *stage) runner() *runner.Runner {
	s.t.Helper()
	o := s.options
	o.Ledger = s.open()
	return newRunner(s.t, o)
}

func newRunner(t *testing.T, o runner.Options) *runner.Runner {
	t.Helper()
	r, err := runner.New(o)
	check.NoError(t, err)
	return r
}

// calls is how many tool calls have reached the servers.
func (s *stage) calls() (n int) {
	for _, server := range s.fleet.Servers() {
		n += len(server.Calls())
	}
	return n
}

// newToken is the text of a token of a role.
func newToken(t *testing.T, l *ledger.Ledger, name, role string) string {
	t.Helper()
	text, _, err := l.CreateToken(t.Context(), ledger.LocalUser("local:root"), name, role, "")
	check.NoError(t, err)
	return text
}

// A token of a role, by which its owner calls.
func token(t *testing.T, l *ledger.Ledger, name, role string) ledger.Caller {
	t.Helper()
	who, err := l.Authenticate(t.Context(), newToken(t, l, name, role))
	check.NoError(t, err)
	return who
}

// vote decides about a held run.
func vote(t *testing.T, l *ledger.Ledger, run string, binding canonical.Digest, by ledger.Caller, approve bool) {
	t.Helper()
	if _, err := l.Vote(t.Context(), ledger.Ballot{Run: run, Binding: binding, By: by, Approve: approve, Reason: "as decided"}); err != nil {
		t.Fatal(err)
	}
}

// request reads a run of the ledger.
func request(t *testing.T, l *ledger.Ledger, run string) (q ledger.RunRow) {
	t.Helper()
	err := l.View(t.Context(), func(r ledger.Reader) (err error) {
		q, err = r.Run(run)
		return err
	})
	check.NoError(t, err)
	return q
}

// ends waits until a run has ended.
func ends(t *testing.T, l *ledger.Ledger, run string) (q ledger.RunRow) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := ledger.Poll(ctx, 5*time.Millisecond, func() (bool, error) {
		q = request(t, l, run)
		return q.Ended != "", nil
	})
	if err != nil {
		t.Fatalf("the run %s is %s: %v", run, q.Status, err)
	}
	return q
}

// held records runs in state pending that the world of package statestest asks for, and decides about them. Their ids are in order.
func held(t *testing.T, l *ledger.Ledger, n int, by ledger.Caller, approve bool) (ids []string) {
	t.Helper()
	content := statestest.Content()
	content.Policy = hold
	bundle, machine := statestest.MustBundle(content, nil), statestest.MustMachine(t)
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		id, err := uuid.NewV7()
		check.NoError(t, err)
		ids = append(ids, id.String())
		all.Go(func() { errs[i] = holdOne(l, machine, bundle, id.String(), by, approve) })
	}
	all.Wait()
	check.NoError(t, errors.Join(errs...))
	return ids
}

func holdOne(l *ledger.Ledger, machine *states.Machine, bundle *policy.Bundle, id string, by ledger.Caller, approve bool) error {
	run := states.NewRun(id, states.Request{
		Actor: statestest.Actor, At: time.Now().UTC().Format(policy.TimeForm), Kind: states.KindAsk, Text: canonical.Text(statestest.Question),
	}, bundle)
	rec := l.Begin(traces.NewHeader(machine, run), run)
	defer rec.Abandon()
	if _, err := machine.Advance(context.Background(), run, rec.Effects(statestest.NewWorld().Effects()), rec); err != nil {
		return err
	}
	_, err := l.Vote(context.Background(), ledger.Ballot{Run: id, Binding: run.HeldCall().Binding, By: by, Approve: approve, Reason: "as decided"})
	return err
}

// newReplayer executes runs again.
func newReplayer(t *testing.T) *traces.Replayer {
	t.Helper()
	return traces.NewReplayer(statestest.MustMachine(t), nil)
}
