package demo

import (
	"bytes"
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"pgfsm/internal/canonical"
	"pgfsm/internal/config"
)

// A tool is one entry of tools/list, with its action.
type tool struct {
	Name         string         `json:"name"`
	Title        string         `json:"title"`
	Description  string         `json:"description"`
	Does         string         `json:"does"` // search, fetch, delete or close
	InputSchema  jsontext.Value `json:"inputSchema"`
	Output       string         `json:"output"`       // a schema of package config
	OutputSchema jsontext.Value `json:"outputSchema"` // the schema itself, if Output is empty
}

// Statuses of a result about one entry.
const (
	statusOK       = "OK"
	statusNotFound = "NOT_FOUND"
	statusDeleted  = "DELETED"
	statusClosed   = "CLOSED"
)

// run executes the tool and returns its result.
func (t tool) run(spec spec, entries *shelf, args map[string]string) map[string]any {
	id := args[spec.ID]
	status := func(found bool, status string) string {
		if found {
			return status
		}
		return statusNotFound
	}
	switch t.Does {
	case "search":
		hits := entries.search(args["query"])
		return map[string]any{"query": args["query"], "count": len(hits), "hits": hits}
	case "fetch":
		entry := entries.get(id)
		return map[string]any{"status": status(entry != nil, statusOK), spec.Member: entry}
	case "delete":
		return map[string]any{"status": status(entries.remove(id), statusDeleted), spec.ID: id}
	default:
		return map[string]any{"status": status(entries.close(id, args["resolution"]), statusClosed), spec.ID: id}
	}
}

func (t tool) addTo(server *sdk.Server, spec spec, entries *shelf) {
	input := mustCompile(t.InputSchema)
	output := t.OutputSchema
	if output == nil {
		output = mustRead(config.Demo.ReadFile("schemas/" + t.Output))
	}
	closed, destructive := false, t.Does == "delete" || t.Does == "close"
	declared := &sdk.Tool{
		Name:         t.Name,
		Title:        t.Title,
		Description:  t.Description,
		InputSchema:  t.InputSchema,
		OutputSchema: output,
		Annotations: &sdk.ToolAnnotations{
			Title:           t.Title,
			ReadOnlyHint:    !destructive,
			IdempotentHint:  true,
			DestructiveHint: &destructive,
			OpenWorldHint:   &closed,
		},
	}
	server.AddTool(declared, func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		args, err := readArguments(input, jsontext.Value(req.Params.Arguments))
		if err != nil {
			return failure(err), nil
		}
		return success(t.run(spec, entries, args))
	})
}

func readArguments(schema *jsonschema.Schema, doc jsontext.Value) (args map[string]string, err error) {
	if len(doc) == 0 {
		doc = jsontext.Value("{}")
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err == nil {
		err = schema.Validate(instance)
	}
	if err != nil {
		return nil, err
	}
	return args, canonical.Unmarshal(doc, &args)
}

// success returns out twice, because older clients know only the text block.
func success(out any) (*sdk.CallToolResult, error) {
	doc, err := canonical.Marshal(out)
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{
		Content:           []sdk.Content{&sdk.TextContent{Text: string(doc)}},
		StructuredContent: jsontext.Value(doc),
	}, nil
}

// failure returns a tool error. A model may see it, unlike a protocol error (MCP 2025-06-18, "Error Handling").
func failure(err error) *sdk.CallToolResult {
	text := &sdk.TextContent{Text: fmt.Sprintf("invalid arguments: %v", err)}
	return &sdk.CallToolResult{Content: []sdk.Content{text}, IsError: true}
}

func mustCompile(schema []byte) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	c := jsonschema.NewCompiler()
	if err == nil {
		err = c.AddResource("schema.json", doc)
	}
	if err != nil {
		panic(fmt.Sprintf("demo: a schema that is built in: %v", err))
	}
	return c.MustCompile("schema.json")
}
