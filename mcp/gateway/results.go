package gateway

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// reserved is how the protocol's own members of _meta begin. They belong to one hop and do not cross the gateway.
const reservedPrefix = "io.modelcontextprotocol/"

// Members of _meta that the protocol reserves and that mean something here.
const (
	metaCapabilities = reservedPrefix + "clientCapabilities"
	metaServerInfo   = reservedPrefix + "serverInfo"
	metaLogLevel     = reservedPrefix + "logLevel"
	metaSubscription = reservedPrefix + "subscriptionId"
)

// An edit replaces a value in a document.
type edit struct {
	at, length int
	with       []byte
}

// edited is the object in doc with members put behind its brace and values replaced, in order of their places. Every other byte
// stays.
func applyEdits(doc []byte, front [][]byte, edits []edit) jsontext.Value {
	if len(front) == 0 && len(edits) == 0 {
		return doc
	}
	brace := bytes.IndexByte(doc, '{') + 1
	size := len(doc)
	for _, f := range front {
		size += len(f) + 1
	}
	for _, e := range edits {
		size += len(e.with) - e.length
	}
	out := append(make([]byte, 0, size), doc[:brace]...)
	empty := bytes.HasPrefix(bytes.TrimLeft(doc[brace:], " \t\r\n"), []byte("}"))
	for i, f := range front {
		out = append(out, f...)
		if !empty || i < len(front)-1 {
			out = append(out, ',')
		}
	}
	from := brace
	for _, e := range edits {
		out = append(append(out, doc[from:e.at]...), e.with...)
		from = e.at + e.length
	}
	return append(out, doc[from:]...)
}

// unreserved is a _meta object without what the protocol reserves, but for keep, and with a member in front if one is given. It
// is meta itself, and nothing has changed, if there is neither. What is no object is left alone.
func withoutReserved(meta []byte, keep string, front []byte) (_ []byte, changed bool) {
	return withoutMembers(meta, front, func(name string) bool { return strings.HasPrefix(name, reservedPrefix) && name != keep })
}

// without is a _meta object without the members that drop names, and with a member in front if one is given. See [unreserved], too.
func withoutMembers(meta, front []byte, drop func(name string) bool) (_ []byte, changed bool) {
	dropped := false
	kept := append(make([]byte, 0, len(meta)+len(front)+1), '{')
	put := func(member []byte) {
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, member...)
	}
	if front != nil {
		put(front)
	}
	isObject := wire.Each(meta, func(p wire.Piece) {
		if drop(p.Name) {
			dropped = true
			return
		}
		put(p.Whole)
	})
	if !isObject || !dropped && front == nil {
		return meta, false
	}
	return append(kept, '}'), true
}

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

// text is the string member of an object that a server sent; empty if there is none.
func textMember(doc []byte, member string) (found string) {
	wire.Each(doc, func(p wire.Piece) { // what cannot be read has no members
		if p.Name == member {
			found, _ = wire.Text(p.Value)
		}
	})
	return found
}

// cross is the params of a message as they cross the gateway: without what the protocol reserves in _meta, but for keep, and
// [StripOwn]. Nothing else is touched.
func withoutReservedMeta(params jsontext.Value, keep string) jsontext.Value {
	var edits []edit
	params = StripOwn(params)
	wire.Each(params, func(p wire.Piece) { // what is no object has no _meta
		if p.Name != "_meta" {
			return
		}
		if with, changed := withoutReserved(p.Value, keep, nil); changed {
			edits = append(edits, edit{p.At, len(p.Value), with})
		}
	})
	return applyEdits(params, nil, edits)
}

// A finding is what matters of a result.
type resultInfo struct {
	kind     string // the resultType; "complete" if there is none
	ambiguous  bool   // it asks for input, and can be read in more than one way: what is asked for may be something else to the client
	hasType    bool   // there is a resultType
	requests [][]byte
	metas    []wire.Piece
	state    []wire.Piece // requestState
	hasTTL      bool
	hasScope    bool
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
				f.requests = append(f.requests, p.Value)
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
func (f *resultInfo) asks() bool { return f.kind == "input_required" || len(f.requests) > 0 }

// finish is the result as it goes to the client: without what the protocol reserves, and, if the gateway's name is given, with
// what the stateless revisions want. All else is byte for byte as it came.
func (f *resultInfo) rewrite(result jsontext.Value, named []byte, cached bool, more ...edit) jsontext.Value {
	var front [][]byte
	var edits []edit
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
		if with, changed := withoutReserved(m.Value, "", first); changed {
			edits = append(edits, edit{m.At, len(m.Value), with})
		}
	}
	edits = append(edits, more...)
	slices.SortFunc(edits, func(a, b edit) int { return a.at - b.at })
	return applyEdits(result, front, edits)
}
