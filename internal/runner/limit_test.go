package runner_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/config"
	"pgfsm/internal/runner"
	"pgfsm/internal/secret"
	"pgfsm/internal/test/check"
	"pgfsm/policy/rules"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

const kb = "mcp-policy-kb"

// noLimit limits nothing.
func noLimit() config.RateLimit {
	return config.RateLimit{PerMinute: config.NoLimit, Burst: config.NoLimit, AtOnce: config.NoLimit}
}

// rare is a burst of so many, and hardly any more in the time of a test.
func rare(burst int) config.RateLimit {
	return config.RateLimit{PerMinute: 1, Burst: burst, AtOnce: config.NoLimit}
}

// toolLimit limits one tool.
func toolLimit(server, tool string, limit config.RateLimit) config.Table[config.Table[config.RateLimit]] {
	return config.Table[config.Table[config.RateLimit]]{{Name: server, Value: config.Table[config.RateLimit]{{Name: tool, Value: limit}}}}
}

// A limitedStage is a gateway with limits over the demo's servers, and its metrics.
type limitedStage struct {
	*stage
	mcp    string
	admin  string
	ledger *ledger.Ledger
}

// newLimitedStage opens one.
func newLimitedStage(t *testing.T, content *rules.Content, limits *config.Rate, change func(*config.Serve)) *limitedStage {
	t.Helper()
	s := &limitedStage{stage: newStage(t, content)}
	s.ledger = s.open()
	o := s.options
	o.Ledger, o.Serve.Rate = s.ledger, limits
	if change != nil {
		change(&o.Serve)
	}
	s.mcp, s.admin = serve(t, newRunner(t, o), runner.ServiceOptions{Store: s.memory.Open()})
	return s
}

// as sends a call as a user and returns the answer.
func (s *limitedStage) as(user, tool, body string) (status int, text string) {
	return post(s.t, s.mcp, newToken(s.t, s.ledger, user, ledger.RoleAgent), tool, body)
}

// counted is the value of a metric.
func (s *limitedStage) counted(t *testing.T, metric string) string {
	t.Helper()
	resp, err := http.Get(s.admin + "/metrics")
	check.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	check.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, metric+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// runsOf counts the runs in the ledger.
func (s *limitedStage) runsOf(t *testing.T) (n int) {
	t.Helper()
	err := s.ledger.View(t.Context(), func(r ledger.Reader) error {
		n = 0
		for _, err := range r.Runs(ledger.Filter{}) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	check.NoError(t, err)
	return n
}

// fetch is a call of a tool with a policy as its argument.
func fetch(tool, id string) string {
	return message("tools/call", `"name":"`+kb+`__`+tool+`","arguments":{"policy_id":"`+id+`"},`)
}

// TestLimitsOfServersAndTools: a call that a limit refuses has a result for the agent, makes no call and is not recorded. A call that no gate
// lets through takes nothing from other callers.
func TestLimitsOfServersAndTools(t *testing.T) {
	for _, tt := range []struct {
		name, by, reason string
		limits           config.Rate
		denials          string
	}{
		{"tool", "tool", "The tool fetch_policy_entry of server mcp-policy-kb may have 1 call a minute. Send the call again in ",
			config.Rate{Identity: noLimit(), Tools: toolLimit(kb, "fetch_policy_entry", rare(2))}, config.DenialsExplain},
		{"opaque", "server", "A limit is used up. Send the call again in ",
			config.Rate{Identity: noLimit(), Servers: config.Table[config.RateLimit]{{Name: kb, Value: rare(2)}}}, config.DenialsOpaque},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newLimitedStage(t, nil, &tt.limits, func(o *config.Serve) { o.Denials = tt.denials })
			for range 10 {
				if status, text := s.as("eve", "fetch_policy_entry", fetch("fetch_policy_entry", `","x":"`)); status != http.StatusOK ||
					!strings.Contains(text, `"arguments_invalid"`) {
					t.Fatalf("a call that does not conform: %d %s", status, text)
				}
			}
			for i := range 4 {
				status, text := s.as(fmt.Sprint("user-", i), "fetch_policy_entry", call)
				refused := strings.Contains(text, `"code":"rate_limited"`)
				if status != http.StatusOK || refused != (i >= 2) {
					t.Fatalf("call %d: %d %s", i, status, text)
				}
				if refused && (!strings.Contains(text, `"isError":true`) || !strings.Contains(text, `"text":"The call was not sent: `+tt.reason) ||
					!strings.Contains(text, `"retry":"later"`) || !strings.Contains(text, `"retry_after_s":`) || !strings.Contains(text, `"run_id":""`)) {
					t.Errorf("the refusal is %s", text)
				}
			}
			if _, text := s.as("eve", "delete_policy_entry", fetch("delete_policy_entry", "policy-001")); strings.Contains(text, `"rate_limited"`) {
				t.Errorf("a tool that is not on the allowlist counts at its server: %s", text)
			}
			if s.calls() != 2 || s.runsOf(t) != 13 {
				t.Errorf("the server got %d calls, want 2; the ledger has %d runs, want 13", s.calls(), s.runsOf(t))
			}
			if got := s.counted(t, `pgfsm_limited_total{by="`+tt.by+`"}`); got != "2" {
				t.Errorf("%q refusals are counted, want 2", got)
			}
		})
	}
}

// TestLimitsOfHeldCalls: a held call takes its place when it is requested. While it waits it is not under way, and who asks for its outcome
// takes nothing.
func TestLimitsOfHeldCalls(t *testing.T) {
	limit := rare(2)
	limit.AtOnce = 1
	s := newLimitedStage(t, hold, &config.Rate{Identity: noLimit(), Servers: config.Table[config.RateLimit]{{Name: kb, Value: limit}}}, nil)
	for i := range 3 { // one call, repeated
		if _, text := s.as("ann", "fetch_policy_entry", call); !strings.Contains(text, `"approval_required"`) {
			t.Fatalf("request %d: %s", i, text)
		}
	}
	if _, text := s.as("ann", "fetch_policy_entry", fetch("fetch_policy_entry", "policy-001")); !strings.Contains(text, `"approval_required"`) {
		t.Fatalf("another call: %s", text)
	}
	if _, text := s.as("ann", "fetch_policy_entry", fetch("fetch_policy_entry", "policy-003")); !strings.Contains(text, `"rate_limited"`) {
		t.Fatalf("a third call: %s", text)
	}
	if n := s.runsOf(t); n != 2 {
		t.Errorf("the ledger has %d runs, want 2", n)
	}
	alice := token(t, s.ledger, "alice@example.com", ledger.RoleApprover)
	ids := soonHeld(t, s.ledger, 2)
	for _, id := range ids {
		vote(t, s.ledger, id, request(t, s.ledger, id).Binding, alice, true)
	}
	for _, id := range ids {
		if q := ends(t, s.ledger, id); q.Status != ledger.Executed {
			t.Errorf("an approved run is %s: %s", q.Status, q.Reason)
		}
	}
	if s.calls() != 2 {
		t.Errorf("the server got %d calls, want 2", s.calls())
	}
}

// TestLimitsWhileACallIsHeldOpen: a call whose request is held open for people is not under way.
func TestLimitsWhileACallIsHeldOpen(t *testing.T) {
	limit := noLimit()
	limit.AtOnce = 1
	s := newLimitedStage(t, hold, &config.Rate{Identity: limit}, func(o *config.Serve) { o.Hold = time.Minute.Milliseconds() })
	answers := make(chan string, 2)
	for i, id := range []string{"policy-001", "policy-002"} {
		go func() {
			var text string
			_ = ledger.Poll(t.Context(), 5*time.Millisecond, func() (bool, error) { // the place is free a moment after the ledger shows the held run
				var status int
				status, text = s.as("ann", "fetch_policy_entry", fetch("fetch_policy_entry", id))
				return status != http.StatusTooManyRequests, nil
			})
			answers <- text
		}()
		soonHeld(t, s.ledger, i+1)
	}
	alice := token(t, s.ledger, "alice@example.com", ledger.RoleApprover)
	for _, id := range soonHeld(t, s.ledger, 2) {
		vote(t, s.ledger, id, request(t, s.ledger, id).Binding, alice, true)
	}
	for range 2 {
		if text := <-answers; !strings.Contains(text, `"structuredContent"`) {
			t.Errorf("a call that was held open: %s", text)
		}
	}
}

// soonHeld waits until so many runs are held, and returns their ids.
func soonHeld(t *testing.T, l *ledger.Ledger, n int) (ids []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := ledger.Poll(ctx, 5*time.Millisecond, func() (bool, error) {
		err := l.View(ctx, func(r ledger.Reader) error {
			ids = nil
			for q, err := range r.Runs(ledger.Filter{Statuses: []ledger.Status{ledger.Pending}, Open: true, Held: true}) {
				if err != nil {
					return err
				}
				ids = append(ids, q.RunID)
			}
			return nil
		})
		return len(ids) >= n, err
	})
	if err != nil {
		t.Fatalf("%d of %d runs are held: %v", len(ids), n, err)
	}
	return ids
}

// TestWorkerWithLimits: many more approved runs than may be under way or are resumed at once all end, and they take nothing from buckets.
func TestWorkerWithLimits(t *testing.T) {
	t.Parallel()
	memory := ledgertest.NewStore(t)
	l := open(t, memory)
	alice := token(t, l, "alice@example.com", ledger.RoleApprover)
	ids := held(t, l, 40, alice, true)
	limit := rare(1)
	limit.AtOnce = 1
	runs(t, runner.Options{Ledger: open(t, memory), Config: runner.Config{
		Upstreams: noServers(t), Bundle: statestest.MustBundle(statestest.Content(), nil), Secrets: secret.New(nil),
		Serve: config.Serve{Rate: &config.Rate{
			Identity: rare(1), Servers: config.Table[config.RateLimit]{{Name: statestest.Server, Value: limit}},
			Tools: toolLimit(statestest.Server, statestest.Tool, limit),
		}},
	}})
	for _, id := range ids {
		ends(t, l, id)
	}
}
