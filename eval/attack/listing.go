package attack

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/eval"
	"pgfsm/eval/world"
	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
)

// listTools is the answers of the bundle's servers to tools/list. Many runs share it.
func listTools(tools *eval.Tools, servers []policy.Server, opened bool) (*states.ToolsListed, error) {
	listed := &states.ToolsListed{Servers: []policy.Listing{}}
	for _, s := range servers {
		sent, ok := tools.ToolsOf(s.Name)
		if !ok {
			listed.Servers = append(listed.Servers, world.DownListing(s.Name, "The tools file names no such server."))
			continue
		}
		definitions := make([][]byte, len(sent))
		for i, raw := range sent {
			if opened {
				var err error
				if raw, err = openTool(raw); err != nil {
					return nil, err
				}
			}
			definitions[i] = raw
		}
		page := append([]byte(`{"tools":[`), bytes.Join(definitions, []byte(","))...)
		listed.Servers = append(listed.Servers, world.Listing(s.Name, append(page, "]}"...)))
	}
	return states.Shared(listed), nil
}

// openSchema accepts any arguments. The schema gate accepts unnamed members only if the schema says
// so.
const openSchema = `{"type":"object","additionalProperties":true}`

// openTool keeps a tool's name, and gives it a schema that accepts anything.
func openTool(raw jsontext.Value) (jsontext.Value, error) {
	var named struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(raw, &named); err != nil {
		return nil, err
	}
	return canonical.Marshal(map[string]any{"name": named.Name, "inputSchema": jsontext.Value(openSchema)})
}
