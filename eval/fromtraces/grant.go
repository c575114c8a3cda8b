package fromtraces

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/config"
	"pgfsm/policy"
)

// errNoGrant means that no grant file has a grant's content.
var errNoGrant = errors.New("no file has the content of its grant")

// encodeGrant writes a grant file, and reads it back to compare.
func encodeGrant(g *policy.Grant) ([]byte, error) {
	doc, err := textOf(grantFile(g))
	if err != nil { // two schemas of one place, say
		return nil, errNoGrant
	}
	read, err := config.ReadGrant("grant.json", doc)
	if err != nil {
		return nil, errNoGrant
	}
	read.Name = ""
	a, err := canonical.Marshal(&read)
	if err != nil {
		return nil, err
	}
	b, err := canonical.Marshal(g)
	if err == nil && !bytes.Equal(a, b) {
		err = errNoGrant
	}
	return doc, err
}

// An object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

func (o object) put(name string, value any) object { return append(o, member{name, value}) }

// MarshalJSONTo implements [json.MarshalerTo].
func (o object) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, m := range o {
		if err := enc.WriteToken(jsontext.String(m.name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, m.value); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// textOf is a value as a file.
func textOf(value any) ([]byte, error) {
	text, err := json.Marshal(value, json.Deterministic(true), jsontext.WithIndent("  "))
	return append(text, '\n'), err
}

// grantFile writes tools by server and constraints by place. Several constraints of one place have different keys.
func grantFile(g *policy.Grant) object {
	servers := object{}
	for i := 0; i < len(g.Tools); {
		server, tools := g.Tools[i].Server, object{}
		for ; i < len(g.Tools) && g.Tools[i].Server == server; i++ {
			t, entry := &g.Tools[i], object{}
			if t.Calls != nil {
				entry = entry.put("calls", *t.Calls)
			}
			args := object{}
			for j := 0; j < len(t.Args); {
				at, place := t.Args[j].At, object{}
				for ; j < len(t.Args) && t.Args[j].At == at; j++ {
					place = append(place, constraint(t.Args[j].Schema))
				}
				args = args.put(at, place)
			}
			if len(args) > 0 {
				entry = entry.put("args", args)
			}
			tools = tools.put(t.Tool, entry)
		}
		servers = servers.put(server, tools)
	}
	return object{{"version", config.GrantVersion}, {"tools", servers}}
}

// constraint writes a schema with the shortest key of a grant.
func constraint(schema jsontext.Value) member {
	short, members := member{}, 0
	for name, v := range canonical.Members(schema) {
		members++
		switch name {
		case "const":
			short = member{"eq", v}
		case "enum":
			short = member{"in", v}
		}
	}
	if members != 1 || short.name == "" {
		return member{"schema", schema}
	}
	return short
}
