package front

import (
	"bufio"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// openStream opens a stream of revision 2024-11-05 and returns it with the path to post to.
func openStream(t *testing.T, at, path string, headers ...string) (*eventReader, string, func()) {
	t.Helper()
	r := do(t, at, "GET", path, "", headers...)
	e := &eventReader{t: t, r: bufio.NewReader(r.Body)}
	name, _, to, _ := e.next()
	if name != "endpoint" || !strings.HasPrefix(to, path+"/messages?session=") {
		t.Fatalf("the first event is %s %s", name, to)
	}
	return e, to, func() { _ = r.Body.Close() }
}

// TestIdentityOfEachMessage: groups may change between the messages of a channel.
func TestIdentityOfEachMessage(t *testing.T) {
	const ann = "Authorization: Bearer jwt,ann,cli,,"
	g, s := scripted(t, withProvider)
	groups := make(chan []string, 1)
	s.before = func(q *session.Request) { groups <- *q.Identity.Groups }
	at := onLoopback(t, g)
	_, to, leave := openStream(t, at, "/sse", ann+"oncall,1")
	defer leave()
	for _, want := range []string{"oncall", "day", "night"} {
		do(t, at, "POST", to, rpc(`"`+want+`"`, "ping", "{}"), ann+want+",2")
		if diff := cmp.Diff([]string{want}, within(t, "the message", groups)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestSessionBeginsBeforeItsAnswer: the client's next message may come as soon as it has read the answer to initialize.
func TestSessionBeginsBeforeItsAnswer(t *testing.T) {
	g, _ := scripted(t, nil)
	var c *connection
	begun := false
	c = newConnection(t.Context(), g.Front, session.Identity{Name: "ann"}, func([]byte) error {
		begun = c.session.Load() != nil
		return nil
	})
	m, err := wire.Read([]byte(rpc("0", "initialize", `{"protocolVersion":"2024-11-05"}`)))
	check.NoError(t, err)
	if refused := c.handleMessage(&session.Request{Message: m}, func() {}); refused != nil || !begun {
		t.Errorf("the answer was sent before the session began, or refused: %v", refused)
	}
}

func TestStreamsOf2024(t *testing.T) {
	const ann, bob = "Authorization: Bearer token-ann", "Authorization: Bearer token-bob"
	g, s := scripted(t, nil)
	at := onLoopback(t, g)
	e, to, leave := openStream(t, at, "/servers/files/sse", ann)
	post := func(body string, headers ...string) int {
		t.Helper()
		return do(t, at, "POST", to, body, headers...).StatusCode
	}
	next := func(want string) {
		t.Helper()
		if name, _, data, _ := e.next(); name != "message" || data != want {
			t.Fatalf("%s %s came, not %s", name, data, want)
		}
	}
	if got := post(rpc("0", "initialize", `{"protocolVersion":"2024-11-05"}`), ann); got != 202 {
		t.Fatalf("initialize: %d", got)
	}
	next(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2024-11-05"}}`)
	if got := post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ann); got != 202 {
		t.Errorf("a notification: %d", got)
	}
	within(t, "the notification", s.received)
	post(rpc("1", "tools/call", `{"name":"wait"}`), ann)
	q := within(t, "the call", s.entered)
	if got := post(rpc("1", "ping", "{}"), ann); got != 400 {
		t.Errorf("an id that is in use: %d", got)
	}
	post(rpc("2", "tools/call", `{"name":"echo"}`), ann)
	next(`{"jsonrpc":"2.0","id":2,"result":{"name":"echo"}}`) // while the other one is under way
	_ = q.Session.Send([]byte(`{"n":1}`))
	next(`{"n":1}`)
	s.free <- struct{}{}
	next(`{"jsonrpc":"2.0","id":1,"result":{"name":"wait"}}`)

	for _, c := range []struct {
		name, path, who, body string
		want                  int
	}{
		{"stolen", to, bob, rpc("3", "ping", "{}"), 404},
		{"without-token", to, "X: y", rpc("3", "ping", "{}"), 404},
		{"at-another-endpoint", strings.TrimPrefix(to, "/servers/files"), ann, rpc("3", "ping", "{}"), 404},
		{"forged", "/servers/files/sse/messages?session=x", ann, rpc("3", "ping", "{}"), 404},
		{"none", "/servers/files/sse/messages", ann, rpc("3", "ping", "{}"), 404},
		{"no-message", to, ann, "{", 400},
		{"twice", to, ann, `{"jsonrpc":"2.0","id":3,"method":"ping","method":"ping"}`, 400},
	} {
		if got := do(t, at, "POST", c.path, c.body, c.who).StatusCode; got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	post(rpc("4", "tools/call", `{"name":"wait"}`), ann)
	within(t, "the call", s.entered)
	leave()
	within(t, "the end of the call", s.ends)
	<-q.Session.Context.Done()
	if n := g.table.Count(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

func TestStreamsOf2024AreBounded(t *testing.T) {
	g, _ := scripted(t, func(o *setup) { o.Limits.SessionsPerIdentity, o.Limits.Sessions = 2, 3 })
	at := onLoopback(t, g)
	open := func(who string) int {
		return do(t, at, "GET", "/sse", "", "Authorization: Bearer token-"+who).StatusCode
	}
	got := []int{open("ann"), open("ann"), open("ann"), open("bob"), open("eve")}
	if diff := cmp.Diff([]int{200, 200, 429, 200, 429}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
