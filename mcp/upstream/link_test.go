package upstream

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/mcp/wire"
)

const (
	older = "2025-11-25"
	newer = "2026-07-28"
)

// mustLink is a link that must come about.
func mustLink(t testing.TB, u *Upstreams, server string, p Peer) *Link {
	t.Helper()
	l, err := u.Link(t.Context(), server, p)
	if err != nil {
		t.Fatalf("Link(%s) = %v", server, err)
	}
	return l
}

// listingOf is the latest listing of a link.
func listingOf(t testing.TB, l *Link) *CachedListing {
	t.Helper()
	k, err := l.Listing(t.Context(), time.Hour)
	if err != nil {
		t.Fatalf("Listing() = %v", err)
	}
	return k
}

// callByListing is a call by the latest listing.
func callByListing(t testing.TB, l *Link, args string) Call {
	t.Helper()
	return Call{Server: l.up.server.Name, Tool: "echo", Arguments: object(args), RunID: newRun(), Listing: listingOf(t, l).Number}
}

func sdkHTTP(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// realServers are the SDK's, over every transport.
func realServers(shared *sdk.Server) map[string]func(t *testing.T) Server {
	same := func(*http.Request) *sdk.Server { return shared }
	web := func(options *sdk.StreamableHTTPOptions) func(t *testing.T) Server {
		return func(t *testing.T) Server {
			return Server{Name: "s", Type: TypeHTTP, URL: sdkHTTP(t, sdk.NewStreamableHTTPHandler(same, options))}
		}
	}
	return map[string]func(t *testing.T) Server{
		"stdio": func(t *testing.T) Server { return childServer(t, "echo") },
		"sse": func(t *testing.T) Server {
			return Server{Name: "s", Type: TypeSSE, URL: sdkHTTP(t, sdk.NewSSEHandler(same, nil))}
		},
		"http-stateful":       web(nil),
		"http-stateful-json":  web(&sdk.StreamableHTTPOptions{JSONResponse: true}),
		"http-stateless":      web(&sdk.StreamableHTTPOptions{Stateless: true}),
		"http-stateless-json": web(&sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true}),
	}
}

func TestLinksOverRealTransports(t *testing.T) {
	tests := []struct{ name, asked, protocol string }{
		{"stdio", older, older}, {"stdio", newer, newer}, {"stdio", "2024-11-05", "2024-11-05"},
		{"sse", older, older}, {"sse", newer, older},
		{"http-stateful", older, older}, {"http-stateful", newer, older}, {"http-stateful", "2025-03-26", "2025-03-26"},
		{"http-stateful-json", older, older},
		{"http-stateless", newer, newer}, {"http-stateless", "", newer},
		{"stdio", "", newer}, {"sse", "", older}, {"http-stateful", "", older},
		{"http-stateless-json", newer, newer},
	}
	servers := realServers(echoServer())
	for _, tt := range tests {
		t.Run(tt.name+"-"+tt.asked, func(t *testing.T) {
			noLeak(t)
			s := servers[tt.name](t)
			u := upstreams(t, Limits{}, s)
			l := mustLink(t, u, s.Name, Peer{Protocol: tt.asked})
			hello := l.ServerInfo()
			if hello.Protocol != tt.protocol || l.Modern() != (tt.protocol == newer) || hello.Server != (Info{"echo-server", "3"}) ||
				wire.Member(hello.Capabilities, "tools") == nil {
				t.Errorf("ServerInfo() = %+v, want revision %s of echo-server 3 with tools", hello, tt.protocol)
			}
			k := listingOf(t, l)
			if len(k.Pages) != 1 || !strings.Contains(string(k.Pages[0]), `"name":"echo"`) || k.Protocol != tt.protocol ||
				k.ServerName != "echo-server" || k.Server != s.Name || k.Status != StatusUp || l.Changed(k.Number) {
				t.Errorf("Listing() = %+v, want one page with the tool echo", k.Listing)
			}
			args := `{"a":9007199254740993,"b":1e300,"c":"<&>` + "\u2028" + `","d":1.0}`
			r := l.Call(t.Context(), callByListing(t, l, args), nil)
			if want := `9007199254740993,\"b\":1e300`; r.Effect != EffectDone || !strings.Contains(string(r.Result), want) {
				t.Errorf("Call() = %+v with the result %s, want the arguments unchanged", r, r.Result)
			}
			reply, err := l.Request(t.Context(), "tools/list", nil, nil)
			if err != nil || reply.Error != nil || string(reply.Result) != string(k.Pages[0]) {
				t.Errorf("Request(tools/list) = %s, %s, %v, want the page", reply.Result, reply.Error, err)
			}
			reply, err = l.Request(t.Context(), "resources/read", jsontext.Value(`{"uri":"no://such"}`), nil)
			if err != nil || reply.Result != nil || wire.Member(reply.Error, "code") == nil {
				t.Errorf("Request(resources/read) = %s, %s, %v, want an error of the server", reply.Result, reply.Error, err)
			}
			l.Close()
			var e *LinkError
			if !errors.As(l.Err(), &e) || e.Code != CodeClosed {
				t.Errorf("Err() after Close() = %v, want %s", l.Err(), CodeClosed)
			}
			if r := l.Call(context.Background(), Call{}, nil); r.Effect != EffectNotSent || r.Code != CodeClosed {
				t.Errorf("Call() after Close() = %+v, want not sent, %s", r, CodeClosed)
			}
		})
	}
}
