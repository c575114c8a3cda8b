package upstream

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// shortTimeout is the deadline of servers that are expected to miss it.
const shortTimeout = 300 * time.Millisecond

// A listingFault is a server whose listing must fail.
type listingFault struct {
	name   string
	script script
	limits Limits
	code   string
	reason string
}

// lists answers tools/list with one line.
func lists(line string) script { return answering("tools/list", answerWith(line)) }

func listingFaults() []listingFault {
	page := func(cursor string) string { return fmt.Sprintf(`{"tools":[{"name":"a"}],"nextCursor":%q}`, cursor) }
	forever := 0
	return []listingFault{
		{"hangs-at-initialize", answering("initialize", silence), Limits{}, CodeTimeout, "did not connect and answer the handshake within connect_timeout"},
		{"hangs-at-discover", answering("server/discover", silence), Limits{}, CodeTimeout, "did not connect and answer the handshake within connect_timeout"},
		{"hangs-at-list", answering("tools/list", silence), Limits{}, CodeTimeout, "did not answer tools/list within connect_timeout"},
		{"same-cursor-again", answering("tools/list", func(w spoken) []string { return []string{result(w.id, page("x"))} }),
			Limits{}, CodeProtocol, "circle"},
		{"pages-without-end", answering("tools/list", func(w spoken) []string {
			forever++
			return []string{result(w.id, page(fmt.Sprint(forever)))}
		}), Limits{Pages: 5}, CodeCatalog, "5 pages"},
		{"one-tool-too-many", lists(`{"jsonrpc":"2.0","id":ID,"result":{"tools":[1,2,3]}}`),
			Limits{Tools: 2}, CodeCatalog, "more than 2 tools"},
		{"catalog-too-large", answering("tools/list", func(w spoken) []string {
			return []string{result(w.id, `{"tools":[`+strings.Repeat(" ", 100)+`]}`)}
		}), Limits{CatalogBytes: 111}, CodeCatalog, "more than 111 bytes"},
		{"message-too-large", answering("tools/list", func(w spoken) []string {
			return []string{result(w.id, `{"tools":[`+strings.Repeat(" ", envelopeSlack+20)+`]}`)}
		}), Limits{CatalogBytes: 10, ResultBytes: 10}, CodeCatalog, "more than"},
		{"tools-missing", lists(`{"jsonrpc":"2.0","id":ID,"result":{"tool":[]}}`), Limits{}, CodeProtocol, `no "tools"`},
		{"tools-no-array", lists(`{"jsonrpc":"2.0","id":ID,"result":{"tools":{}}}`), Limits{}, CodeProtocol, "array"},
		{"tools-twice", lists(`{"jsonrpc":"2.0","id":ID,"result":{"tools":[],"tools":[]}}`), Limits{},
			CodeProtocol, "twice"},
		{"cursor-no-string", lists(`{"jsonrpc":"2.0","id":ID,"result":{"tools":[],"nextCursor":7}}`), Limits{},
			CodeProtocol, "nextCursor"},
		{"result-null", lists(`{"jsonrpc":"2.0","id":ID,"result":null}`), Limits{}, CodeProtocol, "object"},
		{"error", lists(`{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":"\u001b[31mred"}}`), Limits{},
			CodeProtocol, `error -1 "\x1b[31mred"`},
		{"id-another", lists(`{"jsonrpc":"2.0","id":77,"result":{"tools":[]}}`), Limits{}, CodeProtocol, "77 in place"},
		{"id-null", lists(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`), Limits{},
			CodeProtocol, "what?"},
		{"initialize-twice-version", answering("initialize", answerWith(
			`{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-11-25","protocolVersion":"2024-11-05"}}`)), Limits{},
			CodeProtocol, "initialize"},
		{"initialize-unknown-version", answering("initialize", answerWith(
			`{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2099-01-01"}}`)),
			Limits{}, CodeProtocol, "2099-01-01"},
		{"initialize-stateless-version", answering("initialize", answerWith(
			`{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2026-07-28","capabilities":{}}}`)), Limits{}, CodeProtocol, "2026-07-28"},
		{"initialize-refused", answering("initialize", answerWith(
			`{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"go away"}}`)),
			Limits{}, CodeProtocol, "go away"},
	}
}

func TestListServersThatLie(t *testing.T) {
	for _, tt := range listingFaults() {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			s, healthy := serveScript(t, tt.script, true).server(), serveScript(t, honest, true).server()
			if tt.code == CodeTimeout {
				s.ConnectTimeout = shortTimeout
			}
			healthy.Name = "healthy"
			u := upstreams(t, tt.limits, s, healthy)
			l := clientOf(u).List(t.Context())
			if l[0].Status != StatusDown || l[0].Code != tt.code || l[0].Pages != nil ||
				!strings.Contains(l[0].Reason, tt.reason) {
				t.Errorf("List()[0] = %+v, want down, %s, %q", l[0], tt.code, tt.reason)
			}
			// A lying server takes only its own tools away. (Limits are common: some scripts make it fail as well.)
			if tt.limits == (Limits{}) && l[1].Status != StatusUp {
				t.Errorf("List()[1] = %+v, want it up", l[1])
			}
			if r := call(t.Context(), u, "web", "{}"); r.Effect != EffectNotSent || r.Code != CodeUnreachable {
				t.Errorf("Call() to a server that is down = %+v, want not_sent, %s", r, CodeUnreachable)
			}
		})
	}
}

func TestListLimitsAreExact(t *testing.T) {
	two := `{"tools":[1,2]}`
	paged := answering("tools/list", func(w spoken) []string {
		if strings.Contains(w.params, "second") {
			return []string{result(w.id, two)}
		}
		return []string{result(w.id, `{"tools":[],"nextCursor":"second"}`)}
	})
	first := len(`{"tools":[],"nextCursor":"second"}`)
	tests := []struct {
		name   string
		limits Limits
		code   string
	}{
		{"at-every-limit", Limits{CatalogBytes: first + len(two), Pages: 2, Tools: 2}, ""},
		{"one-byte-past", Limits{CatalogBytes: first + len(two) - 1, Pages: 2, Tools: 2}, CodeCatalog},
		{"one-page-past", Limits{CatalogBytes: first + len(two), Pages: 1, Tools: 2}, CodeCatalog},
		{"one-tool-past", Limits{CatalogBytes: first + len(two), Pages: 2, Tools: 1}, CodeCatalog},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u := upstreams(t, tt.limits, serveScript(t, paged, false).server())
			if tt.code != "" {
				mustBeDown(t, u, tt.code)
			} else if l := mustList(t, u); len(l.Pages) != 2 || string(l.Pages[1]) != two {
				t.Errorf("Pages = %q, want two, byte for byte", l.Pages)
			}
		})
	}
}

func TestHTTPRefusals(t *testing.T) {
	other := serveScript(t, honest, false)
	status := func(code int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			fmt.Fprint(w, "secret-token <script>")
		}
	}
	endpoint := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			if to != "" {
				fmt.Fprintf(w, "event: endpoint\ndata: %s\n\n", to)
			}
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}
	tests := []struct {
		name, kind string
		handler    http.HandlerFunc
		code       string
		reason     string
	}{
		{"redirect-to-another-origin", TypeHTTP, status(307, "Location", other.URL), CodeRedirect, "307"},
		{"redirect-of-sse", TypeSSE, status(302, "Location", other.URL), CodeRedirect, "302"},
		{"sse-not-found", TypeSSE, status(404), CodeUnreachable, "404 Not Found"},
		{"wrong-type", TypeHTTP, status(200, "Content-Type", "text/html"), CodeUnreachable, "text/html"},
		{"sse-endpoint-elsewhere", TypeSSE, endpoint(other.URL + "/mcp"), CodeOrigin, "outside the configured origin"},
		{"sse-endpoint-that-never-comes", TypeSSE, endpoint(""), CodeTimeout, "connect_timeout"},
		{"sse-endpoint-no-url", TypeSSE, endpoint("http://[::1"), CodeProtocol, "not a URL"},
		{"sse-ends-at-once", TypeSSE, status(200, "Content-Type", "text/event-stream"), CodeUnreachable, "lost"},
		{"sse-endpoint-with-user", TypeSSE, endpoint("//user:pw@HOST/mcp"), CodeOrigin, "outside"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			srv := httptest.NewServer(tt.handler)
			t.Cleanup(srv.Close)
			if tt.name == "sse-endpoint-with-user" {
				srv.Config.Handler = endpoint("//user:pw@" + srv.Listener.Addr().String() + "/mcp")
			}
			within := 5 * time.Second
			if tt.code == CodeTimeout {
				within = shortTimeout
			}
			u := upstreams(t, Limits{}, Server{Name: "w", Type: tt.kind, URL: srv.URL, ConnectTimeout: within,
				Headers: []Header{{"Authorization", "Bearer secret-token"}}})
			reason := mustBeDown(t, u, tt.code)
			if !strings.Contains(reason, tt.reason) || strings.Contains(reason, "secret-token") {
				t.Errorf("Reason = %q, want it to hold %q and no secret", reason, tt.reason)
			}
			if n := len(other.seen); n != 0 {
				t.Errorf("the other origin got %d requests, want none", n)
			}
		})
	}
}

// No server answers before all were asked: were they asked one after the other, none would.
func TestSlowServersDoNotAddUp(t *testing.T) {
	noLeak(t)
	const all = 8
	var asked atomic.Int32
	everyone := make(chan struct{})
	slow := func(w spoken) []string {
		if w.method == "initialize" {
			if asked.Add(1) == all {
				close(everyone)
			}
			<-everyone
		}
		return honest(w)
	}
	var servers []Server
	for i := range all {
		s := serveScript(t, slow, false).server()
		s.Name = fmt.Sprint("slow", i)
		servers = append(servers, s)
	}
	for _, l := range clientOf(upstreams(t, Limits{}, servers...)).List(t.Context()) {
		if l.Status != StatusUp {
			t.Errorf("List() = %+v, want it up", l)
		}
	}
}
