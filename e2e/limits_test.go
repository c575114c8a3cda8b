package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgfsm/internal/telemetry/otlptest"
	"pgfsm/internal/test/check"
)

const allowAnyTool = `version: 1
policies:
  - {id: all, match: {tool: "*"}, effect: allow, require_approval_if: "args.n >= 10", reason: "People decide.", expires: 1h}
`

// TestServeLimits: what the rows about limits.rate in docs/operate/failures.md say, with agents that have used up a limit.
func TestServeLimits(t *testing.T) {
	t.Parallel()
	o := newOffice(t, allowAnyTool, `limits:
  rate:
    identity: {per_minute: 1, burst: 6}
    tools: {echo: {look: {per_minute: 1, burst: 2}}}
`+exporting(otlptest.New(t), 0))
	a := o.agent("/mcp", o.ci) // two requests
	for n := range 2 {
		if got := a.call("echo__look", fmt.Sprintf(`{"n":%d}`, n)); got.Result == nil || got.Result.IsError {
			t.Fatalf("call %d: %s\n%s", n, got.Raw, o.stderr)
		}
	}
	t.Run("calls", func(t *testing.T) {
		got := a.call("echo__look", `{"n":2}`)
		if got.code() != "rate_limited" || !got.Result.IsError {
			t.Fatalf("a third call: %s", got.Raw)
		}
		d, text := got.Result.Meta.Decision, got.Result.Content[0].Text
		if d.Effect != "not_sent" || d.Retry != "later" || d.After < 1 || d.After > 60 || d.RunID != "" {
			t.Errorf("the decision is %+v", d)
		}
		if want := "The call was not sent: The tool look of server echo may have 1 call a minute. Send the call again in "; !strings.HasPrefix(text, want) {
			t.Errorf("the text is %q, want %q", text, want)
		}
		if got := o.agent("/mcp", makeToken(t, o.config, "agent", "other")).call("echo__look", `{"n":3}`); got.code() != "rate_limited" {
			t.Errorf("another agent's call: %s", got.Raw)
		}
	})
	t.Run("requests", func(t *testing.T) {
		a.call("echo__look", `{"n":4}`)
		for _, message := range []string{`{"jsonrpc":"2.0","id":9,"method":"ping"}`, `{"jsonrpc":`} {
			resp, err := a.send(t.Context(), http.MethodPost, message)
			check.NoError(t, err)
			all, err := messages(resp)
			resp.Body.Close()
			after, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
			if err != nil || resp.StatusCode != http.StatusTooManyRequests || after < 1 || after > 60 || len(all) != 1 ||
				!strings.Contains(string(all[0]), `"code":"rate_limited"`) {
				t.Errorf("%s: %s, Retry-After %d, %s, %v", message, resp.Status, after, all, err)
			}
		}
		a.remove() // ends a session
	})
	if n := len(recorded(t, o.dir)); n != 2 {
		t.Errorf("%d runs are recorded, want 2", n)
	}
	_, _, text := o.scraped(t, nil)
	for _, want := range []string{`pgfsm_limited_total{by="tool"} 3`, `pgfsm_limited_total{by="identity"} 2`} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
	o.stop(t, 0, "limited")
	if log := o.stderr.String(); !regexp.MustCompile(`msg=limited by=tool .* trace=[0-9a-f]{32}\n`).MatchString(log) {
		t.Errorf("the log does not name the trace of a limited call:\n%s", log)
	}
}
