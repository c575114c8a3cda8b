package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// recorder is a connection that keeps what is written to it and has nothing to read.
type recorder struct {
	mu      sync.Mutex
	written []string
}

func (r *recorder) Read(ctx context.Context) (jsonrpc.Message, error) { return nil, io.EOF }
func (r *recorder) Close() error                                      { return nil }
func (r *recorder) SessionID() string                                 { return "" }
func (r *recorder) Write(_ context.Context, msg jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(msg)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written = append(r.written, string(b))
	return err
}

func guarded(t *testing.T) (*guardedConn, *recorder) {
	t.Helper()
	s := &session{freshness: freshness{moments: new(atomic.Uint64)}}
	s.ctx, s.cancel = context.WithCancel(t.Context())
	wire := &recorder{}
	return &guardedConn{Connection: wire, session: s, pending: make(map[jsonrpc.ID]*exchange)}, wire
}

func request(t *testing.T, id float64, method, params string) *jsonrpc.Request {
	t.Helper()
	r := &jsonrpc.Request{Method: method, Params: []byte(params)}
	if id != 0 {
		var err error
		if r.ID, err = jsonrpc.MakeID(id); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func calling(p *permit) context.Context {
	return withExchange(context.Background(), &exchange{method: methodCall, permit: p, listing: 1})
}

func TestGuardedConnectionNeedsAPermit(t *testing.T) {
	const params = `{"name":"echo","arguments":{"a":1}}`
	spent := arm("echo", []byte(`{"a":1}`))
	spent.state.Store(permitSpent)
	fresh := func() context.Context { return calling(arm("echo", []byte(`{"a":1}`))) }
	token := func() context.Context {
		p := arm("echo", []byte(`{"a":1}`))
		p.token = "7"
		return calling(p)
	}
	tests := []struct {
		name   string
		ctx    context.Context
		id     float64
		method string
		params string
		passes bool
	}{
		{"exactly-the-permit", fresh(), 1, methodCall, params, true},
		{"with-protocol-meta", fresh(), 1, methodCall,
			`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name":"echo","arguments":{"a":1}}`, true},
		{"no-exchange", context.Background(), 1, methodCall, params, false},
		{"no-permit", calling(nil), 1, methodCall, params, false},
		{"zero-permit", calling(&permit{}), 1, methodCall, params, false},
		{"zero-permit-empty-call", calling(&permit{}), 1, methodCall, `{"name":""}`, false},
		{"spent-permit", calling(spent), 1, methodCall, params, false},
		{"another-tool", fresh(), 1, methodCall, `{"name":"Echo","arguments":{"a":1}}`, false},
		{"other-arguments", fresh(), 1, methodCall, `{"name":"echo","arguments":{"a":2}}`, false},
		{"other-spelling", fresh(), 1, methodCall, `{"name":"echo","arguments":{"a": 1}}`, false},
		{"arguments-twice", fresh(), 1, methodCall, `{"name":"echo","arguments":{"a":1},"arguments":{"a":1}}`, false},
		{"name-twice", fresh(), 1, methodCall, `{"name":"echo","name":"echo","arguments":{"a":1}}`, false},
		{"no-arguments", fresh(), 1, methodCall, `{"name":"echo"}`, false},
		{"another-member", fresh(), 1, methodCall, `{"name":"echo","arguments":{"a":1},"task":{}}`, false},
		{"foreign-meta", fresh(), 1, methodCall, `{"_meta":{"traceparent":"00"},"name":"echo","arguments":{"a":1}}`, false},
		{"a-token-of-nobody", fresh(), 1, methodCall, `{"_meta":{"progressToken":1},"name":"echo","arguments":{"a":1}}`, false},
		{"with-the-token", token(), 1, methodCall, `{"_meta":{"progressToken":7},"name":"echo","arguments":{"a":1}}`, true},
		{"without-the-token", token(), 1, methodCall, params, false},
		{"another-token", token(), 1, methodCall, `{"_meta":{"progressToken":8},"name":"echo","arguments":{"a":1}}`, false},
		{"the-token-as-text", token(), 1, methodCall, `{"_meta":{"progressToken":"7"},"name":"echo","arguments":{"a":1}}`, false},
		{"the-token-twice", token(), 1, methodCall, `{"_meta":{"progressToken":7,"progressToken":7},"name":"echo","arguments":{"a":1}}`, false},
		{"meta-no-object", fresh(), 1, methodCall, `{"_meta":1,"name":"echo","arguments":{"a":1}}`, false},
		{"text-behind", fresh(), 1, methodCall, params + `{}`, false},
		{"no-params", fresh(), 1, methodCall, ``, false},
		{"as-a-notification", fresh(), 0, methodCall, params, false},
		{"another-method", fresh(), 1, "resources/read", params, false},
		{"unknown-notification", fresh(), 0, "notifications/progress", `{}`, false},
		{"list-without-listing", context.Background(), 1, methodList, `{}`, false},
		{"initialized", context.Background(), 0, noteInitialized, `{}`, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, wire := guarded(t)
			err := g.Write(tt.ctx, request(t, tt.id, tt.method, tt.params))
			if passed := err == nil && len(wire.written) == 1; passed != tt.passes {
				t.Fatalf("Write(%s) = %v, %d written, want passes = %t", tt.params, err, len(wire.written), tt.passes)
			}
			if tt.passes {
				return
			}
			f := g.session.fault()
			if f == nil || f.code != CodePermit || g.session.ctx.Err() == nil || len(wire.written) != 0 {
				t.Errorf("after a refusal: %v, written %q, want %s, a closed session, nothing", f, wire.written, CodePermit)
			}
		})
	}
}

func TestAnAnswerBeforeTheCallIsRefused(t *testing.T) {
	for _, touched := range []bool{true, false} {
		g, _ := guarded(t)
		x := &exchange{method: methodCall, permit: arm("echo", []byte(`{}`)), listing: 1}
		x.permit.touched.Store(touched)
		_, err := g.session.accept(x, &jsonrpc.Response{Result: []byte(oneResult)})
		if result, _, _ := x.outcome(); (err == nil) != touched || (result != nil) != touched {
			t.Errorf("accept(touched = %t) = %v with result %s, want it taken only if the call was sent", touched, err, result)
		}
	}
}

func TestAPermitIsUsedOnce(t *testing.T) {
	const rivals = 64
	g, wire := guarded(t)
	p := arm("echo", []byte(`{}`))
	ctx := calling(p)
	start := make(chan struct{})
	passed := make(chan bool, rivals)
	for i := range rivals {
		req := request(t, float64(i+1), methodCall, `{"name":"echo","arguments":{}}`)
		go func() {
			<-start
			passed <- g.Write(ctx, req) == nil
		}()
	}
	close(start)
	n := 0
	for range rivals {
		if <-passed {
			n++
		}
	}
	if n != 1 || len(wire.written) != 1 {
		t.Errorf("%d of %d writes passed and %d reached the wire, want 1 and 1", n, rivals, len(wire.written))
	}
}

func TestTheLastStepNeedsThePermitToo(t *testing.T) {
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}`
	written := func() *permit {
		p := arm("echo", []byte(`{}`))
		if err := p.write([]byte(`{"name":"echo","arguments":{}}`)); err != nil {
			t.Fatal(err)
		}
		return p
	}
	twice := written()
	if err := twice.send(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		permit *permit
	}{
		{"none", nil}, {"zero", &permit{}}, {"armed-but-not-written", arm("echo", []byte(`{}`))}, {"sent-before", twice},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv := serveScript(t, honest, false)
			s := &session{server: srv.server()}
			s.ctx, s.cancel = context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(calling(tt.permit), "POST", srv.URL, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			_, err = newRoundTripper(s).RoundTrip(req)
			if f := new(fault); !errors.As(err, &f) || f.code != CodePermit || srv.count(methodCall) != 0 {
				t.Errorf("RoundTrip() = %v, want %s and nothing sent", err, CodePermit)
			}
		})
	}
	t.Run("unreadable", func(t *testing.T) {
		srv := serveScript(t, honest, false)
		s := &session{server: srv.server()}
		s.ctx, s.cancel = context.WithCancel(t.Context())
		req, _ := http.NewRequest("POST", srv.URL, strings.NewReader(`{"method":"ping","method":"tools/call"}`))
		if _, err := newRoundTripper(s).RoundTrip(req); err == nil || len(srv.seen) != 0 {
			t.Errorf("RoundTrip(two methods) = %v, want it refused", err)
		}
	})
}

// A session's client is the SDK's; used without Call it reaches nothing.
func TestTheBareClientCannotCall(t *testing.T) {
	srv := serveScript(t, honest, false)
	u := upstreams(t, Limits{}, srv.server())
	listed(t, u)
	s := u.all[0].current()
	_, err := s.client.CallTool(t.Context(), &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{}})
	if err == nil || srv.count(methodCall) != 0 || s.fault().code != CodePermit {
		t.Errorf("CallTool() = %v with fault %v, want it refused before it is sent", err, s.fault())
	}
	if r := call(t.Context(), u, "web", `{}`); r.Effect != EffectNotSent {
		t.Errorf("Call() after a refusal = %+v, want not_sent: the session is over", r)
	}
	listed(t, u) // a new session
	if r := call(t.Context(), u, "web", `{}`); r.Effect != EffectDone {
		t.Errorf("Call() on a new session = %+v, want done", r)
	}
}

func TestARunCallsOnce(t *testing.T) {
	const rivals = 64
	srv := serveScript(t, honest, false)
	u := upstreams(t, Limits{}, srv.server())
	listed(t, u)
	results := make(chan Returned, rivals)
	for range rivals {
		go func() {
			results <- u.Call(t.Context(), Call{Server: "web", Tool: "echo", Arguments: []byte(`{}`), RunID: "r", Listing: latest(u, "web")})
		}()
	}
	effects := map[string]int{}
	for range rivals {
		r := <-results
		effects[r.Effect+" "+r.Code]++
	}
	want := fmt.Sprintf("map[%s :1 %s %s:%d]", EffectDone, EffectNotSent, CodePermit, rivals-1)
	if fmt.Sprint(effects) != want {
		t.Errorf("effects = %v, want %s", effects, want)
	}
	if n := srv.count(methodCall); n != 1 {
		t.Errorf("%d calls on the wire, want 1", n)
	}
}

func TestRunsForgetOnlyTheOldest(t *testing.T) {
	var r runs
	for i := range rememberedRuns {
		if !r.first(fmt.Sprint(i)) {
			t.Fatalf("first(%d) = false, want true", i)
		}
	}
	if r.first("0") || r.first(fmt.Sprint(rememberedRuns-1)) {
		t.Error("first(a remembered run) = true, want false")
	}
	if !r.first("new") || r.first("1") || !r.first("0") || len(r.seen) != rememberedRuns {
		t.Errorf("after one run too many: %d remembered, want %d, without the oldest", len(r.seen), rememberedRuns)
	}
}
