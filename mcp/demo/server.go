package toy

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Names of the servers, in the order of [Servers].
const (
	SharePoint = "mcp-sharepoint"
	ServiceNow = "mcp-servicenow"
	PolicyKB   = "mcp-policy-kb"
)

const (
	version = "1.0.0"
	// pageSize is small so that a client that reads only the first page of tools/list misses a tool.
	pageSize = 2
)

// A Call is one tools/call as it arrived, whether or not the server carried it out.
type Call struct {
	Name      string
	Arguments jsontext.Value // the bytes as sent; nil if there were none
}

// A Server is one of the three demo servers, with content of its own that its tools may change. Get one from [Servers].
type Server struct {
	name string
	mcp  *sdk.Server

	mu    sync.Mutex
	calls []Call
}

// Servers returns the three servers in a fixed order, each with fresh content.
func Servers() []*Server {
	return []*Server{newSharePoint(), newServiceNow(), newPolicyKB()}
}

// Name returns the name under which the demo configuration knows the server.
func (s *Server) Name() string { return s.name }

// MCP returns the protocol server, to be connected over a transport of the caller's choice.
func (s *Server) MCP() *sdk.Server { return s.mcp }

// Calls returns every tools/call that reached the server so far, in the order of arrival.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func newServer(name, title string, tools []tool, res *sdk.Resource, body func() []byte, prompt promptText) *Server {
	s := &Server{name: name}
	s.mcp = sdk.NewServer(&sdk.Implementation{Name: name, Title: title, Version: version}, &sdk.ServerOptions{
		PageSize:     pageSize,
		Capabilities: &sdk.ServerCapabilities{}, // without this the SDK offers logging
	})
	s.mcp.AddReceivingMiddleware(s.record)
	for _, t := range tools {
		t.addTo(s.mcp)
	}
	s.mcp.AddResource(res, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{Text: string(body())}}}, nil
	})
	prompt.addTo(s.mcp)
	return s
}

// record notes a call before anything judges it, so that calls to unknown tools and with bad arguments are seen too.
func (s *Server) record(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if call, ok := req.(*sdk.CallToolRequest); ok && call.Params != nil {
			s.mu.Lock()
			s.calls = append(s.calls, Call{call.Params.Name, jsontext.Value(bytes.Clone(call.Params.Arguments))})
			s.mu.Unlock()
		}
		return next(ctx, method, req)
	}
}

// promptText is a prompt with one argument, an id, which stands where the text has %s.
type promptText struct{ name, title, description, argument, text string }

func (p promptText) addTo(server *sdk.Server) {
	prompt := &sdk.Prompt{
		Name: p.name, Title: p.title, Description: p.description,
		Arguments: []*sdk.PromptArgument{{Name: p.argument, Required: true}},
	}
	server.AddPrompt(prompt, func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		id := req.Params.Arguments[p.argument]
		if id == "" {
			return nil, fmt.Errorf("prompt %s needs the argument %s", p.name, p.argument)
		}
		text := &sdk.TextContent{Text: fmt.Sprintf(p.text, id)}
		return &sdk.GetPromptResult{
			Description: p.description,
			Messages:    []*sdk.PromptMessage{{Role: "user", Content: text}},
		}, nil
	})
}
