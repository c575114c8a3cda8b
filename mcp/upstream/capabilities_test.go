package upstream

import (
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/mcp/wire"
)

func TestServersLearnCapabilitiesOfClientsOfTheirKind(t *testing.T) {
	const can = `{"elicitation":{}}`
	for _, tt := range []struct {
		name, client string
		stateless    bool
		want         string // the capabilities in the last handshake
	}{
		{"both-with-sessions", older, false, can},
		{"both-stateless", newer, true, can},
		{"session-client-and-stateless-server", older, true, `{}`},
		{"stateless-client-and-session-server", newer, false, `{}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var declared string
			speak := speaksOnly(tt.stateless, func(w spoken) []string { return []string{failure(w.id, -32601)} })
			srv := serveScript(t, func(w spoken) []string {
				switch params := []byte(w.params); w.method {
				case methodInitialize:
					declared = string(wire.Member(params, "capabilities"))
				case methodDiscover:
					declared = string(wire.Member(wire.Member(params, "_meta"), sdk.MetaKeyClientCapabilities))
				}
				return speak(w)
			}, false)
			l := mustLink(t, upstreams(t, Limits{}, srv.server()), "web", Peer{Protocol: tt.client, Capabilities: []byte(can)})
			if l.Modern() != tt.stateless || declared != tt.want {
				t.Errorf("the server, of a stateless revision: %t, learned the capabilities %s, want %t and %s", l.Modern(), declared, tt.stateless, tt.want)
			}
		})
	}
}
