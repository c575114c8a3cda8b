package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/telemetry"
	"pgfsm/internal/telemetry/otlptest"
	"pgfsm/internal/test/cli"
	"pgfsm/internal/test/cputime"
	"pgfsm/internal/test/mcptest"
	"pgfsm/mcp/wire"
)

const gatewayBenchTool = `{"name":%q,"description":"Says what it is told.","inputSchema":{"type":"object","properties":` +
	`{"message":{"type":"string","maxLength":4096}},"required":["message"],"additionalProperties":false}}`

// newGatewayUpstream is an MCP server that does as little as there is to do, so that a profile shows the gateway.
func newGatewayUpstream(b *testing.B) string {
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
			result = []byte(mcptest.Hello)
		case "tools/list":
			result = fmt.Appendf(nil, `{"tools":[`+gatewayBenchTool+`,`+gatewayBenchTool+`]}`, "echo", "refused")
		case "tools/call":
			said := wire.Member(wire.Member(m.Params, "arguments"), "message")
			result = append(append([]byte(`{"content":[{"type":"text","text":`), said...), "}]}"...)
		default:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		answer := wire.Response(nil, m.ID, result)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		_, _ = w.Write(answer) // a client that is gone has said why
	}))
	b.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// serveInProcess runs pgfsm serve in this process and returns where it listens, and an agent's token if there is a ledger. More is added to
// its configuration.
func serveInProcess(b testing.TB, upstream string, durable bool, more ...string) (host, token string) {
	config := "version: 1\nserve: {listen: \"127.0.0.1:0\", admin: \"127.0.0.1:0\", record: none}\nallowlist: allowlist.json\npolicy: policy.yaml\n" +
		"servers: {kb: {type: http, url: \"http://" + upstream + "/mcp\"}}\n" + strings.Join(more, "")
	if durable {
		config += "ledger: \"sqlite:pgfsm.db\"\n"
	}
	policies := strings.Builder{}
	for i := range 98 {
		fmt.Fprintf(&policies, "  - {id: other%d, match: {server: erp%d, tool: \"export_*\"}, effect: deny}\n", i, i)
	}
	dir := cli.Folder(b, "pgfsm.yaml", config, "allowlist.json", `{"kb": ["echo", "refused"]}`, "policy.yaml", "version: 1\npolicies:\n"+policies.String()+
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
		if code := <-done; code != exitYes {
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
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "mcp http://"), "/mcp"), token
}

// A benchClient has one session over one connection, and needs next to nothing itself. It speaks a revision in which an answer
// does not become a stream because it takes long.
type benchClient struct {
	conn    net.Conn
	in      *bufio.Reader
	head    string // of every request; ends with "Content-Length: "
	session string
	buf     []byte
}

func newBenchClient(b testing.TB, host, path, token string) *benchClient {
	conn, err := net.Dial("tcp", host)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	c := &benchClient{conn: conn, in: bufio.NewReader(conn)}
	c.head = "POST " + path + " HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
	if token != "" {
		c.head += "Authorization: Bearer " + token + "\r\n"
	}
	hello, err := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
		`"clientInfo":{"name":"bench","version":"1"}}}`)
	if err != nil || c.session == "" {
		b.Fatalf("initialize: %s, %v", hello, err)
	}
	c.head += "Mcp-Session-Id: " + c.session + "\r\n"
	if _, err := c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		b.Fatal(err)
	}
	return c
}

// post returns the body of the answer, which must have a length.
func (c *benchClient) post(body string) ([]byte, error) {
	c.buf = append(c.buf[:0], c.head...)
	c.buf = append(append(strconv.AppendInt(append(c.buf, "Content-Length: "...), int64(len(body)), 10), "\r\n\r\n"...), body...)
	if _, err := c.conn.Write(c.buf); err != nil {
		return nil, err
	}
	length := -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("content-length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return nil, err
			}
		case bytes.EqualFold(name, []byte("mcp-session-id")):
			c.session = string(value)
		case len(value) == 0 && len(name) == len("\r\n"):
			if length < 0 {
				return nil, io.ErrUnexpectedEOF // such an answer is not expected here
			}
			c.buf = append(c.buf[:0], make([]byte, length)...)
			_, err := io.ReadFull(c.in, c.buf)
			return c.buf, err
		}
	}
}

// newCollector is a collector that keeps what it gets, and wants at least so many spans in the end.
func newCollector(b *testing.B, spans int) string {
	var mu sync.Mutex
	var all [][]byte
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			b.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, body)
	}))
	b.Cleanup(func() { // after the gateway has ended
		s.Close()
		n := 0
		for _, body := range all {
			r := httptest.NewRequest(http.MethodPost, "/v1/traces", nil)
			r.Header.Set("Content-Type", "application/x-protobuf")
			got, err := otlptest.Read(r, body)
			if err != nil {
				b.Error(err)
			}
			n += len(got)
		}
		if n < spans {
			b.Errorf("%d spans came, not %d", n, spans)
		}
	})
	return s.URL
}

// BenchmarkGatewayCall is one tools/call through pgfsm serve in this process, and beside it the same call direct: what both
// need of client and server is the direct one's. It is there for profiles; figures with processes of their own are those of
// make bench-gateway. With ledger-provider, the agent's token is that of an identity provider; with the other ledgers, it is a static one.
// With ledger-unmeasured there are no metrics; with ledger-spans every span is exported, to a collector in this process.
func BenchmarkGatewayCall(b *testing.B) {
	upstream, p := newGatewayUpstream(b), identitytest.New(b)
	for _, bm := range []struct {
		name, tool, want string
		gateway, durable bool
	}{
		{"direct", "echo", `"text":"hello"`, false, false},
		{"no-ledger", "echo", `"text":"hello"`, true, false},
		{"no-ledger-denied", "refused", `"code":"policy_denied"`, true, false},
		{"ledger-unmeasured", "echo", `"text":"hello"`, true, true},
		{"ledger", "echo", `"text":"hello"`, true, true},
		{"ledger-spans", "echo", `"text":"hello"`, true, true},
		{"ledger-provider", "echo", `"text":"hello"`, true, true},
		{"ledger-denied", "refused", `"code":"policy_denied"`, true, true},
	} {
		for _, sessions := range []int{1, 32} {
			b.Run(fmt.Sprintf("%s/sessions-%d", bm.name, sessions), func(b *testing.B) {
				host, path, token, exported := upstream, "/mcp", "", ""
				switch bm.name {
				case "ledger-unmeasured":
					defer func(before func() (*telemetry.Metrics, error)) { newMetrics = before }(newMetrics)
					newMetrics = func() (*telemetry.Metrics, error) { return nil, nil }
				case "ledger-spans":
					exported = "telemetry: {otlp: {endpoint: \"" + newCollector(b, 2*(b.N+sessions)) + "\"}}\n"
				}
				switch {
				case bm.name == "ledger-provider":
					host, _ = serveInProcess(b, upstream, bm.durable,
						"identity: {issuers: [{issuer: "+cli.Quote(p.Issuer)+", audiences: {mcp: [gateway]}, groups: /groups}]}\n")
					path, token = "/servers/kb/mcp", p.Sign(map[string]any{"aud": "gateway", "groups": []string{"owners", "oncall"}})
				case bm.gateway:
					host, token = serveInProcess(b, upstream, bm.durable, exported)
					path = "/servers/kb/mcp"
				}
				clients := make([]*benchClient, sessions)
				for i := range clients {
					clients[i] = newBenchClient(b, host, path, token)
				}
				call := func(c *benchClient, n int64) {
					answer, err := c.post(`{"jsonrpc":"2.0","id":` + strconv.FormatInt(n, 10) +
						`,"method":"tools/call","params":{"name":"` + bm.tool + `","arguments":{"message":"hello"}}}`)
					if err != nil || !bytes.Contains(answer, []byte(bm.want)) {
						b.Errorf("call %d: %s, %v", n, answer, err)
					}
				}
				for i, c := range clients {
					call(c, int64(-1-i))
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
			})
		}
	}
}
