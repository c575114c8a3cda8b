package gateway

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// Members of _meta that the protocol reserves and that mean something here.
const (
	metaCapabilities = wire.ReservedPrefix + "clientCapabilities"
	metaServerInfo   = wire.ReservedPrefix + "serverInfo"
	metaLogLevel     = wire.ReservedPrefix + "logLevel"
	metaSubscription = wire.ReservedPrefix + "subscriptionId"
)

// Members that every result has in the stateless revisions.
var typeComplete = []byte(`"resultType":"complete"`)

// uncached are the hints of a result that must not be kept: what a list has in the stateless revisions if its server, of
// another revision, gave none.
var ttlZero, scopePrivate = []byte(`"ttlMs":0`), []byte(`"cacheScope":"private"`)

// completed is a result that is made here as the stateless revisions want it: with its type, unless it has one, and with the
// gateway's name.
func (g *Gateway) withResultType(result jsontext.Value) jsontext.Value {
	f, ok := readResult(result)
	if !ok {
		return result
	}
	return f.rewrite(result, g.self, false)
}

// A finding is what matters of a result.
type resultInfo struct {
	kind      string // the resultType; "complete" if there is none
	ambiguous bool   // it asks for input, and can be read in more than one way: what is asked for may be something else to the client
	hasType   bool   // there is a resultType
	questions [][]byte
	metas     []wire.Piece
	state     []wire.Piece // requestState
	hasTTL    bool
	hasScope  bool
}

// readResult looks through a result of a server; false: it is no object. Where a member comes twice, every one of them counts.
func readResult(result []byte) (f resultInfo, ok bool) {
	f.kind = "complete"
	ok = wire.Each(result, func(p wire.Piece) {
		switch p.Name {
		case "resultType":
			f.hasType = true
			if text, err := wire.Text(p.Value); err != nil || text != "complete" {
				f.kind = text
			}
		case "inputRequests":
			if string(p.Value) != "null" {
				f.questions = append(f.questions, p.Value)
			}
		case "requestState":
			f.state = append(f.state, p)
		case "_meta":
			f.metas = append(f.metas, p)
		case "ttlMs":
			f.hasTTL = true
		case "cacheScope":
			f.hasScope = true
		}
	})
	if f.asks() {
		_, err := wire.Read(wire.Response(nil, jsontext.Value("1"), result))
		f.ambiguous = err != nil
	}
	return f, ok
}

// asks reports whether the result asks the client for input. Clients look for either of the two signs.
func (f *resultInfo) asks() bool { return f.kind == "input_required" || len(f.questions) > 0 }

// finish is the result as it goes to the client: without what the protocol reserves, and, if the gateway's name is given, with
// what the stateless revisions want. All else is byte for byte as it came.
func (f *resultInfo) rewrite(result jsontext.Value, named []byte, cached bool, more ...wire.Edit) jsontext.Value {
	var front [][]byte
	var edits []wire.Edit
	if named != nil && !f.hasType {
		front = append(front, typeComplete)
	}
	if named != nil && cached && !f.hasTTL {
		front = append(front, ttlZero)
	}
	if named != nil && cached && !f.hasScope {
		front = append(front, scopePrivate)
	}
	if named != nil && len(f.metas) == 0 {
		front = append(front, append(append([]byte(`"_meta":{`), named...), '}'))
	}
	for i, m := range f.metas {
		first := named
		if i > 0 {
			first = nil
		}
		if with, changed := wire.ReplaceReserved(m.Value, first); changed {
			edits = append(edits, wire.Edit{At: m.At, Length: len(m.Value), With: with})
		}
	}
	edits = append(edits, more...)
	slices.SortFunc(edits, func(a, b wire.Edit) int { return a.At - b.At })
	return wire.Splice(result, front, edits)
}
