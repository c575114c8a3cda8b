package gateway

import (
	"bytes"
	"strings"

	"pgfsm/mcp/wire"

	"github.com/go-json-experiment/json/jsontext"
)

// own is how the members of _meta begin that only the gateway writes. A client may believe them, so those that a server or a client writes
// are removed.
const ownPrefix = "io.pgfsm/"

// maxMetaDepth bounds how deep [StripOwn] looks. The protocol's own objects nest less.
const maxMetaDepth = 16

// StripOwn removes the members under io.pgfsm/ from the _meta of an object that a server or a client sent, and from the _meta of each of
// its parts, such as the entries of a list. Arguments, structured content and a tool's schemas are data, where _meta has no meaning: they
// stay as they are, and so does every other byte.
func StripOwn(doc jsontext.Value) jsontext.Value {
	if !bytes.Contains(doc, []byte(ownPrefix[:len(ownPrefix)-1])) && !bytes.Contains(doc, []byte(`\u00`)) { // nearly always; names may be escaped
		return doc
	}
	var edits []edit
	var look func(doc []byte, at, depth int)
	look = func(doc []byte, at, depth int) {
		switch {
		case depth > maxMetaDepth:
		case doc[0] == '[':
			wire.Items(doc, func(item jsontext.Value, i int) { look(item, at+i, depth+1) }) // it was read before
		case doc[0] == '{':
			wire.Each(doc, func(p wire.Piece) { // as above
				switch p.Name {
				case "_meta":
					if with, changed := withoutMembers(p.Value, nil, func(name string) bool { return strings.HasPrefix(name, ownPrefix) }); changed {
						edits = append(edits, edit{at + p.At, len(p.Value), with})
					}
				case "arguments", "structuredContent", "inputSchema", "outputSchema":
				default:
					look(p.Value, at+p.At, depth+1)
				}
			})
		}
	}
	if trimmed := bytes.TrimLeft(doc, " \t\r\n"); len(trimmed) > 0 {
		look(trimmed, len(doc)-len(trimmed), 0)
	}
	return applyEdits(doc, nil, edits)
}
