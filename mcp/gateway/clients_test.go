package gateway

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/internal/test/check"
	"pgfsm/internal/web"
	"pgfsm/internal/web/loopback"
)

// bearer adds a token to requests.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// The SDK's client, over every transport and in both revisions, all the way through the dispatcher.
func TestClientsOfTheSDK(t *testing.T) {
	type place struct {
		g  *Gateway
		at string
	}
	stream := func(path string) func(*testing.T, place) sdk.Transport {
		return func(_ *testing.T, p place) sdk.Transport {
			return &sdk.StreamableClientTransport{Endpoint: "http://" + p.at + path, HTTPClient: &http.Client{Transport: bearer{"token-ann"}}}
		}
	}
	sse := func(path string) func(*testing.T, place) sdk.Transport {
		return func(_ *testing.T, p place) sdk.Transport {
			return &sdk.SSEClientTransport{Endpoint: "http://" + p.at + path, HTTPClient: &http.Client{Transport: bearer{"token-ann"}}}
		}
	}
	stdio := func(t *testing.T, p place) sdk.Transport {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		done := make(chan error, 1)
		go func() {
			done <- p.g.ServeStdio(context.Background(), inR, outW, Identity{Name: "ann", Token: "id-of-ann"})
		}()
		t.Cleanup(func() {
			_ = inW.Close()
			if err := within(t, "the end of the gateway", done); err != nil && err.Error() != "the client is gone" { // the client closes both ends at once
				t.Error(err)
			}
		})
		return &sdk.IOTransport{Reader: outR, Writer: inW}
	}
	for _, c := range []struct {
		name     string
		open     func(*testing.T, place) sdk.Transport
		protocol string // asked for
		want     string // in force
		tool     string
	}{
		{"one-server-stateless", stream("/servers/files/mcp"), "2026-07-28", "2026-07-28", "echo"},
		{"all-servers-stateless", stream("/mcp"), "2026-07-28", "2026-07-28", "files__echo"},
		{"one-server-2025-11-25", stream("/servers/files/mcp"), "2025-11-25", "2025-11-25", "echo"},
		{"legacy-one-server", sse("/servers/files/sse"), "2024-11-05", "2024-11-05", "echo"},
		{"legacy-all-servers", sse("/sse"), "2024-11-05", "2024-11-05", "files__echo"},
		{"stdio-stateless", stdio, "2026-07-28", "2026-07-28", "files__echo"},
		{"stdio-2025-11-25", stdio, "2025-11-25", "2025-11-25", "files__echo"},
	} {
		t.Run(c.name, func(t *testing.T) {
			on, err := loopback.Listen("127.0.0.1:0")
			check.NoError(t, err)
			r := newFixture(t, "files", func(o *Options) {
				o.Front.Hosts = loopback.Hosts(on)
				o.Front.Clients = owners{}
			})
			r.judge.decide = func(_ context.Context, a *ToolCall) Answer {
				if a.From.Name != "ann" {
					t.Errorf("it was %v", a.From)
				}
				return Answer{Native: true, Result: jsontext.Value(`{"content":[{"type":"text","text":"done"}]}`)}
			}
			client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
			serves(t, r.Gateway, on)
			connected, err := client.Connect(t.Context(), c.open(t, place{r.Gateway, on.Addr().String()}), &sdk.ClientSessionOptions{ProtocolVersion: c.protocol})
			check.NoError(t, err)
			defer func() {
				if err := connected.Close(); err != nil && c.protocol != "2024-11-05" {
					t.Errorf("it closed with %v", err)
				}
			}()
			if got := connected.InitializeResult().ProtocolVersion; got != c.want {
				t.Errorf("revision %s is in force", got)
			}
			tools, err := connected.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) != 1 || tools.Tools[0].Name != c.tool {
				t.Fatalf("%v, %v", tools, err)
			}
			result, err := connected.CallTool(t.Context(), &sdk.CallToolParams{Name: c.tool, Arguments: map[string]any{"n": 1}})
			check.NoError(t, err)
			if diff := cmp.Diff("done", result.Content[0].(*sdk.TextContent).Text); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// owners authenticates by tokens that are "token-" and the name of their owner.
type owners struct{}

func (owners) Authenticate(r *http.Request) (web.Caller, error) {
	token, ok := web.BearerToken(r)
	name, known := strings.CutPrefix(token, "token-")
	if !ok || !known {
		return web.Caller{}, web.ErrNoCredentials
	}
	return web.Caller{Name: name, Token: "id-of-" + name}, nil
}
