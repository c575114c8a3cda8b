package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/loopback"
)

// What the front adds to a call, without a connection.
func BenchmarkFront(b *testing.B) {
	for _, size := range []int{32, 64 << 10, 1 << 20} {
		for _, era := range []string{"2026-07-28", "2025-11-25"} {
			b.Run(fmt.Sprintf("%s/%d", era, size), func(b *testing.B) {
				g, _ := scripted(&testing.T{}, nil)
				headers := []string{"Mcp-Protocol-Version: " + era}
				params := `{"name":"echo","arguments":{"text":"` + strings.Repeat("x", size) + `"}`
				if era == Stateless {
					headers = append(headers, "Mcp-Method: tools/call", "Mcp-Name: echo")
					params += "," + meta
				} else {
					headers = append(headers, "Mcp-Session-Id: "+begin(&testing.T{}, g, "/mcp", era))
				}
				body := rpc("1", "tools/call", params+"}")
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					w := httptest.NewRecorder()
					g.Handler().ServeHTTP(w, come("POST", "/mcp", body, headers...))
					if w.Code != 200 {
						b.Fatal(w.Body)
					}
				}
			})
		}
	}
}

// An ungated call is made by nobody: what is left is what the gateway itself does for one.
type ungated struct{ *judge }

func (ungated) Call(ctx context.Context, a *Ask) Answer {
	if _, err := a.Link(ctx); err != nil {
		return Answer{Error: invalid(codeRefused, err.Error())}
	}
	return Answer{Native: true, Result: jsontext.Value(`{"content":[{"type":"text","text":"hello"}]}`)}
}

// A blank page takes an answer and keeps nothing but the status.
type blankPage struct {
	header http.Header
	status int
}

func (p *blankPage) Header() http.Header         { return p.header }
func (p *blankPage) Write(b []byte) (int, error) { return len(b), nil }
func (p *blankPage) WriteHeader(status int)      { p.status = status }

// One call of a session: without a connection, and over one.
func BenchmarkFrontCall(b *testing.B) {
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}}}`
	for _, token := range []string{"", "token-ann"} {
		g := newRig(b, "kb", func(o *Options) {
			o.Calls, o.Hosts = ungated{o.Calls.(*judge)}, []string{"127.0.0.1:8787"}
			o.Authenticate = func(context.Context, string) (Identity, error) { return Identity{Name: "ann", Token: "id-of-ann"}, nil }
		}).Gateway
		name, headers := "anonymous", []string{"Mcp-Protocol-Version: 2025-06-18"}
		if token != "" {
			name, headers = "token", append(headers, "Authorization: Bearer "+token)
		}
		hello := serve(g, come("POST", "/servers/kb/mcp", rpc("0", "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},`+
			`"clientInfo":{"name":"bench","version":"1"}}`), headers[1:]...))
		headers = append(headers, "Mcp-Session-Id: "+hello.Header().Get(headerSession))
		b.Run("handler/"+name, func(b *testing.B) {
			usual := come("POST", "/servers/kb/mcp", body, headers...)
			handler, page := g.Handler(), &blankPage{header: make(http.Header)}
			b.ReportAllocs()
			for b.Loop() {
				r := *usual
				r.Body = io.NopCloser(strings.NewReader(body))
				clear(page.header)
				if handler.ServeHTTP(page, &r); page.status != http.StatusOK {
					b.Fatal(page.status)
				}
			}
		})
		b.Run("served/"+name, func(b *testing.B) { benchServed(b, g, body, headers) })
	}
}

// benchServed makes a call over one connection again and again.
func benchServed(b *testing.B, g *Gateway, body string, headers []string) {
	on, err := loopback.Listen("127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	host := on.Addr().String()
	g.hosts[host] = true
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, on) }()
	b.Cleanup(func() {
		cancel()
		<-done
	})
	c, err := net.Dial("tcp", host)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	frame := []byte("POST /servers/kb/mcp HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/json\r\n" +
		"Accept: application/json, text/event-stream\r\n" + strings.Join(headers, "\r\n") +
		fmt.Sprintf("\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	in := bufio.NewReader(c)
	call := func() {
		if _, err := c.Write(frame); err != nil {
			b.Fatal(err)
		}
		r, err := http.ReadResponse(in, nil)
		if err != nil || r.StatusCode != http.StatusOK {
			b.Fatal(r, err)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}
