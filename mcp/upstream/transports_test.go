package upstream

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func sdkHTTP(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func TestRealTransports(t *testing.T) {
	one := func(*http.Request) *sdk.Server { return echoServer() }
	shared := echoServer()
	same := func(*http.Request) *sdk.Server { return shared }
	tests := []struct {
		name, protocol string
		server         func(t *testing.T) Server
	}{
		{"stdio", "2026-07-28", func(t *testing.T) Server { return self(t, "echo") }},
		{"sse", "2025-11-25", func(t *testing.T) Server {
			return Server{Name: "s", Type: TypeSSE, URL: sdkHTTP(t, sdk.NewSSEHandler(same, nil))}
		}},
		{"http-stateful", "2025-11-25", func(t *testing.T) Server {
			return Server{Name: "s", Type: TypeHTTP, URL: sdkHTTP(t, sdk.NewStreamableHTTPHandler(same, nil))}
		}},
		{"http-stateful-json", "2025-11-25", func(t *testing.T) Server {
			h := sdk.NewStreamableHTTPHandler(same, &sdk.StreamableHTTPOptions{JSONResponse: true})
			return Server{Name: "s", Type: TypeHTTP, URL: sdkHTTP(t, h)}
		}},
		{"http-stateless", "2026-07-28", func(t *testing.T) Server {
			h := sdk.NewStreamableHTTPHandler(one, &sdk.StreamableHTTPOptions{Stateless: true})
			return Server{Name: "s", Type: TypeHTTP, URL: sdkHTTP(t, h)}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			s := tt.server(t)
			u := upstreams(t, Limits{}, s)
			l := listed(t, u)
			if l.Protocol != tt.protocol || l.ServerName != "echo-server" || l.ServerVersion != "3" || l.Server != s.Name {
				t.Errorf("List() = %+v, want protocol %s of echo-server 3", l, tt.protocol)
			}
			if len(l.Pages) != 1 || !strings.Contains(string(l.Pages[0]), `"name":"echo"`) {
				t.Errorf("Pages = %q, want one with the tool echo", l.Pages)
			}
			// What no Go number holds, what HTML escaping would change, and a line separator.
			args := `{"a":9007199254740993,"b":1e300,"c":"<&>` + "\u2028" + `","d":1.0}`
			r := call(t.Context(), u, s.Name, args)
			if r.Effect != EffectDone || r.Code != "" {
				t.Fatalf("Call() = %+v, want a result", r)
			}
			if want := `9007199254740993,\"b\":1e300`; !strings.Contains(string(r.Result), want) {
				t.Errorf("Result = %s, want the arguments unchanged", r.Result)
			}
			again := listed(t, u) // on the same session
			if len(again.Pages) != 1 {
				t.Errorf("second List() = %+v, want one page", again)
			}
		})
	}
}
