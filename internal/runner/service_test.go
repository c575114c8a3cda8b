package runner_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/runner"
	"pgfsm/internal/test/check"
	"pgfsm/internal/web/loopback"
	"pgfsm/traces/ledger/checkpoint"
)

// serve runs a service, which is stopped when the test ends. It returns the addresses of both listeners.
func serve(t *testing.T, r *runner.Runner, o runner.ServiceOptions) (mcp, admin string) {
	t.Helper()
	o.MCP = listen(t)
	return "http://" + o.MCP.Addr().String(), serveAdmin(t, r, o)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	on, err := loopback.Listen("127.0.0.1:0")
	check.NoError(t, err)
	return on
}

// serveAdmin is serve for a service that may have no gateway.
func serveAdmin(t *testing.T, r *runner.Runner, o runner.ServiceOptions) (admin string) {
	t.Helper()
	o.Admin = listen(t)
	s, err := runner.NewService(t.Context(), r, o)
	check.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + o.Admin.Addr().String()
}

// message is a JSON-RPC request of the stateless revision.
func message(method, params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`
}

// call is a tools/call of the demo.
var call = message("tools/call", `"name":"mcp-policy-kb__fetch_policy_entry","arguments":{"policy_id":"policy-002"},`)

// client waits with a body until the server wants it, if a request says so: a response to a body that was not read may be lost.
var client = &http.Client{Transport: &http.Transport{ExpectContinueTimeout: patience}}

// post sends a call of a tool of the demo with a token, and returns the answer.
func post(t *testing.T, mcp, token, tool, body string) (status int, text string) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, mcp+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	r.Header = http.Header{
		"Authorization": {"Bearer " + token}, "Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {kb + "__" + tool},
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

// TestALogThatLostEntriesEndsTheService shows that a service ends when its ledger does not contain the last checkpoint.
func TestALogThatLostEntriesEndsTheService(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	o := s.options
	o.Ledger = s.open()
	private, _, err := checkpoint.NewKey("pgfsm-log")
	check.NoError(t, err)
	signer, err := note.NewSigner(private)
	check.NoError(t, err)
	w := &checkpoint.Writer{Dir: t.TempDir(), Every: time.Millisecond, Signers: []note.Signer{signer}}
	size := int64(9)
	w.View = func(_ context.Context, do func(checkpoint.Checkpoint, tlog.HashReader) error) error {
		defer func() { size = 8 }()
		return do(checkpoint.Checkpoint{Origin: "pgfsm-log", Size: size}, nil)
	}
	service, err := runner.NewService(t.Context(), newRunner(t, o), runner.ServiceOptions{Store: s.memory.Open(), Checkpoints: w})
	check.NoError(t, err)
	if err := service.Run(t.Context()); !errors.Is(err, checkpoint.ErrInconsistent) {
		t.Errorf("Run() = %v, want ErrInconsistent", err)
	}
}
