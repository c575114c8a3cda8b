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
	"pgfsm/traces/ledger/api"
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

// adds is middleware that sets a header on every response.
func adds(name, value string) web.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(name, value)
			next.ServeHTTP(w, r)
		})
	}
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

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
	`"clientInfo":{"name":"c","version":"1"}}}`

// TestMiddleware: a header that one middleware sets is on every response that the handler of either listener writes.
func TestMiddleware(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	o := s.options
	o.Ledger = s.open()
	mcp, admin := serve(t, newRunner(t, o), runner.ServiceOptions{
		Store: s.memory.Open(), Agents: signedOn{ledger.RoleAgent}, People: signedOn{ledger.RoleApprover},
		Middleware: []web.Middleware{adds("X-Wrapped", "yes"), adds("X-Also", "yes")},
	})
	const statelessHeaders = "Mcp-Protocol-Version: 2026-07-28\nMcp-Method: "
	session := ""
	for _, tt := range []struct {
		name, method, url, headers, body string
		status                           int
		typed                            string // of the response; empty: any
	}{
		{"call", "POST", mcp + "/mcp", statelessHeaders + "tools/call\nMcp-Name: mcp-policy-kb__fetch_policy_entry", call, 200, ""},
		{"initialize", "POST", mcp + "/mcp", "", initialize, 200, ""},
		{"notification", "POST", mcp + "/mcp", "SESSION", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, 202, ""},
		{"stream", "GET", mcp + "/mcp", "SESSION\nAccept: text/event-stream", "", 200, "text/event-stream"},
		{"stream-of-2024", "GET", mcp + "/sse", "Accept: text/event-stream", "", 200, "text/event-stream"},
		{"subscriptions", "POST", mcp + "/mcp", statelessHeaders + "subscriptions/listen",
			message("subscriptions/listen", `"notifications":{"toolsListChanged":true},`), 200, "text/event-stream"},
		{"session-ends", "DELETE", mcp + "/mcp", "SESSION", "", 0, ""},
		{"unknown-session", "GET", mcp + "/mcp", "Mcp-Session-Id: none\nAccept: text/event-stream", "", 404, ""},
		{"not-authenticated", "POST", mcp + "/mcp", "Authorization: Bearer x\nX-User: ", call, 401, ""},
		{"another-host", "POST", mcp + "/mcp", "Host: evil.example", call, 403, ""},
		{"unknown-path", "GET", mcp + "/nothing", "", "", 404, ""},
		{"unknown-method", "PUT", mcp + "/mcp", "", "{}", 405, ""},
		{"not-accepted", "POST", mcp + "/mcp", "Accept: image/png", call, 406, ""},
		{"too-large", "POST", mcp + "/mcp", "Expect: 100-continue", strings.Repeat("x", 5<<20), 413, ""},
		{"another-type", "POST", mcp + "/mcp", "Content-Type: text/plain", call, 415, ""},
		{"not-json", "POST", mcp + "/mcp", "", "{", 400, ""},
		{"no-such-run", "GET", mcp + "/status/01939f0e-7d5c-7b1e-8d5e-2f6c1a0b9e3d", "", "", 404, ""},

		{"healthy", "GET", admin + "/healthz", "", "", 200, ""},
		{"ready", "GET", admin + "/readyz", "", "", 200, ""},
		{"description", "GET", admin + "/openapi.yaml", "", "", 200, ""},
		{"pending", "GET", admin + "/pending", "", "", 200, ""},
		{"only-the-header", "HEAD", admin + "/pending", "", "", 200, ""},
		{"people-not-authenticated", "GET", admin + "/pending", "X-User: ", "", 401, ""},
		{"people-on-another-host", "GET", admin + "/pending", "Host: evil.example", "", 421, ""},
		{"people-at-an-unknown-path", "GET", admin + "/nothing", "", "", 404, ""},
		{"people-with-an-unknown-method", "PUT", admin + "/pending", "", "", 405, ""},
		{"people-who-take-no-json", "GET", admin + "/pending", "Accept: image/png", "", 406, ""},
		{"body-too-large", "POST", admin + "/approve/01939f0e-7d5c-7b1e-8d5e-2f6c1a0b9e3d", "", strings.Repeat("x", api.MaxBody+1), 413, ""},
		{"no-json", "POST", admin + "/approve/01939f0e-7d5c-7b1e-8d5e-2f6c1a0b9e3d", "", "{", 0, ""},
		{"unknown-parameter", "GET", admin + "/pending?x=1", "", "", 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp := send(t, tt.method, tt.url, strings.Replace(tt.headers, "SESSION", "Mcp-Protocol-Version: 2025-11-25\nMcp-Session-Id: "+session, 1), tt.body)
			if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
				session = id
			}
			if resp.Header.Get("X-Wrapped") != "yes" || resp.Header.Get("X-Also") != "yes" {
				t.Errorf("%d without the headers of the middleware: %v", resp.StatusCode, resp.Header)
			}
			if tt.status != 0 && resp.StatusCode != tt.status {
				t.Errorf("status %d, want %d", resp.StatusCode, tt.status)
			}
			if !strings.HasPrefix(resp.Header.Get("Content-Type"), tt.typed) {
				t.Errorf("a response of type %q, want %q", resp.Header.Get("Content-Type"), tt.typed)
			}
		})
	}
	if s.calls() != 1 {
		t.Errorf("%d calls reached the servers, want 1", s.calls())
	}
}

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
