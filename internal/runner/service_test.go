package runner_test

import (
	"bufio"
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
	"pgfsm/internal/web"
	"pgfsm/internal/web/loopback"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
)

// signedOn authenticates callers by the header X-User, as behind single sign-on. It knows no ledger.
type signedOn struct{ role string }

func (s signedOn) Authenticate(r *http.Request) (web.Caller, error) {
	name := r.Header.Get("X-User")
	if name == "" {
		return web.Caller{}, web.ErrNoCredentials
	}
	return web.Caller{Name: name, Token: "sign-on", Roles: []string{s.role}}, nil
}

// serve runs a service, which is stopped when the test ends. It returns the addresses of both listeners.
func serve(t *testing.T, r *runner.Runner, o runner.ServiceOptions) (mcp, admin string) {
	t.Helper()
	o.MCP = listen(t)
	return "http://" + o.MCP.Addr().String(), serveAdmin(t, r, o)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	on, err := loopback.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return on
}

// serveAdmin is serve for a service that may have no gateway.
func serveAdmin(t *testing.T, r *runner.Runner, o runner.ServiceOptions) (admin string) {
	t.Helper()
	o.Admin = listen(t)
	s, err := runner.NewService(t.Context(), r, o)
	if err != nil {
		t.Fatal(err)
	}
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

// send sends a request as ann and returns the head of the response.
func send(t *testing.T, method, url, headers, body string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-User", "ann@example.com")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for line := range strings.SplitSeq(headers, "\n") {
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case name == "":
		case name == "Host":
			r.Host = value
		case value == "":
			r.Header.Del(name)
		default:
			r.Header.Set(name, value)
		}
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		_, _ = io.Copy(io.Discard, bufio.NewReader(resp.Body))
		_ = resp.Body.Close()
	}
	return resp
}

// TestAuthenticator: what an agent may do is recorded under the name that the authenticator verified.
func TestAuthenticator(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	o := s.options
	o.Ledger = s.open()
	mcp, _ := serve(t, newRunner(t, o), runner.ServiceOptions{Store: s.memory.Open(), Agents: signedOn{ledger.RoleAgent}})
	resp := send(t, "POST", mcp+"/mcp", "Mcp-Protocol-Version: 2026-07-28\nMcp-Method: tools/call\nMcp-Name: mcp-policy-kb__fetch_policy_entry", call)
	if resp.StatusCode != http.StatusOK || s.calls() != 1 {
		t.Fatalf("status %d, %d calls", resp.StatusCode, s.calls())
	}
	err := s.open().View(t.Context(), func(r ledger.Reader) error {
		for q, err := range r.Requests(ledger.Filter{}) {
			if err != nil {
				return err
			}
			if q.Actor != "ann@example.com" {
				t.Errorf("the actor is %q", q.Actor)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestALogThatLostEntriesEndsTheService shows that a service ends when its ledger does not contain the last checkpoint.
func TestALogThatLostEntriesEndsTheService(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	o := s.options
	o.Ledger = s.open()
	private, _, err := checkpoint.NewKey("pgfsm-log")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	w := &checkpoint.Writer{Dir: t.TempDir(), Every: time.Millisecond, Signers: []note.Signer{signer}}
	size := int64(9)
	w.View = func(_ context.Context, do func(checkpoint.Checkpoint, tlog.HashReader) error) error {
		defer func() { size = 8 }()
		return do(checkpoint.Checkpoint{Origin: "pgfsm-log", Size: size}, nil)
	}
	service, err := runner.NewService(t.Context(), newRunner(t, o), runner.ServiceOptions{Store: s.memory.Open(), Checkpoints: w})
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Run(t.Context()); !errors.Is(err, checkpoint.ErrInconsistent) {
		t.Errorf("Run() = %v, want ErrInconsistent", err)
	}
}
