package gateway

import (
	"context"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// initialize opens a session.
func (g *Gateway) initialize(ctx context.Context, q *request) []byte {
	if q.session != nil {
		return q.refuse(wire.InvalidRequest, "the session has begun already")
	}
	wanted := wire.TextMember(q.Params, "protocolVersion")
	if wanted == "" {
		return q.refuse(wire.InvalidParams, `"protocolVersion" is missing`)
	}
	revision := session.StatefulRevisions[0]
	if slices.Contains(session.StatefulRevisions, wanted) {
		revision = wanted
	}
	s, err := g.openSession(q, revision, ask.ReadCapabilities(wire.Find(q.Params, "capabilities")))
	if err != nil {
		return q.refuse(codeBusy, "%v", err)
	}
	q.session, q.Session, q.Protocol = s, s.Session, revision

	var b wire.Object
	b.Add("protocolVersion", wire.Quote(revision))
	b.Add("capabilities", g.capabilities(ctx, q))
	b.Add("serverInfo", infoOf(g.options.Info))
	return q.rawResult(b.Done())
}

// codeBusy is the error code if too many sessions are open.
const codeBusy = -32000

// discover answers server/discover.
func (g *Gateway) discover(ctx context.Context, q *request) []byte {
	var b wire.Object
	b.Add("supportedVersions", wire.Texts(session.Revisions()))
	b.Add("capabilities", g.capabilities(ctx, q))
	b.Add("ttlMs", strconv.AppendInt(nil, q.config().MaxAge.Milliseconds(), 10))
	b.Add("cacheScope", []byte(`"private"`))
	return q.result(b.Done())
}

// infoOf is a name and a version as JSON.
func infoOf(info upstream.Info) jsontext.Value {
	var b wire.Object
	b.Add("name", wire.Quote(info.Name))
	b.Add("version", wire.Quote(info.Version))
	return b.Done()
}
