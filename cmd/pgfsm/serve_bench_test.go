package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgfsm/internal/cli"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/cputime"
	"pgfsm/mcp/wire"
)

// newBenchUpstream is an MCP server that does as little as there is to do, so that a profile shows the gateway.
func newBenchUpstream(b *testing.B) string {
	const tool = `{"name":%q,"description":"Says what it is told.","inputSchema":{"type":"object","properties":` +
		`{"message":{"type":"string","maxLength":4096}},"required":["message"],"additionalProperties":false}}`

	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			b.Error(err)
		}
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		m, err := wire.Read(body)
		if err != nil {
			b.Error(err)
		}

		var result []byte
		switch m.Method {
		case "initialize":
			w.Header().Set("Mcp-Session-Id", "1")
			result = []byte(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}`)
		case "tools/list":
			result = fmt.Appendf(nil, `{"tools":[`+tool+`,`+tool+`]}`, "echo", "refused")
		case "tools/call":
			said := wire.Member(wire.Member(m.Params, "arguments"), "message")
			result = append(append([]byte(`{"content":[{"type":"text","text":`), said...), "}]}"...)
		default:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(wire.Response(nil, m.ID, result)) // a client that is gone has said why
	}))
	b.Cleanup(s.Close)
	return s.URL + "/mcp"
}

// serveInProcess runs pgfsm serve in this process. It returns the URL of the server kb at the gateway, and an agent's token if there is a ledger.
func serveInProcess(b *testing.B, upstream string, durable bool, more string) (url, token string) {
	config := "version: 1\nserve: {listen: \"127.0.0.1:0\", admin: \"127.0.0.1:0\", record: none}\nallowlist: allowlist.json\npolicy: policy.yaml\n" +
		"servers: {kb: {type: http, url: \"" + upstream + "\"}}\n" + more
	if durable {
		config += "ledger: \"sqlite:pgfsm.db\"\n"
	}
	var policies strings.Builder
	for i := range 98 {
		fmt.Fprintf(&policies, "  - {id: other%d, match: {server: erp%d, tool: \"export_*\"}, effect: deny}\n", i, i)
	}
	dir := clitest.Folder(b, "pgfsm.yaml", config, "allowlist.json", `{"kb": ["echo", "refused"]}`, "policy.yaml", "version: 1\npolicies:\n"+policies.String()+
		"  - {id: refused, match: {tool: refused}, effect: deny, reason: Not this one.}\n"+
		"  - {id: work, when: 'risk.mode != \"danger\"', effect: allow}\n")
	path := filepath.Join(dir, "pgfsm.yaml")
	if durable {
		r := command(b.Context(), nil, "token", "create", "-c", path, "--role", "agent", "--name", "bench", "--json")
		if token = r.Member("/secret"); token == "" {
			b.Fatalf("token create = %d %s", r.Code, r.Stderr)
		}
	}

	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	var said bytes.Buffer
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"serve", "-c", path}, world{
			stdin: strings.NewReader(""), stdout: in, stderr: &said, getenv: func(string) (string, bool) { return "", false },
		})
		in.Close()
	}()
	b.Cleanup(func() {
		cancel()
		if code := <-done; code != cli.ExitYes {
			b.Errorf("serve ended with %d: %s", code, said.String())
		}
	})

	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil {
		cancel()
		b.Fatalf("serve said %q, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "mcp "), "/mcp") + "/servers/kb/mcp", token
}

// A benchClient has one session. It speaks a revision in which an answer does not become a stream because it takes long.
type benchClient struct {
	http   http.Client
	url    string
	header http.Header
}

func newBenchClient(b *testing.B, url, token string) *benchClient {
	c := &benchClient{http: http.Client{Transport: &http.Transport{}}, url: url, header: http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
	}}
	b.Cleanup(c.http.CloseIdleConnections)
	if token != "" {
		c.header.Set("Authorization", "Bearer "+token)
	}
	hello, session, err := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
		`"clientInfo":{"name":"bench","version":"1"}}}`)
	if err != nil || session == "" {
		b.Fatalf("initialize: %s, %v", hello, err)
	}
	c.header.Set("Mcp-Session-Id", session)
	if _, _, err := c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		b.Fatal(err)
	}
	return c
}

func (c *benchClient) post(body string) (answer []byte, session string, err error) {
	r, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	r.Header = c.header
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return answer, resp.Header.Get("Mcp-Session-Id"), err
}

// BenchmarkGatewayCall is one tools/call through pgfsm serve in this process, and beside it the same call direct: what both need of
// client and server is the direct one's. It is there for profiles and allocations; figures with processes of their own are those of
// make bench-gateway. With ledger-spans every span is exported.
func BenchmarkGatewayCall(b *testing.B) {
	upstream := newBenchUpstream(b)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	b.Cleanup(collector.Close)
	for _, bm := range []struct {
		name, tool, want string
		gateway, durable bool
		spans            bool
	}{
		{name: "direct", tool: "echo", want: `"text":"hello"`},
		{name: "no-ledger", tool: "echo", want: `"text":"hello"`, gateway: true},
		{name: "no-ledger-denied", tool: "refused", want: `"code":"policy_denied"`, gateway: true},
		{name: "ledger", tool: "echo", want: `"text":"hello"`, gateway: true, durable: true},
		{name: "ledger-spans", tool: "echo", want: `"text":"hello"`, gateway: true, durable: true, spans: true},
	} {
		for _, sessions := range []int{1, 32} {
			b.Run(fmt.Sprintf("%s/sessions-%d", bm.name, sessions), func(b *testing.B) {
				url, token, more := upstream, "", ""
				if bm.spans {
					more = "telemetry: {otlp: {endpoint: \"" + collector.URL + "\"}}\n"
				}
				if bm.gateway {
					url, token = serveInProcess(b, upstream, bm.durable, more)
				}
				benchCalls(b, url, token, sessions, bm.tool, bm.want)
			})
		}
	}
}

// benchCalls makes b.N calls over some sessions at the same time.
func benchCalls(b *testing.B, url, token string, sessions int, tool, want string) {
	clients := make([]*benchClient, sessions)
	call := func(c *benchClient, n int64) {
		answer, _, err := c.post(`{"jsonrpc":"2.0","id":` + strconv.FormatInt(n, 10) +
			`,"method":"tools/call","params":{"name":"` + tool + `","arguments":{"message":"hello"}}}`)
		if err != nil || !bytes.Contains(answer, []byte(want)) {
			b.Errorf("call %d: %s, %v", n, answer, err)
		}
	}
	for i := range clients {
		clients[i] = newBenchClient(b, url, token)
		call(clients[i], int64(-1-i))
	}

	b.ReportAllocs()
	b.ResetTimer()
	measured := cputime.Measure(b)
	var next atomic.Int64
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() {
			for n := next.Add(1); n <= int64(b.N) && !b.Failed(); n = next.Add(1) {
				call(c, n)
			}
		})
	}
	all.Wait()
	measured()
}
