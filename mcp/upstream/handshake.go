package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/mcp/wire"
)

// maxCapabilities bounds the capabilities of a server in bytes. A link keeps them.
const maxCapabilities = 64 << 10

// newestLegacy is the last revision with a handshake.
const newestLegacy = "2025-11-25"

// A greeting is the outcome of one handshake.
type greeting struct {
	fault   *fault
	refused bool // the server answered with an error, so the other handshake may work
	speaks  bool // the refusal names the refused revision as one that the server speaks
}

var greeted = greeting{}

// handshake makes the handshake for the peer's kind of revision. If the server refuses it, the link
// tries the other one.
func (l *Link) handshake(ctx context.Context) *fault {
	if l.up.server.Type == TypeSSE { // a transport of MCP 2024-11-05
		return l.initialize(ctx).fault
	}

	first, second := l.initialize, l.discover
	modernFirst := l.peer.Protocol >= statelessProtocol || l.peer.Protocol == ""
	if modernFirst {
		first, second = second, first
	}

	refusal := first(ctx)
	if !refusal.refused {
		return refusal.fault
	}
	other := second(ctx)
	if !other.refused {
		return other.fault
	}

	// The refusal of initialize is the better reason, because every server knows that handshake.
	if modernFirst {
		return l.endWith(other.fault)
	}

	return l.endWith(refusal.fault)
}

// clientInfo encodes the clientInfo of this process.
func (l *Link) clientInfo() []byte {
	var b wire.Object
	b.Add("name", wire.Quote(l.u.info.Name))
	b.Add("version", wire.Quote(l.u.info.Version))
	return b.Value()
}

// sendHandshake sends a request of the handshake.
func (l *Link) sendHandshake(ctx context.Context, method string, params []byte) (jsontext.Value, greeting) {
	id := l.up.ids.Add(1)
	o := l.sendRequest(ctx, &query{id: id, method: method, frame: wire.Call(nil, fmt.Append(nil, id), method, params)})
	switch {
	case o.fault == nil && o.failed == nil:
		return o.Result, greeted
	case o.fault == nil:
		reason := fmt.Sprintf("it answered %s with error %d %q", method, o.failed.Code, o.failed.Message)
		f := &fault{code: CodeProtocol, reason: presentableText(reason, l.secrets)}
		return nil, greeting{fault: f, refused: true, speaks: speaksStateless(o.failed)}
	}
	if o.fault.code == codeFrame {
		o.fault = &fault{code: CodeProtocol, reason: o.fault.reason}
	}
	refused := o.status >= 400 && o.status < 500 && o.fault.code != CodeCredentialsRefused
	return nil, greeting{fault: o.fault, refused: refused && l.fault() == nil}
}

// initialize makes the handshake of the revisions up to 2025-11-25.
func (l *Link) initialize(ctx context.Context) greeting {
	version := l.peer.Protocol
	if version >= statelessProtocol || !slices.Contains(sdk.SupportedProtocolVersions(), version) {
		version = newestLegacy
	}

	var params wire.Object
	params.Add("protocolVersion", wire.Quote(version))
	params.Add("capabilities", l.declaredCapabilities(version))
	params.Add("clientInfo", l.clientInfo())
	result, g := l.sendHandshake(ctx, methodInitialize, params.Value())
	if g.fault != nil {
		return g
	}

	hello, err := readServerHello(result)
	if err != nil {
		return greeting{fault: l.fail(CodeProtocol, "its answer to %s is not usable: %v", methodInitialize, err)}
	}
	if hello.protocol >= statelessProtocol || !slices.Contains(sdk.SupportedProtocolVersions(), hello.protocol) {
		return greeting{fault: l.fail(CodeProtocol,
			"its answer to %s is not usable: it speaks revision %.40q, which is unknown here",
			methodInitialize, l.secrets.String(hello.protocol))}
	}

	l.storeHandshake(hello, false)
	if f := l.conn.sendMessage(ctx, wire.Call(nil, nil, noteInitialized, nil)); f != nil {
		return greeting{fault: l.endWith(f)}
	}

	return greeted
}

// discover makes the handshake of the revisions from 2026-07-28 on.
func (l *Link) discover(ctx context.Context) greeting {
	meta, params := l.requestMeta(statelessProtocol), wire.Object(nil)
	params.Add("_meta", meta.Value())
	encoded := params.Value()
	result, g := l.sendHandshake(ctx, methodDiscover, encoded)
	if g.speaks { // several server versions may share one address: try once more before the other handshake
		result, g = l.sendHandshake(ctx, methodDiscover, encoded)
	}
	if g.fault != nil {
		return g
	}

	hello, err := readServerHello(result)
	if err != nil {
		return greeting{fault: l.fail(CodeProtocol, "its answer to %s is not usable: %v", methodDiscover, err)}
	}
	if !slices.Contains(hello.versions, statelessProtocol) {
		return greeting{refused: true,
			fault: &fault{code: CodeProtocol, reason: "it speaks no revision of the latest kind that is known here"}}
	}

	hello.protocol = statelessProtocol
	l.storeHandshake(hello, true)
	return greeted
}

// speaksStateless reports whether an error refuses a revision but lists ours as supported (MCP
// 2026-07-28, UnsupportedProtocolVersionError).
func speaksStateless(failed *RPCError) bool {
	if failed.Code != wire.UnsupportedVersion {
		return false
	}
	var supported []string
	if err := json.Unmarshal(wire.Member(failed.Data, "supported"), &supported); err != nil {
		return false
	}
	return slices.Contains(supported, statelessProtocol)
}

// A serverHello is a server's answer to the handshake.
type serverHello struct {
	protocol     string
	versions     []string
	capabilities jsontext.Value
	info         jsontext.Value
}

// readServerHello reads the result of initialize or of server/discover. It drops instructions and
// all other members.
func readServerHello(result []byte) (s serverHello, err error) {
	var version, versions, meta jsontext.Value
	err = readMembers(result, map[string]*jsontext.Value{
		"protocolVersion":   &version,
		"supportedVersions": &versions,
		"capabilities":      &s.capabilities,
		"serverInfo":        &s.info,
		"_meta":             &meta,
	})
	if err != nil {
		return s, err
	}

	if version != nil {
		if s.protocol, err = wire.Text(version); err != nil {
			return s, err
		}
	}
	if versions != nil && json.Unmarshal(versions, &s.versions) != nil {
		return s, errors.New("the supported versions are not a list of texts")
	}

	if len(s.capabilities) > maxCapabilities {
		return s, fmt.Errorf("the capabilities take more than %d bytes", maxCapabilities)
	}
	if s.capabilities != nil {
		s.capabilities = s.capabilities.Clone() // the link keeps it
		if wire.CheckObject(s.capabilities) != nil {
			return s, errors.New("the capabilities are not one strict JSON object")
		}
	}

	if s.info == nil {
		s.info = wire.Member(meta, sdk.MetaKeyServerInfo)
	}
	return s, nil
}

// storeHandshake stores the result of the handshake in the link.
func (l *Link) storeHandshake(hello serverHello, modern bool) {
	l.modern = modern
	if modern {
		l.ownMeta = l.requestMeta(hello.protocol)
	}
	l.serverInfo = ServerInfo{
		Protocol:     hello.protocol,
		Capabilities: hello.capabilities,
		Server:       Info{Name: l.serverClaim(hello.info, "name"), Version: l.serverClaim(hello.info, "version")},
	}
	if l.serverInfo.Capabilities == nil {
		l.serverInfo.Capabilities = jsontext.Value("{}")
	}
	l.readAnnouncements()
	if h, ok := l.conn.(*httpConn); ok {
		h.buildHeader()
	}
}

// serverClaim returns a text of the serverInfo, made safe to print; "" if there is none.
func (l *Link) serverClaim(info jsontext.Value, member string) string {
	claim, err := wire.Text(wire.Member(info, member))
	if err != nil {
		return ""
	}
	return presentableText(cutLabel(claim, l.secrets), nil)
}
