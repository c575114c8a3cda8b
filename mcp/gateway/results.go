package gateway

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// Members of _meta that the gateway uses.
const (
	metaCapabilities = wire.ReservedPrefix + "clientCapabilities"
	metaServerInfo   = wire.ReservedPrefix + "serverInfo"
	metaLogLevel     = wire.ReservedPrefix + "logLevel"
	metaSubscription = wire.ReservedPrefix + "subscriptionId"
)

var typeComplete = []byte(`"resultType":"complete"`)

// Members of a stateless list if its server, of another revision, gave no hints for caches.
var ttlZero, scopePrivate = []byte(`"ttlMs":0`), []byte(`"cacheScope":"private"`)

// withResultType adds to a result of the gateway the members of every stateless result: a type,
// unless it has one, and the gateway's name.
func (g *Gateway) withResultType(result jsontext.Value) jsontext.Value {
	f := readResult(result, nil)
	if !f.isObject {
		return result
	}
	return f.rewrite(result, g.self, false)
}

// resultInfo holds the parts of a result that the gateway handles.
type resultInfo struct {
	isObject  bool
	kind      string // value of resultType; "complete" if absent
	ambiguous bool   // the result asks for input and has more than one reading
	hasType   bool   // resultType is present
	questions [][]byte
	metas     []wire.Piece
	state     []wire.Piece // requestState members
	hasTTL    bool
	hasScope  bool
}

// readResult reads a result of a server; the members are nil if they were not read yet. If a member
// repeats, each occurrence counts.
func readResult(result []byte, members []wire.Piece) (f resultInfo) {
	f.kind, f.isObject = "complete", true
	if members == nil {
		f.isObject = wire.ForEachMember(result, f.readMember)
	}
	for _, p := range members {
		f.readMember(p)
	}

	if f.asksForInput() {
		_, err := wire.Read(wire.Response(nil, jsontext.Value("1"), result))
		f.ambiguous = err != nil
	}

	return f
}

func (f *resultInfo) readMember(p wire.Piece) {
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
}

// asksForInput reports whether the result asks for input. Clients look at either of the two signs.
func (f *resultInfo) asksForInput() bool { return f.kind == "input_required" || len(f.questions) > 0 }

// relayResult answers with a server's result; members are those of [readResult]. If code is not
// empty, the client does not get the result, and why says the reason.
func (q *request) relayResult(server *server, target string, result jsontext.Value, members []wire.Piece,
	cacheable bool) (message []byte, code, why string) {
	stripped := wire.StripOwn(result)
	if len(stripped) != len(result) {
		members = nil
	}
	result = stripped
	info := readResult(result, members)
	if !info.isObject {
		return q.answerErrorf(wire.InternalError, "server %s: its result is not a JSON object", server.Name), "", ""
	}
	if code, why = q.checkResult(server, &info); code != "" {
		return nil, code, why
	}

	if !q.stateless() {
		return q.answerRawResult(info.rewrite(result, nil, false)), "", ""
	}
	seal := q.sealState(server, target, &info)
	return q.answerRawResult(info.rewrite(result, q.gateway.self, cacheable, seal...)), "", ""
}

// answerClient answers the client's request.
func (c *ToolCall) answerClient(a Answer) []byte {
	q := c.request
	q.noteResult(a)
	q.observed.Judged, q.TokenRefused = a.Judged, a.TokenRefused
	switch {
	case a.Error != nil:
		return q.relayError(c.server, a.Error)
	case a.Result == nil:
		return q.answerErrorf(wire.InternalError, "there is no answer")
	case !a.Native && c.url != nil:
		return q.answerResult(c.url.asResult())
	case !a.Native:
		return q.answerResult(a.Result)
	}

	message, code, why := q.relayResult(c.server, c.Tool, a.Result, a.Members, false)
	if code != "" {
		return q.answerResult(withheldResult(code, fmt.Sprintf("server %s: %s", c.Server, why), a.Run))
	}
	return message
}

// rewrite returns the result for the client without reserved members. If the gateway's name is
// given, it adds the members of every stateless result. Every other byte stays.
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
		member := named
		if i > 0 {
			member = nil
		}
		if meta, changed := wire.ReplaceReserved(m.Value, member); changed {
			edits = append(edits, wire.Edit{At: m.At, Length: len(m.Value), With: meta})
		}
	}

	edits = append(edits, more...)
	slices.SortFunc(edits, func(a, b wire.Edit) int { return a.At - b.At })

	return wire.Splice(result, front, edits)
}
