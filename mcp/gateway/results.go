package gateway

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// reserved is how the protocol's own members of _meta begin. They belong to one hop and do not cross the gateway.
const reserved = "io.modelcontextprotocol/"

// Members of _meta that the protocol reserves and that mean something here.
const (
	metaCapabilities = reserved + "clientCapabilities"
	metaServerInfo   = reserved + "serverInfo"
	metaLogLevel     = reserved + "logLevel"
	metaSubscription = reserved + "subscriptionId"
)

var (
	errNoObject = errors.New("it is not a JSON object")
	errNoArray  = errors.New("it is not a JSON array")
)

// A piece is one member of an object that a server sent.
type piece struct {
	name  string
	whole []byte // name and value as they came
	value []byte
	at    int // where value begins in the document
}

// pieces calls visit for each member of the object in doc, in order. It reads what [wire.Members] does not: names that come
// twice and broken UTF-8, because the results of servers pass as they are. That doc is JSON was seen when it was received; what
// is not is an error here, too, as far as it matters for finding the members.
func pieces(doc []byte, visit func(piece)) error {
	i := blank(doc, 0)
	if i >= len(doc) || doc[i] != '{' {
		return errNoObject
	}
	if i = blank(doc, i+1); i < len(doc) && doc[i] == '}' {
		return nil
	}
	for {
		begin := i
		nameEnd := quoted(doc, i)
		if nameEnd < 0 {
			return errNoObject
		}
		name, err := wire.Text(doc[begin:nameEnd])
		if err != nil && name == "" {
			return errNoObject
		}
		if i = blank(doc, nameEnd); i >= len(doc) || doc[i] != ':' {
			return errNoObject
		}
		i = blank(doc, i+1)
		end := skip(doc, i)
		if end <= i {
			return errNoObject
		}
		visit(piece{name: name, whole: doc[begin:end:end], value: doc[i:end:end], at: i})
		if i = blank(doc, end); i >= len(doc) {
			return errNoObject
		}
		if doc[i] == '}' {
			return nil
		}
		if doc[i] != ',' {
			return errNoObject
		}
		i = blank(doc, i+1)
	}
}

// blank is the place of the first byte from i on that is not white space.
func blank(doc []byte, i int) int {
	for i < len(doc) && (doc[i] == ' ' || doc[i] == '\t' || doc[i] == '\n' || doc[i] == '\r') {
		i++
	}
	return i
}

// quoted is the place behind the string that begins at i; -1 if none does.
func quoted(doc []byte, i int) int {
	if i >= len(doc) || doc[i] != '"' {
		return -1
	}
	for i++; ; {
		n := bytes.IndexByte(doc[i:], '"')
		if n < 0 {
			return -1
		}
		end, slashes := i+n, 0
		for end-1-slashes >= i && doc[end-1-slashes] == '\\' {
			slashes++
		}
		if i = end + 1; slashes%2 == 0 {
			return i
		}
	}
}

// skip is the place behind the value that begins at i; -1 if it does not end.
func skip(doc []byte, i int) int {
	if i >= len(doc) {
		return -1
	}
	switch doc[i] {
	case '"':
		return quoted(doc, i)
	case '{', '[':
	default:
		for i < len(doc) && !strings.ContainsRune(",]} \t\r\n", rune(doc[i])) {
			i++
		}
		return i
	}
	for level := 0; i < len(doc); {
		switch doc[i] {
		case '"':
			if i = quoted(doc, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			level++
		case '}', ']':
			if level--; level == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// An edit replaces a value in a document.
type edit struct {
	at, length int
	with       []byte
}

// edited is the object in doc with members put behind its brace and values replaced, in order of their places. Every other byte
// stays.
func edited(doc []byte, front [][]byte, edits []edit) jsontext.Value {
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
	empty := doc[blank(doc, brace)] == '}'
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
func unreserved(meta []byte, keep string, front []byte) (_ []byte, changed bool) {
	return without(meta, front, func(name string) bool { return strings.HasPrefix(name, reserved) && name != keep })
}

// without is a _meta object without the members that drop names, and with a member in front if one is given. See [unreserved], too.
func without(meta, front []byte, drop func(name string) bool) (_ []byte, changed bool) {
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
	err := pieces(meta, func(p piece) {
		if drop(p.name) {
			dropped = true
			return
		}
		put(p.whole)
	})
	if err != nil || !dropped && front == nil {
		return meta, false
	}
	return append(kept, '}'), true
}

// Members that every result has in the stateless revisions.
var typeComplete = []byte(`"resultType":"complete"`)

// uncached are the hints of a result that must not be kept: what a list has in the stateless revisions if its server, of
// another revision, gave none.
var uncachedTTL, uncachedScope = []byte(`"ttlMs":0`), []byte(`"cacheScope":"private"`)

// completed is a result that is made here as the stateless revisions want it: with its type, unless it has one, and with the
// gateway's name.
func (g *Gateway) completed(result jsontext.Value) jsontext.Value {
	f := finding{kind: "complete"}
	if err := f.read(result); err != nil {
		return result
	}
	return f.finish(result, g.self, false)
}

// items calls visit for each element of the array in doc, as [pieces] does for members.
func items(doc []byte, visit func(item []byte, at int)) error {
	i := blank(doc, 0)
	if i >= len(doc) || doc[i] != '[' {
		return errNoArray
	}
	if i = blank(doc, i+1); i < len(doc) && doc[i] == ']' {
		return nil
	}
	for {
		end := skip(doc, i)
		if end <= i {
			return errNoArray
		}
		visit(doc[i:end:end], i)
		if i = blank(doc, end); i >= len(doc) {
			return errNoArray
		}
		if doc[i] == ']' {
			return nil
		}
		if doc[i] != ',' {
			return errNoArray
		}
		i = blank(doc, i+1)
	}
}

// text is the string member of an object that a server sent; empty if there is none.
func text(doc []byte, member string) (found string) {
	_ = pieces(doc, func(p piece) { // what cannot be read has no members
		if p.name == member {
			found, _ = wire.Text(p.value)
		}
	})
	return found
}

// cross is the params of a message as they cross the gateway: without what the protocol reserves in _meta, but for keep, and
// [StripOwn]. Nothing else is touched.
func cross(params jsontext.Value, keep string) jsontext.Value {
	var edits []edit
	params = StripOwn(params)
	_ = pieces(params, func(p piece) { // what is no object has no _meta
		if p.name != "_meta" {
			return
		}
		if with, changed := unreserved(p.value, keep, nil); changed {
			edits = append(edits, edit{p.at, len(p.value), with})
		}
	})
	return edited(params, nil, edits)
}

// A finding is what matters of a result.
type finding struct {
	kind     string // the resultType; "complete" if there is none
	unclear  bool   // it asks for input, and can be read in more than one way: what is asked for may be something else to the client
	typed    bool   // there is a resultType
	requests [][]byte
	metas    []piece
	state    []piece // requestState
	ttl      bool
	scope    bool
}

// read looks through a result of a server. Where a member comes twice, every one of them counts.
func (f *finding) read(result []byte) error {
	f.kind = "complete"
	defer func() {
		if f.asks() {
			_, err := wire.Read(wire.Response(nil, jsontext.Value("1"), result))
			f.unclear = err != nil
		}
	}()
	return pieces(result, func(p piece) {
		switch p.name {
		case "resultType":
			f.typed = true
			if text, err := wire.Text(p.value); err != nil || text != "complete" {
				f.kind = text
			}
		case "inputRequests":
			if string(p.value) != "null" {
				f.requests = append(f.requests, p.value)
			}
		case "requestState":
			f.state = append(f.state, p)
		case "_meta":
			f.metas = append(f.metas, p)
		case "ttlMs":
			f.ttl = true
		case "cacheScope":
			f.scope = true
		}
	})
}

// asks reports whether the result asks the client for input. Clients look for either of the two signs.
func (f *finding) asks() bool { return f.kind == "input_required" || len(f.requests) > 0 }

// finish is the result as it goes to the client: without what the protocol reserves, and, if the gateway's name is given, with
// what the stateless revisions want. All else is byte for byte as it came.
func (f *finding) finish(result jsontext.Value, named []byte, cached bool, more ...edit) jsontext.Value {
	var front [][]byte
	var edits []edit
	if named != nil && !f.typed {
		front = append(front, typeComplete)
	}
	if named != nil && cached && !f.ttl {
		front = append(front, uncachedTTL)
	}
	if named != nil && cached && !f.scope {
		front = append(front, uncachedScope)
	}
	if named != nil && len(f.metas) == 0 {
		front = append(front, append(append([]byte(`"_meta":{`), named...), '}'))
	}
	for i, m := range f.metas {
		first := named
		if i > 0 {
			first = nil
		}
		if with, changed := unreserved(m.value, "", first); changed {
			edits = append(edits, edit{m.at, len(m.value), with})
		}
	}
	edits = append(edits, more...)
	slices.SortFunc(edits, func(a, b edit) int { return a.at - b.at })
	return edited(result, front, edits)
}
