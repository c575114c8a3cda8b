package upstream

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
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
			noLeak(t)
			server := sdk.NewServer(&sdk.Implementation{Name: "asks", Version: "1"}, nil)
			handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: tt.stateless})
			var declared string
			h := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				params := wire.Member(body, "params")
				switch wire.TextMember(body, "method") {
				case methodInitialize:
					if tt.stateless { // the SDK has no server of the latest revision alone
						http.NotFound(rw, r)
						return
					}
					declared = string(wire.Member(params, "capabilities"))
				case methodDiscover:
					declared = string(wire.Member(wire.Member(params, "_meta"), sdk.MetaKeyClientCapabilities))
				}
				handler.ServeHTTP(rw, r)
			}))
			t.Cleanup(h.Close)
			u := upstreams(t, Limits{}, Server{Name: "asks", Type: TypeHTTP, URL: h.URL})

			l := linked(t, u, "asks", Peer{Owner: "ann", Protocol: tt.client, Capabilities: []byte(can), OnMessage: func(wire.Message) {}})
			if l.Modern() != tt.stateless || declared != tt.want {
				t.Errorf("the server, of a stateless revision: %t, learned the capabilities %s, want %t and %s", l.Modern(), declared, tt.stateless, tt.want)
			}
		})
	}
}
