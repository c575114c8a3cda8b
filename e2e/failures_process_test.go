package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
	"pgfsm/traces/ledger"
)

// TestServeFailuresOfTheGatewayItself: it is killed, or asked to end, while a call is under way.
func TestServeFailuresOfTheGatewayItself(t *testing.T) {
	t.Parallel()
	const inLedger, byDefault = "ledger: \"sqlite:pgfsm.db\"\n", "traces: {dir: .}\n"
	for name, more := range map[string]string{"killed-in-a-call": inLedger, "killed-in-a-call-with-the-default-ledger": byDefault} { // in any order
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := mcptest.New(t, mcptest.Honest)
			dir := gatewayFolder(t, u, more)
			s := serve(t, dir)
			a := s.agent("/mcp", "")
			u.SetReply(u.Hangs)
			over := make(chan struct{})
			go func() {
				defer close(over)
				a.try(callMessage("echo__look", `{}`))
			}()
			u.Await(t, "tools/call")
			s.kill()
			<-over
			u.SetReply(nil)
			s = serve(t, dir)
			soon(t, "the next start says what was left over", func() bool {
				said := s.stderr.String()
				return strings.Contains(said, "a left-over run ended as") && strings.Contains(said, "indeterminate")
			})
			stands(t, dir, ledger.Indeterminate, "indeterminate")
			u.Reached(t, 1)
			s.agent("/mcp", "").gets(t, "echo__look", `{}`, "hi")
			u.Reached(t, 2)
			s.stop(t, exitYes)
			verifies(t, dir)
		})
	}
	t.Run("interrupted-in-a-call-that-ends", func(t *testing.T) {
		t.Parallel()
		u, leave := mcptest.New(t, mcptest.Honest), make(chan struct{})
		dir := gatewayFolder(t, u, inLedger)
		s := serve(t, dir)
		a := s.agent("/mcp", "")
		u.SetReply(u.Waits(leave))
		said := make(chan answered, 1)
		go func() { said <- a.call("echo__look", `{}`) }()
		u.Await(t, "tools/call")
		s.interrupt(t)
		soon(t, "it takes no more clients", func() bool {
			c, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
			if err == nil {
				defer c.Close()
				resp, err := http.Post(s.mcp, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
				if err != nil {
					return true
				}
				resp.Body.Close()
				return resp.StatusCode == http.StatusServiceUnavailable
			}
			return true
		})
		close(leave)
		if got := <-said; got.code() != "hi" {
			t.Errorf("the call: %s", got.Raw)
		}
		s.ends(t, exitYes)
		stands(t, dir, ledger.Executed, "")
		u.Reached(t, 1)
		verifies(t, dir)
	})
	t.Run("interrupted-in-a-call-that-hangs", func(t *testing.T) {
		t.Parallel()
		u := mcptest.New(t, mcptest.Honest)
		dir := clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf("version: 1\nservers: {echo: {type: http, url: %q, timeout: 2m, connect_timeout: 2m}}\nallowlist: allowlist.json\n%s",
			u.URL, inLedger), "allowlist.json", `{"echo": ["look"]}`)
		s := serve(t, dir)
		a := s.agent("/mcp", "")
		u.SetReply(u.Hangs)
		over := make(chan struct{})
		go func() {
			defer close(over)
			a.try(callMessage("echo__look", `{}`))
		}()
		u.Await(t, "tools/call")
		s.stop(t, exitCould, "1 requests were cut off")
		<-over
		stands(t, dir, ledger.Failed, "cancelled")
		u.Reached(t, 1)
		verifies(t, dir)
	})
}

// callMessage is a tools/call as a message.
func callMessage(tool, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, args)
}

// TestServeFailuresAtStart: what is wrong with the surroundings keeps it from starting: nothing listens, no server is asked.
func TestServeFailuresAtStart(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	check.NoError(t, err)
	t.Cleanup(func() { taken.Close() })
	for _, tt := range []struct{ name, listen, admin, more, says string }{
		{"listen-address-taken", taken.Addr().String(), "127.0.0.1:0", "", "serve.listen (flag --listen): listen tcp " + taken.Addr().String() + ": bind: address already in use"},
		{"listen-on-other-machines", "0.0.0.0:0", "127.0.0.1:0", "", "reverse proxy with TLS"},
		{"configuration-with-an-unknown-key", "127.0.0.1:0", "127.0.0.1:0", "polizy: p.yaml\n", "polizy"},
		{"policy-missing", "127.0.0.1:0", "127.0.0.1:0", "policy: nowhere.yaml\n", "nowhere.yaml"},
		{"secret-not-set", "127.0.0.1:0", "127.0.0.1:0", "ledger: \"sqlite:pgfsm.db\"\n" +
			"approvals: {hooks: [{url: \"https://chat.example.com\", secret: \"${env:NOT_SET_ANYWHERE}\"}]}\n", "NOT_SET_ANYWHERE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := mcptest.New(t, mcptest.Honest)
			dir := gatewayFolder(t, u, tt.more)
			refusesToServe(t, u, dir, tt.listen, tt.admin, tt.says)
		})
	}
	for _, tt := range []struct{ name, allowlist string }{
		{"allowlist-missing", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := mcptest.New(t, mcptest.Honest)
			dir := gatewayFolder(t, u, "ledger: \"sqlite:pgfsm.db\"\n")
			at := filepath.Join(dir, "allowlist.json")
			err := os.WriteFile(at, []byte(tt.allowlist), 0o600)
			if tt.allowlist == "" {
				err = os.Remove(at)
			}
			check.NoError(t, err)
			s := serve(t, dir)
			a := s.agent("/mcp", "")
			if _, list := a.post(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`); !strings.Contains(string(list), `"tools":[]`) {
				t.Errorf("tools/list = %s", list)
			}
			a.call("echo__look", `{}`).wants(t, "tool_not_allowed", "not_sent", "no")
			if ready, healthy := s.health(t, "/readyz"), s.health(t, "/healthz"); ready != http.StatusServiceUnavailable || healthy != http.StatusOK {
				t.Errorf("readyz = %d, healthz = %d", ready, healthy)
			}
			u.Reached(t, 0)
			s.stop(t, exitYes, "the allowlist cannot be read")
		})
	}
}

// TestServeFailuresOfTooMuch: what is too much is refused as busy, and nothing else is lost for it.
func TestServeFailuresOfTooMuch(t *testing.T) {
	t.Parallel()
	const hi = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":` +
		`{"name":"test","version":"1"}}}`
	t.Run("sessions", func(t *testing.T) {
		t.Parallel()
		u := mcptest.New(t, mcptest.Honest)
		s := serve(t, gatewayFolder(t, u, "serve: {sessions: 2}\n"))
		one, two := s.agent("/mcp", ""), s.agent("/mcp", "")
		third := &agent{s: s, url: s.mcp}
		resp, body := third.post(hi)
		if got := read(t, body); resp.Header.Get("Mcp-Session-Id") != "" || got.Error == nil || !strings.Contains(got.Error.Message, "too much") {
			t.Errorf("the third session: %s %s", resp.Status, body)
		}
		two.gets(t, "echo__look", `{}`, "hi")
		one.remove()
		s.agent("/mcp", "").gets(t, "echo__look", `{}`, "hi")
		u.Reached(t, 2)
	})
}

// TestServeFailuresOfClients: a client goes away while its call is under way.
func TestServeFailuresOfClients(t *testing.T) {
	t.Parallel()
	const more = "ledger: \"sqlite:pgfsm.db\"\n"
	t.Run("gone-without-a-session", func(t *testing.T) {
		t.Parallel()
		u := mcptest.New(t, mcptest.Honest)
		dir := gatewayFolder(t, u, more)
		s := serve(t, dir)
		c := &stateless{s: s, url: s.mcp, can: `{}`}
		if got := c.call(t, "echo__look", `{}`); got.code() != "hi" {
			t.Fatalf("a call: %s", got.Raw)
		}
		u.SetReply(u.Hangs)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var over sync.WaitGroup
		over.Go(func() {
			if resp, err := c.ask(ctx, "tools/call", "echo__look", `"name":"echo__look","arguments":{}`); err == nil {
				<-ctx.Done()
				resp.Body.Close()
			}
		})
		soon(t, "the second call", func() bool { return u.Calls.Load() == 2 })
		cancel()
		over.Wait()
		<-u.Cut
		soon(t, "the call has ended", func() bool {
			all := recorded(t, dir)
			return len(all) == 2 && all[1].Ended != ""
		})
		if q := recorded(t, dir)[1]; q.Status != ledger.Failed || q.Code != "cancelled" {
			t.Errorf("the run is %s, %s", q.Status, q.Code)
		}
		u.Reached(t, 2)
		s.stop(t, exitYes)
		verifies(t, dir)
	})
}

// refusesToServe wants a gateway not to start: it listens nowhere, and asks no server.
func refusesToServe(t *testing.T, u *mcptest.Server, dir, listen, admin, says string) {
	t.Helper()
	r := command(clitest.Patient(t), nil, "serve", "-c", filepath.Join(dir, "pgfsm.yaml"), "--listen", listen, "--admin", admin)
	r.Want(t, exitCould)
	if r.Stdout != "" || !strings.Contains(r.Stderr, says) || len(u.Came) > 0 {
		t.Errorf("stdout = %q, stderr = %q, and the server was asked %d times", r.Stdout, r.Stderr, len(u.Came))
	}
}
