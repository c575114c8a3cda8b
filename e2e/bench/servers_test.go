package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The test binary is also the servers that it measures with: roleAs names which one. Each listens on a port that the system
// chooses, says where on its standard output, and ends with its standard input.
const roleAs = "PGFSM_BENCH_ROLE"

const (
	upstreamRole = "upstream" // MCP server of the Go SDK, answers as events
	jsonRole     = "json"     // the same, answers as JSON
	bareRole     = "bare"     // proxy without any gate, in front of PGFSM_BENCH_TO
	floorRole    = "floor"    // answers each call with what was asked, and does nothing else
)

const proxyTo = "PGFSM_BENCH_TO"

// serverName is how the gateway calls the upstream.
const serverName = "bench"

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
	case upstreamRole, jsonRole:
		server := newUpstream()
		handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
			&sdk.StreamableHTTPOptions{JSONResponse: role == jsonRole})
		err = http.Serve(listener, handler)
	case bareRole:
		err = http.Serve(listener, relay(os.Getenv(proxyTo)))
	case floorRole:
		err = parrot(listener)
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
	for _, name := range []string{"echo", "refused", "held"} {
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

// parrot answers calls of echo with as little work as there can be. What callers need with it is their own cost, and the
// loopback's.
func parrot(listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			in := bufio.NewReaderSize(conn, 64<<10)
			for n := 0; ; n++ {
				body, err := parrotRead(in)
				if err != nil {
					return
				}
				if _, err := conn.Write(parrotAnswer(body)); err != nil {
					return
				}
			}
		}()
	}
}

func parrotRead(in *bufio.Reader) ([]byte, error) {
	length := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return nil, err
			}
		}
		if len(line) == len("\r\n") {
			body := make([]byte, length)
			_, err := io.ReadFull(in, body)
			return body, err
		}
	}
}

func parrotAnswer(body []byte) []byte {
	var answer string
	switch id, _, _ := bytes.Cut(behind(body, `"id":`), []byte(",")); {
	case len(body) == 0, len(id) == 0:
		return []byte("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
	case bytes.Contains(body, []byte(`"initialize"`)):
		answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{},"serverInfo":{"name":"p","version":"1"}}}`,
			id, protocol)
	default:
		text, _, _ := bytes.Cut(behind(body, `"message":"`), []byte(`"`))
		answer = `{"jsonrpc":"2.0","id":` + string(id) + `,"result":{"content":[{"type":"text","text":"` + string(text) + `"}]}}`
	}
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: 1\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
}

func behind(text []byte, mark string) []byte {
	_, rest, _ := bytes.Cut(text, []byte(mark))
	return rest
}
