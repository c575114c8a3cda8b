package main

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

	"pgfsm/traces/ledger"
)

// TestServeFailuresOfTheGatewayItself: it is killed, or asked to end, while a call is under way.
func TestServeFailuresOfTheGatewayItself(t *testing.T) {
	t.Parallel()
	const inLedger, inFiles = "ledger: \"sqlite:pgfsm.db\"\n", "traces: {dir: traces}\n"
	for name, more := range map[string]string{"killed-in-a-call": inLedger, "killed-in-a-call-without-a-ledger": inFiles} { // in any order
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUnruly(t, honest)
			dir := gatewayFolder(t, u.puppet, more)
			s := serve(t, dir)
			a := s.agent("/mcp", "")
			u.does(u.hangs)
			over := make(chan struct{})
			go func() {
				defer close(over)
				a.try(callMessage("echo__look", `{}`))
			}()
			u.await(t, "tools/call")
			s.kill()
			<-over
			u.does(nil)
			s = serve(t, dir)
			soon(t, "the next start says what was left over", func() bool {
				said := s.stderr.String()
				return strings.Contains(said, "a left-over run ended as") && strings.Contains(said, "indeterminate")
			})
			if more == inLedger {
				stands(t, dir, ledger.Indeterminate, "indeterminate")
			}
			u.reached(t, 1)
			s.agent("/mcp", "").gets(t, "echo__look", `{}`, "hi")
			u.reached(t, 2)
			s.stop(t, exitYes)
			if more == inLedger {
				verifies(t, dir)
			} else {
				replays(t, filepath.Join(dir, "traces"), 2)
			}
		})
	}
	t.Run("interrupted-in-a-call-that-ends", func(t *testing.T) {
		t.Parallel()
		u, leave := newUnruly(t, honest), make(chan struct{})
		dir := gatewayFolder(t, u.puppet, inLedger)
		s := serve(t, dir)
		a := s.agent("/mcp", "")
		u.does(u.waitsFor(leave))
		said := make(chan answered, 1)
		go func() { said <- a.call("echo__look", `{}`) }()
		u.await(t, "tools/call")
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
		u.reached(t, 1)
		verifies(t, dir)
	})
	t.Run("interrupted-in-a-call-that-hangs", func(t *testing.T) {
		t.Parallel()
		u := newUnruly(t, honest)
		dir := folder(t, "pgfsm.yaml", fmt.Sprintf("version: 1\nservers: {echo: {type: http, url: %q, timeout: 2m, connect_timeout: 2m}}\nallowlist: allowlist.json\n%s",
			u.URL, inLedger), "allowlist.json", `{"echo": ["look"]}`)
		s := serve(t, dir)
		a := s.agent("/mcp", "")
		u.does(u.hangs)
		over := make(chan struct{})
		go func() {
			defer close(over)
			a.try(callMessage("echo__look", `{}`))
		}()
		u.await(t, "tools/call")
		s.stop(t, exitCould, "1 requests were cut off")
		<-over
		stands(t, dir, ledger.Failed, "cancelled")
		u.reached(t, 1)
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	for _, tt := range []struct{ name, listen, admin, more, says string }{
		{"listen-address-taken", taken.Addr().String(), "127.0.0.1:0", "", "serve.listen (flag --listen): listen tcp " + taken.Addr().String() + ": bind: address already in use"},
		{"admin-address-taken", "127.0.0.1:0", taken.Addr().String(), "", "serve.admin (flag --admin): listen tcp " + taken.Addr().String() + ": bind: address already in use"},
		{"listen-on-other-machines", "0.0.0.0:0", "127.0.0.1:0", "", "reverse proxy with TLS"},
		{"admin-on-other-machines", "127.0.0.1:0", "0.0.0.0:0", "", "reverse proxy with TLS"},
		{"configuration-with-an-unknown-key", "127.0.0.1:0", "127.0.0.1:0", "polizy: p.yaml\n", "polizy"},
		{"configuration-that-is-no-yaml", "127.0.0.1:0", "127.0.0.1:0", "{{{\n", "pgfsm.yaml"},
		{"policy-missing", "127.0.0.1:0", "127.0.0.1:0", "policy: nowhere.yaml\n", "nowhere.yaml"},
		{"policy-broken", "127.0.0.1:0", "127.0.0.1:0", "policy: allowlist.json\n", "allowlist.json"},
		{"secret-not-set", "127.0.0.1:0", "127.0.0.1:0", "ledger: \"sqlite:pgfsm.db\"\n" +
			"approvals: {hooks: [{url: \"https://chat.example.com\", secret: \"${env:NOT_SET_ANYWHERE}\"}]}\n", "NOT_SET_ANYWHERE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := newUnruly(t, honest)
			dir := gatewayFolder(t, u.puppet, tt.more)
			u.refusesToServe(t, dir, tt.listen, tt.admin, tt.says)
		})
	}
	for _, tt := range []struct{ name, allowlist string }{
		{"allowlist-missing", ""},
		{"allowlist-broken", `{"echo": ["look"`},
		{"allowlist-with-a-name-twice", `{"echo": ["look"], "echo": []}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := newUnruly(t, honest)
			dir := gatewayFolder(t, u.puppet, "ledger: \"sqlite:pgfsm.db\"\n")
			at := filepath.Join(dir, "allowlist.json")
			err := os.WriteFile(at, []byte(tt.allowlist), 0o600)
			if tt.allowlist == "" {
				err = os.Remove(at)
			}
			if err != nil {
				t.Fatal(err)
			}
			s := serve(t, dir)
			a := s.agent("/mcp", "")
			if _, list := a.post(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`); !strings.Contains(string(list), `"tools":[]`) {
				t.Errorf("tools/list = %s", list)
			}
			a.call("echo__look", `{}`).wants(t, "tool_not_allowed", "not_sent", "no")
			if ready, healthy := s.health(t, "/readyz"), s.health(t, "/healthz"); ready != http.StatusServiceUnavailable || healthy != http.StatusOK {
				t.Errorf("readyz = %d, healthz = %d", ready, healthy)
			}
			u.reached(t, 0)
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
		u := newUnruly(t, honest)
		s := serve(t, gatewayFolder(t, u.puppet, "serve: {sessions: 2}\n"))
		one, two := s.agent("/mcp", ""), s.agent("/mcp", "")
		third := &agent{s: s, url: s.mcp}
		resp, body := third.post(hi)
		if got := read(t, body); resp.Header.Get("Mcp-Session-Id") != "" || got.Error == nil || !strings.Contains(got.Error.Message, "too much") {
			t.Errorf("the third session: %s %s", resp.Status, body)
		}
		two.gets(t, "echo__look", `{}`, "hi")
		one.remove()
		s.agent("/mcp", "").gets(t, "echo__look", `{}`, "hi")
		u.reached(t, 2)
	})
	t.Run("requests", func(t *testing.T) {
		t.Parallel()
		const most = 64
		u, leave := newUnruly(t, honest), make(chan struct{})
		s := serve(t, gatewayFolder(t, u.puppet, "ledger: \"sqlite:pgfsm.db\"\n"))
		a := s.agent("/mcp", "")
		u.does(u.waitsFor(leave))
		said := make(chan answered, most)
		for range most {
			go func() { said <- a.call("echo__look", `{}`) }()
		}
		for range most {
			u.await(t, "tools/call")
		}
		resp, body := a.post(callMessage("echo__look", `{}`))
		if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(body), `"busy"`) {
			t.Errorf("one more: %s %s", resp.Status, body)
		}
		close(leave)
		for range most {
			if got := <-said; got.code() != "hi" {
				t.Errorf("one of those: %s", got.Raw)
			}
		}
		u.reached(t, most)
		a.gets(t, "echo__look", `{}`, "hi")
	})
}

// TestServeFailuresOfClients: a client goes away while its call is under way.
func TestServeFailuresOfClients(t *testing.T) {
	t.Parallel()
	const more = "ledger: \"sqlite:pgfsm.db\"\n"
	t.Run("gone-with-a-session", func(t *testing.T) {
		t.Parallel()
		u, leave := newUnruly(t, honest), make(chan struct{})
		dir := gatewayFolder(t, u.puppet, more)
		s := serve(t, dir)
		a := s.agent("/mcp", "")
		u.does(u.waitsFor(leave))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		over := make(chan struct{})
		go func() {
			defer close(over)
			if resp, err := a.send(ctx, http.MethodPost, callMessage("echo__look", `{}`)); err == nil { // the stream has begun
				<-ctx.Done()
				resp.Body.Close()
			}
		}()
		u.await(t, "tools/call")
		cancel()
		<-over
		a.gets(t, "echo__burn", `{}`, "-32602")
		close(leave)
		soon(t, "the call has ended", func() bool { return recorded(t, dir)[0].Status == ledger.Executed })
		u.reached(t, 1)
		s.stop(t, exitYes)
		verifies(t, dir)
	})
	t.Run("gone-without-a-session", func(t *testing.T) {
		t.Parallel()
		u := newUnruly(t, honest)
		dir := gatewayFolder(t, u.puppet, more)
		s := serve(t, dir)
		c := &stateless{s: s, url: s.mcp, can: `{}`}
		if got := c.call(t, "echo__look", `{}`); got.code() != "hi" {
			t.Fatalf("a call: %s", got.Raw)
		}
		u.does(u.hangs)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var over sync.WaitGroup
		over.Go(func() {
			if resp, err := c.ask(ctx, "tools/call", "echo__look", `"name":"echo__look","arguments":{}`); err == nil {
				<-ctx.Done()
				resp.Body.Close()
			}
		})
		soon(t, "the second call", func() bool { return u.calls.Load() == 2 })
		cancel()
		over.Wait()
		<-u.cut
		soon(t, "the call has ended", func() bool {
			all := recorded(t, dir)
			return len(all) == 2 && all[1].Ended != ""
		})
		if q := recorded(t, dir)[1]; q.Status != ledger.Failed || q.Code != "cancelled" {
			t.Errorf("the run is %s, %s", q.Status, q.Code)
		}
		u.reached(t, 2)
		s.stop(t, exitYes)
		verifies(t, dir)
	})
}

// refusesToServe wants a gateway not to start: it listens nowhere, and asks no server.
func (u *unruly) refusesToServe(t *testing.T, dir, listen, admin, says string) {
	t.Helper()
	r := command(patient(t), nil, "serve", "-c", filepath.Join(dir, "pgfsm.yaml"), "--listen", listen, "--admin", admin)
	r.want(t, exitCould)
	if r.stdout != "" || !strings.Contains(r.stderr, says) || len(u.came) > 0 {
		t.Errorf("stdout = %q, stderr = %q, and the server was asked %d times", r.stdout, r.stderr, len(u.came))
	}
}
