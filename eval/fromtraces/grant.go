package fromtraces

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/config"
	"pgfsm/policy"
)

// encodeGrant writes a grant file. A file has one schema for a place in the arguments: a grant with
// several has no file.
func encodeGrant(g *policy.Grant) ([]byte, error) {
	type granted struct {
		Args  map[string]map[string]jsontext.Value `json:"args,omitempty"`
		Calls *int                                 `json:"calls,omitzero"`
	}
	servers := make(map[string]map[string]granted)

	for _, t := range g.Tools {
		entry := granted{Args: make(map[string]map[string]jsontext.Value), Calls: t.Calls}
		for _, c := range t.Args {
			if entry.Args[c.At] != nil {
				return nil, errNoCase("no file has the content of its grant")
			}
			entry.Args[c.At] = map[string]jsontext.Value{"schema": c.Schema}
		}
		if servers[t.Server] == nil {
			servers[t.Server] = make(map[string]granted)
		}
		servers[t.Server][t.Tool] = entry
	}

	doc, err := textOf(map[string]any{"version": config.GrantVersion, "tools": servers})
	if err != nil {
		return nil, err
	}
	if _, err := config.ReadGrant("grant.json", doc); err != nil {
		return nil, errNoCase("no file has the content of its grant: " + err.Error())
	}

	return doc, nil
}

// textOf is a value as a file.
func textOf(value any) ([]byte, error) {
	text, err := json.Marshal(value, json.Deterministic(true), jsontext.WithIndent("  "))
	return append(text, '\n'), err
}
