package e2e

import (
	"fmt"
	"io"
	"net/http"
	"pgfsm/internal/test/cli"
	"pgfsm/internal/test/mcptest"
	"strings"
	"sync"
	"testing"
)

// A bystander keeps what reached the server of tools/call: params, and headers that a client could have meant for it.
type bystander struct {
	mu   sync.Mutex
	seen []string
}

func (w *bystander) answering(u *mcptest.Server) mcptest.Reply {
	honest := mcptest.Writes("application/json", mcptest.Response("ID", mcptest.OneText))
	return func(rw http.ResponseWriter, r *http.Request, id string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, name := range []string{"Authorization", "Cookie", "Origin", "X-Forwarded-For", "Mcp-Session-Id"} {
			if v := r.Header.Values(name); len(v) > 0 {
				w.seen = append(w.seen, fmt.Sprintf("header %s %q", name, v))
			}
		}
		honest(rw, r, id)
	}
}

// params keeps the params of a call, without the progress token that every call of the gateway has: the id of its request.
func (w *bystander) params(body []byte) {
	if method, _ := cli.At(body, "/method"); string(method) == `"tools/call"` {
		params, _ := cli.At(body, "/params")
		w.mu.Lock()
		defer w.mu.Unlock()
		id, _ := cli.At(body, "/id")
		w.seen = append(w.seen, strings.Replace(string(params), `,"_meta":{"progressToken":`+string(id)+`}`, "", 1))
	}
}

// taken is what came since it was last asked.
func (w *bystander) taken() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := strings.Join(w.seen, " | ")
	w.seen = nil
	return out
}

// attacked is a gateway whose one server is watched.
func attacked(t *testing.T) (*served, *bystander) {
	t.Helper()
	u := mcptest.New(t, mcptest.But("tools/list", mcptest.TwoTools))
	w := new(bystander)
	deed := w.answering(u)
	u.Does(deed)
	inner := u.Server.Config.Handler
	u.Server.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.params(body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		inner.ServeHTTP(rw, r)
	})
	return serve(t, gatewayFolder(t, u, "ledger: \"sqlite:pgfsm.db\"\n")), w
}

// TestServeParserDifferentials: whatever a client writes, a tools/call that reaches the server is one that was judged, in the
// bytes in which it was.
func TestServeParserDifferentials(t *testing.T) {
	t.Parallel()
	s, w := attacked(t)
	a := s.agent("/servers/echo/mcp", "")
	const (
		look    = `{"arguments":{},"name":"look"}`
		call    = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`
		whole   = call + `{"name":"look","arguments":{}}}`
		other   = call + `{"name":"burn","arguments":{}}}`
		invalid = "-32602"
		unread  = "-32700"
		request = "-32600"
	)
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	of := func(params string) string { return call + params + `}` }
	for _, tt := range []struct{ name, message, code, reached string }{
		{"plain", whole, "hi", `{"name":"look","arguments":{}}`},
		{"order-and-space", of("{ \"arguments\" :\n{ } ,\r\"name\" : \"look\" }"), "hi", `{"name":"look","arguments":{}}`},
		{"no-arguments", of(`{"name":"look"}`), "hi", `{"name":"look","arguments":{}}`},
		{"arguments-null", of(`{"name":"look","arguments":null}`), "hi", `{"name":"look","arguments":{}}`},
		{"arguments-array", of(`{"name":"look","arguments":[]}`), invalid, ""},
		{"name-twice", of(`{"name":"look","name":"burn"}`), unread, ""},
		{"name-twice-in-escapes", of(`{"name":"look","n\u0061me":"burn"}`), unread, ""},
		{"name-in-another-case", of(`{"name":"look","Name":"burn"}`), invalid, ""},
		{"name-in-escapes", of(`{"name":"\u0062urn","arguments":{}}`), "tool_not_allowed", ""},
		{"name-with-nul", of(`{"name":"look\u0000","arguments":{}}`), invalid, ""},
		{"name-with-space", of(`{"name":"look ","arguments":{}}`), invalid, ""},
		{"name-confusable", of(`{"name":"lo` + "\u043e" + `k","arguments":{}}`), invalid, ""},
		{"name-a-list", of(`{"name":["look","burn"]}`), invalid, ""},
		{"deep-twice", of(`{"name":"look","arguments":{"n":1,"\u006e":2}}`), unread, ""},
		{"number-beyond-floats", of(`{"name":"look","arguments":{"n":1E400}}`), "hi", `{"name":"look","arguments":{"n":1E400}}`},
		{"number-keeps-its-digits", of(`{"name":"look","arguments":{"n":9007199254740993}}`), "hi", `{"name":"look","arguments":{"n":9007199254740993}}`},
		{"number-minus-zero", of(`{"name":"look","arguments":{"n":-0}}`), "hi", `{"name":"look","arguments":{"n":-0}}`},
		{"lone-surrogate", of(`{"name":"look","arguments":{"\ud800":1}}`), unread, ""},
		{"broken-utf-8", of("{\"name\":\"look\",\"arguments\":{\"\xff\":1}}"), unread, ""},
		{"prototype", of(`{"name":"look","arguments":{"__proto__":{"n":1}}}`), "arguments_invalid", ""},
		{"deep", of(`{"name":"look","arguments":{"n":` + nested(200) + `}}`), "plan_not_strict", ""},
		{"too-deep", of(`{"name":"look","arguments":{"n":` + nested(300) + `}}`), unread, ""},
		{"unknown-member", of(`{"name":"look","server":"burn"}`), invalid, ""},
		{"input-of-nobody", of(`{"name":"look","inputResponses":{"a":{}}}`), invalid, ""},
		{"state-of-nobody", of(`{"name":"look","requestState":"x"}`), invalid, ""},
		{"reserved-meta", of(`{"name":"look","_m\u0065ta":{"io.modelcontextprotocol/related-task":{"taskId":"1"},"\u0069o.modelcontextprotocol/x":1}}`), "hi",
			`{"name":"look","arguments":{}}`},
		{"batch", `[` + whole + `,` + other + `]`, request, ""},
		{"second-message", whole + "\n" + other, request, ""},
		{"byte-order-mark", "\ufeff" + whole, unread, ""},
		{"method-twice", `{"jsonrpc":"2.0","id":1,"method":"ping","m\u0065thod":"tools/call","params":` + look + `}`, unread, ""},
		{"method-in-another-case", `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}`, request, ""},
		{"method-in-escapes", `{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"name":"b\u0075rn"}}`, "tool_not_allowed", ""},
		{"request-and-answer", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + look + `,"result":{}}`, request, ""},
		{"no-id", `{"jsonrpc":"2.0","id":null,"method":"tools/call","params":` + look + `}`, request, ""},
		{"params-null", of(`null`), invalid, ""},
		{"params-a-list", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["look"]}`, request, ""},
		{"another-method", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":` + look + `}`, "-32601", ""},
		{"id-beyond-64-bits", `{"jsonrpc":"2.0","id":92233720368547758070,"method":"tools/call","params":` + look + `}`, "hi", `{"name":"look","arguments":{}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, body := a.post(tt.message)
			if got := read(t, body).code(); got != tt.code {
				t.Errorf("it was answered by %s, want %s\n%s", got, tt.code, body)
			}
			if got := w.taken(); got != tt.reached {
				t.Errorf("the server got %s, want %s", got, tt.reached)
			}
		})
	}
	for _, silent := range []string{
		`{"jsonrpc":"2.0","method":"tools/call","params":` + look + `}`, `{"jsonrpc":"2.0","id":"pgfsm-1","result":` + whole + `}`,
	} {
		if resp, body := a.post(silent); resp.StatusCode != http.StatusAccepted || len(body) > 0 || w.taken() != "" {
			t.Errorf("%s: %d %s", silent, resp.StatusCode, body)
		}
	}
}

// TestServeForwardsNoCredentials: what a client says of itself in headers stays here.
func TestServeForwardsNoCredentials(t *testing.T) {
	t.Parallel()
	s, w := attacked(t)
	ci := makeToken(t, s.config, "agent", "ci")
	a := s.agent("/servers/echo/mcp", ci)
	resp, err := send(t.Context(), http.MethodPost, a.url, http.Header{
		"Content-Type": {"application/json"}, "Mcp-Session-Id": {a.session}, "Authorization": {"Bearer " + ci}, "Cookie": {"a=b"},
		"X-Forwarded-For": {"192.0.2.1"}, "Origin": {s.base},
	}, callMessage("look", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if got := w.taken(); resp.StatusCode != http.StatusOK || got != `{"name":"look","arguments":{}}` {
		t.Errorf("%d %s: the server got %s", resp.StatusCode, body, got)
	}
}
