package runner_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/config"
	"pgfsm/internal/runner"
	"pgfsm/internal/runner/setup"
	"pgfsm/internal/test/check"
	"pgfsm/mcp/gateway"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

const (
	memoHello = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"memo","version":"1"}}`
	memoTools = `{"tools":[{"name":"swap","inputSchema":{"type":"object","additionalProperties":true}}]}`
)

// serveMemo is a server over HTTP whose one tool returns what the call before in the same session said.
func serveMemo(t *testing.T) (url string) {
	var mu sync.Mutex
	last := make(map[string]string) // by session
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, err := wire.Read(body)
		if err != nil || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		session, result := r.Header.Get("Mcp-Session-Id"), ""
		switch m.Method {
		case "initialize":
			session = fmt.Sprint(len(last) + 1)
			last[session], result = "nothing", memoHello
			w.Header().Set("Mcp-Session-Id", session)
		case "tools/list":
			result = memoTools
		case "tools/call":
			result = `{"content":[{"type":"text","text":"` + last[session] + `"}]}`
			last[session] = wire.TextMember(wire.Member(m.Params, "arguments"), "value")
		case "server/discover":
			w.WriteHeader(http.StatusNotFound)
			return
		default:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(wire.Response(nil, m.ID, []byte(result)))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// memo is a gateway without listeners whose server remembers, and whose policy holds every call. The server is a YAML mapping without braces.
func memo(t *testing.T, memory *ledgertest.Store, server, limits string) (runner.Options, *runner.Runner) {
	t.Helper()
	files := fstest.MapFS{
		"pgfsm.yaml": {Data: fmt.Appendf(nil, "version: 1\nservers: {memo: {%s}}\nallowlist: a.json\npolicy: p.yaml\nledger: sqlite:x.db\nlimits: {%s}\n", server, limits)},
		"a.json":     {Data: []byte(`{"memo": ["swap"]}`)},
		"p.yaml":     {Data: []byte("version: 1\npolicies:\n  - {id: looked-at, effect: pending, expires: 1h, reason: A person looks.}\n")},
	}
	loaded, err := config.Load("pgfsm.yaml", files.ReadFile, config.Overrides{})
	check.NoError(t, err)
	s, err := setup.Open(setup.Options{Getenv: os.LookupEnv}, loaded, "pgfsm.yaml")
	check.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	o := s.Runner()
	o.Ledger = open(t, memory)
	return o, newRunner(t, o)
}

// swaps makes an agent's call, which is held, and returns its answer.
func swaps(t *testing.T, r *runner.Runner, u *upstream.Upstreams, who gateway.Identity, value string) gateway.Answer {
	t.Helper()
	return r.Configured().Call(t.Context(), &gateway.ToolCall{
		From: who, Server: "memo", Tool: "swap", Arguments: jsontext.Value(`{"value":"` + value + `"}`),
		Connect: func(ctx context.Context) (gateway.Link, error) {
			l, err := u.Link(ctx, "memo", upstream.Peer{Owner: who.Owner(), Protocol: "2025-11-25"})
			if err != nil {
				return nil, err
			}
			t.Cleanup(l.Close)
			return l, nil
		},
	})
}

// TestApprovedCallsOfTwoIdentities: the server of an approved call has state that only its requester can have prepared, and that nobody else can
// read, unless the operator says that everybody shares a session.
func TestApprovedCallsOfTwoIdentities(t *testing.T) {
	const mayBeEither = "a1 or nothing"
	for _, tt := range []struct {
		name, sessions string
		gateways       int
		resume         bool // by command, not by a worker
		want           []string
	}{
		{"identity", "identity", 1, false, []string{"nothing", "nothing", "a1"}},
		{"session", "session", 1, false, []string{"nothing", "nothing", "a1"}},
		{"one", "one", 1, false, []string{"nothing", "a1", "b1"}},
		{"two-gateways", "identity", 2, false, []string{"nothing", "nothing", mayBeEither}},
		{"resumed-by-command", "identity", 1, true, []string{"nothing", "nothing", "a1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := fmt.Sprintf("type: http, url: %q, sessions: %s", serveMemo(t), tt.sessions)
			memory := ledgertest.NewStore(t)
			var r *runner.Runner
			var o runner.Options
			for range tt.gateways {
				if o, r = memo(t, memory, server, ""); !tt.resume {
					runs(t, o)
				}
			}
			l := open(t, memory)
			alice := token(t, l, "alice@example.com", ledger.RoleApprover)
			ann, bob := agent(t, l, "ann"), agent(t, l, "bob")
			var got []string
			for _, c := range []struct {
				who   gateway.Identity
				value string
			}{{ann, "a1"}, {bob, "b1"}, {ann, "a2"}} {
				swaps(t, r, o.Upstreams, c.who, c.value)
				id := pending(t, l)
				vote(t, l, id, request(t, l, id).Binding, alice, true)
				if tt.resume {
					if _, err := r.Resume(t.Context(), id, nil); err != nil {
						t.Fatal(err)
					}
				}
				if q := ends(t, l, id); q.Status != ledger.Executed {
					t.Fatalf("the call is %s: %s", q.Status, q.Reason)
				}
				status, err := r.Configured().Status(t.Context(), c.who, id)
				check.NoError(t, err)
				got = append(got, string(status))
			}
			for i, want := range tt.want {
				ok := strings.Contains(got[i], `"`+want+`"`)
				if want == mayBeEither { // either gateway makes the call
					ok = strings.Contains(got[i], `"a1"`) || strings.Contains(got[i], `"nothing"`)
				}
				if !ok {
					t.Errorf("call %d returned %s, want what its caller said before: %s", i, got[i], want)
				}
			}
		})
	}
}

// agent is a caller with a token.
func agent(t *testing.T, l *ledger.Ledger, name string) gateway.Identity {
	return gateway.Identity{Name: name, Token: token(t, l, name, ledger.RoleAgent).TokenID}
}

// pending is the one run that waits.
func pending(t *testing.T, l *ledger.Ledger) (id string) {
	t.Helper()
	ids := soonHeld(t, l, 1)
	if len(ids) != 1 {
		t.Fatalf("%d calls wait, want 1", len(ids))
	}
	return ids[0]
}

// TestAnApprovedCallWaitsForItsServerOnly: another server that does not answer delays nothing.
func TestAnApprovedCallWaitsForItsServerOnly(t *testing.T) {
	t.Parallel()
	memory := ledgertest.NewStore(t)
	server := fmt.Sprintf("type: http, url: %q}, silent: {type: stdio, command: /bin/cat, connect_timeout: 1h", serveMemo(t))
	o, r := memo(t, memory, server, "run_timeout: 30s")
	runs(t, o)
	l := open(t, memory)
	swaps(t, r, o.Upstreams, agent(t, l, "ann"), "a1")
	id := pending(t, l)
	vote(t, l, id, request(t, l, id).Binding, token(t, l, "alice@example.com", ledger.RoleApprover), true)
	if q := ends(t, l, id); q.Status != ledger.Executed {
		t.Errorf("the call is %s: %s", q.Status, q.Reason)
	}
	if open, _ := o.Upstreams.Processes(); open != 0 {
		t.Errorf("%d processes of another server were started", open)
	}
}

// TestHeldCallsOfACallerAreBounded: also if they come at the same time. Those of another caller have their own bound.
func TestHeldCallsOfACallerAreBounded(t *testing.T) {
	t.Parallel()
	memory := ledgertest.NewStore(t)
	o, r := memo(t, memory, fmt.Sprintf("type: http, url: %q", serveMemo(t)), "held: 3")
	l := open(t, memory)
	ann := agent(t, l, "ann")
	codes := make([]string, 8)
	var all sync.WaitGroup
	for i := range codes {
		all.Go(func() { codes[i] = codeOf(swaps(t, r, o.Upstreams, ann, fmt.Sprint(i))) })
	}
	all.Wait()
	refused := slices.DeleteFunc(codes, func(code string) bool { return code != string(policy.CodeTooManyHeld) })
	if len(refused) != 5 {
		t.Errorf("%d calls were refused as too many, want 5", len(refused))
	}
	if code := codeOf(swaps(t, r, o.Upstreams, agent(t, l, "bob"), "b")); code != string(policy.CodeApprovalRequired) {
		t.Errorf("the call of another caller ended with %s", code)
	}
	ids := soonHeld(t, l, 4)
	if len(ids) != 4 {
		t.Fatalf("%d calls wait, want 4", len(ids))
	}
	q := request(t, l, ids[0])
	if q.Actor != "ann" {
		q = request(t, l, ids[1])
	}
	vote(t, l, q.RunID, q.Binding, token(t, l, "alice@example.com", ledger.RoleApprover), false)
	if code := codeOf(swaps(t, r, o.Upstreams, ann, "more")); code != string(policy.CodeApprovalRequired) {
		t.Errorf("after a decision, the next call ended with %s", code)
	}
	err := l.View(t.Context(), func(look ledger.Reader) error {
		_, err := ledger.Verify(t.Context(), look, ledger.VerifyOptions{Replayer: traces.NewReplayer(r.Machine(), nil)})
		return err
	})
	if err != nil {
		t.Errorf("the ledger with refused calls: %v", err)
	}
}

// codeOf is the code of a refusal.
func codeOf(a gateway.Answer) string {
	return wire.TextMember(wire.Member(wire.Member(a.Result, "_meta"), "io.pgfsm/decision"), "code")
}
