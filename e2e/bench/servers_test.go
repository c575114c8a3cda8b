package bench

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The test binary is also the servers that it measures with: roleAs names which one. Each listens on a port that the system
// chooses, says where on its standard output, and ends with its standard input.
const roleAs = "PGFSM_BENCH_ROLE"

const (
	upstreamRole = "upstream" // MCP server of the Go SDK, answers as events
	bareRole     = "bare"     // proxy without any gate, in front of PGFSM_BENCH_TO
)

const proxyTo = "PGFSM_BENCH_TO"

// serverName is how the gateway calls the upstream.
const serverName = "bench"

// largest is the largest text that the upstream gives.
const largest = 64 << 20

func play(role string) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Print(err)
		return 1
	}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	switch role {
	case upstreamRole:
		server := newUpstream()
		err = http.Serve(listener, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	case bareRole:
		err = http.Serve(listener, relay(os.Getenv(proxyTo)))
	default:
		err = fmt.Errorf("no role %q", role)
	}
	log.Print(err)
	return 1
}

type echoArgs struct {
	Message string `json:"message" jsonschema:"what to say"`
}

type blobArgs struct {
	Seed string `json:"seed" jsonschema:"how the text begins"`
	Size int    `json:"size" jsonschema:"bytes of the text"`
}

// newUpstream is an MCP server, written as the SDK's own examples are: it validates arguments itself.
func newUpstream() *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "upstream", Version: "1"}, nil)
	text := func(s string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
	}
	for _, name := range []string{"echo", "refused"} {
		sdk.AddTool(server, &sdk.Tool{Name: name, Description: "Says what it is told."},
			func(_ context.Context, _ *sdk.CallToolRequest, in echoArgs) (*sdk.CallToolResult, any, error) {
				return text(in.Message), nil, nil
			})
	}
	sdk.AddTool(server, &sdk.Tool{Name: "stuck", Description: "Never answers."},
		func(ctx context.Context, _ *sdk.CallToolRequest, _ echoArgs) (*sdk.CallToolResult, any, error) {
			<-ctx.Done()
			return nil, nil, ctx.Err()
		})
	sdk.AddTool(server, &sdk.Tool{Name: "blob", Description: "Gives a text of a size."},
		func(_ context.Context, _ *sdk.CallToolRequest, in blobArgs) (*sdk.CallToolResult, any, error) {
			if in.Size < len(in.Seed) || in.Size > largest {
				return nil, nil, fmt.Errorf("size %d", in.Size)
			}
			return text(in.Seed + fill(in.Size-len(in.Seed))), nil, nil
		})
	return server
}

// relay is the bare reverse proxy that everything is compared with. Without full duplex the server would close a request's body when
// the response begins, and the transport, which looks for the body's end, would then close the upstream's connection.
func relay(to string) http.Handler {
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: to})
	proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}
