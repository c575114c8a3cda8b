package fromtraces

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/config"
	"pgfsm/policy"
)

// errNoGrant means that no grant file has a grant's content.
var errNoGrant = errors.New("no file has the content of its grant")

// encodeGrant writes a grant file, and reads it back to compare. The order of constraints does not matter.
func encodeGrant(g *policy.Grant) ([]byte, error) {
	servers := make(map[string]map[string]any)
	for _, t := range g.Tools {
		args := make(map[string]map[string]any)
		for _, c := range t.Args {
			if args[c.At] == nil {
				args[c.At] = make(map[string]any)
			}
			key, value := constraint(c.Schema)
			args[c.At][key] = value
		}
		entry := make(map[string]any)
		if len(args) > 0 {
			entry["args"] = args
		}
		if t.Calls != nil {
			entry["calls"] = *t.Calls
		}
		if servers[t.Server] == nil {
			servers[t.Server] = make(map[string]any)
		}
		servers[t.Server][t.Tool] = entry
	}
	doc, err := textOf(map[string]any{"version": config.GrantVersion, "tools": servers})
	if err != nil {
		return nil, err
	}
	read, err := config.ReadGrant("grant.json", doc)
	if err != nil {
		return nil, errNoGrant
	}
	a, err := sortedText(read)
	if err != nil {
		return nil, err
	}
	b, err := sortedText(*g)
	if err == nil && !bytes.Equal(a, b) {
		err = errNoGrant
	}
	return doc, err
}

// constraint writes a schema with the shortest key of a grant.
func constraint(schema jsontext.Value) (key string, value jsontext.Value) {
	key, value = "schema", schema
	members := 0
	for name, v := range canonical.Members(schema) {
		members++
		if short, ok := map[string]string{"const": "eq", "enum": "in"}[name]; ok {
			key, value = short, v
		}
	}
	if members != 1 {
		return "schema", schema
	}
	return key, value
}

// sortedText is a grant without its name, with tools and constraints in order.
func sortedText(g policy.Grant) ([]byte, error) {
	g.Name, g.Tools = "", slices.Clone(g.Tools)
	for i := range g.Tools {
		g.Tools[i].Args = slices.Clone(g.Tools[i].Args)
		slices.SortFunc(g.Tools[i].Args, func(a, b policy.Constraint) int {
			return cmp.Or(cmp.Compare(a.At, b.At), bytes.Compare(a.Schema, b.Schema))
		})
	}
	slices.SortFunc(g.Tools, func(a, b policy.Granted) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool))
	})
	return canonical.Marshal(&g)
}

// textOf is a value as a file.
func textOf(value any) ([]byte, error) {
	text, err := json.Marshal(value, json.Deterministic(true), jsontext.WithIndent("  "))
	return append(text, '\n'), err
}
