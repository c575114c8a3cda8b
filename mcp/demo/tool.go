package toy

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

// A tool is what tools/list shows of it and the function behind it.
type tool struct {
	name, title, description string

	input   string         // inputSchema, JSON
	output  jsontext.Value // outputSchema
	changes bool           // whether it changes something
	run     func(args jsontext.Value) (any, error)
}

// takes turns a function of decoded arguments into one of bytes.
func takes[A any](f func(A) any) func(jsontext.Value) (any, error) {
	return func(doc jsontext.Value) (any, error) {
		var args A
		if err := canonical.Unmarshal(doc, &args); err != nil {
			return nil, err
		}
		return f(args), nil
	}
}

func (t tool) addTo(server *sdk.Server) {
	input := mustCompile(t.input)
	closed, destructive := false, t.changes
	declared := &sdk.Tool{
		Name: t.name, Title: t.title, Description: t.description,
		InputSchema: jsontext.Value(t.input), OutputSchema: t.output,
		Annotations: &sdk.ToolAnnotations{
			Title: t.title, ReadOnlyHint: !t.changes, IdempotentHint: true,
			DestructiveHint: &destructive, OpenWorldHint: &closed,
		},
	}
	server.AddTool(declared, func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		args := jsontext.Value(req.Params.Arguments)
		if len(args) == 0 {
			args = jsontext.Value("{}")
		}
		if err := judge(input, args); err != nil {
			return failure(err), nil
		}
		out, err := t.run(args)
		if err != nil {
			return failure(err), nil
		}
		return success(out)
	})
}

func judge(schema *jsonschema.Schema, args jsontext.Value) error {
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return err
	}
	return schema.Validate(instance)
}

// success returns out twice: older clients know only the text block.
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

// failure is a tool's own error, which a model may see, unlike a protocol error (MCP 2025-06-18, "Error Handling").
func failure(err error) *sdk.CallToolResult {
	text := &sdk.TextContent{Text: fmt.Sprintf("invalid arguments: %v", err)}
	return &sdk.CallToolResult{Content: []sdk.Content{text}, IsError: true}
}

// mustCompile compiles a schema that is part of the program.
func mustCompile(schema string) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(schema)))
	if err != nil {
		panic(fmt.Sprintf("toy: a schema that is built in is not JSON: %v", err))
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		panic(fmt.Sprintf("toy: %v", err))
	}
	return c.MustCompile("schema.json")
}

// outputType returns a schema of package config.
func outputType(name string) jsontext.Value {
	doc, err := config.Demo.ReadFile("schemas/" + name)
	if err != nil {
		panic(fmt.Sprintf("toy: %v", err))
	}
	return doc
}
