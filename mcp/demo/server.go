package demo

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/internal/canonical"
	"pgfsm/internal/config"
)

// Names of the servers, in the order of [Servers].
const (
	SharePoint = "mcp-sharepoint"
	ServiceNow = "mcp-servicenow"
	PolicyKB   = "mcp-policy-kb"
)

const (
	version = "1.0.0"
	// pageSize is small so that a client that reads only the first page of tools/list misses a
	// tool.
	pageSize = 2
)

// A Call is one tools/call as it arrived, even if the server did not carry it out.
type Call struct {
	Name      string
	Arguments jsontext.Value // the bytes as sent; nil if there were none
}

// A Server is one of the three demo servers, with content of its own that its tools may change. Get
// one from [Servers].
type Server struct {
	name string
	mcp  *sdk.Server

	mu    sync.Mutex
	calls []Call
}

// A spec describes a server: data/servers.json has one for each.
type spec struct {
	Name       string       `json:"name"`
	Title      string       `json:"title"`
	Content    string       `json:"content"` // file of the entries
	ID         string       `json:"id"`      // member that identifies an entry
	Member     string       `json:"member"`  // member of a fetched result that holds the entry
	Body       string       `json:"body"`    // member of an entry that holds its sentences as one text
	Also       string       `json:"also"`    // member of an entry with more sentences to search
	Resource   sdk.Resource `json:"resource"`
	Prompt     sdk.Prompt   `json:"prompt"`
	PromptText string       `json:"promptText"` // %s stands for the prompt's one argument, an id
	Tools      []tool       `json:"tools"`
}

// A tool is one entry of tools/list, with its action.
type tool struct {
	Does     string   `json:"does"`   // search, fetch, delete or close
	Output   string   `json:"output"` // file of package config with the output schema; empty: it is declared
	Declared sdk.Tool `json:"declared"`
}

//go:embed data/*.json
var data embed.FS

// readData reads a file under data.
func readData[T any](name string) (v T) {
	mustDecode(mustRead(data.ReadFile("data/"+name)), &v)
	return v
}

func mustRead(doc []byte, err error) []byte {
	if err != nil {
		panic(fmt.Sprintf("demo: content that is built in cannot be read: %v", err))
	}
	return doc
}

func mustDecode(doc []byte, v any) { mustRead(nil, canonical.Unmarshal(doc, v)) }

// Servers returns the three servers in a fixed order, each with fresh content.
func Servers() []*Server {
	var servers []*Server
	for _, s := range readData[[]spec]("servers.json") {
		servers = append(servers, newServer(s))
	}
	return servers
}

// newServer returns a server with the tools, the resource and the prompt of its spec.
func newServer(spec spec) *Server {
	s := &Server{name: spec.Name}
	s.mcp = sdk.NewServer(&sdk.Implementation{Name: spec.Name, Title: spec.Title, Version: version}, &sdk.ServerOptions{
		PageSize:     pageSize,
		Capabilities: &sdk.ServerCapabilities{}, // nil would make the SDK offer logging
	})
	s.mcp.AddReceivingMiddleware(s.recordCall)

	entries := newContentStore(spec)
	for _, t := range spec.Tools {
		t.addTo(s.mcp, entries)
	}

	s.mcp.AddResource(&spec.Resource, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{Text: entries.titleIndex()}}}, nil
	})
	s.mcp.AddPrompt(&spec.Prompt, func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		argument := spec.Prompt.Arguments[0].Name
		id := req.Params.Arguments[argument]
		if id == "" {
			return nil, fmt.Errorf("prompt %s needs the argument %s", spec.Prompt.Name, argument)
		}
		return &sdk.GetPromptResult{
			Description: spec.Prompt.Description,
			Messages: []*sdk.PromptMessage{{Role: "user",
				Content: &sdk.TextContent{Text: fmt.Sprintf(spec.PromptText, id)}}},
		}, nil
	})

	return s
}

// addTo adds the tool to a server. The SDK checks the arguments and writes the result twice: as
// structured content, and as text for older clients.
func (t tool) addTo(server *sdk.Server, entries *contentStore) {
	if t.Output != "" {
		mustDecode(mustRead(config.Demo.ReadFile("schemas/"+t.Output)), &t.Declared.OutputSchema)
	}
	sdk.AddTool(server, &t.Declared, func(_ context.Context, _ *sdk.CallToolRequest, args map[string]string) (
		*sdk.CallToolResult, map[string]any, error) {
		return nil, entries.runTool(t.Does, args), nil
	})
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

// recordCall records a call before it is checked, so that calls to unknown tools and with bad
// arguments are seen too.
func (s *Server) recordCall(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if call, ok := req.(*sdk.CallToolRequest); ok && call.Params != nil {
			s.mu.Lock()
			s.calls = append(s.calls, Call{call.Params.Name, jsontext.Value(bytes.Clone(call.Params.Arguments))})
			s.mu.Unlock()
		}
		return next(ctx, method, req)
	}
}
