package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/test/check"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// sharing is a fixture whose server docs is shared as the operator says.
func sharing(t *testing.T, sessions string) *fixture {
	return newFixture(t, "docs", func(o *Options) { o.Servers[0].Sessions = sessions })
}

// as is a client of docs with a session of another identity.
func (r *fixture) as(name string) *client {
	r.t.Helper()
	return r.opens(name, "docs", `{"sampling":{},"roots":{},"elicitation":{}}`)
}

func TestWhoSharesAServerSession(t *testing.T) {
	for _, tt := range []struct {
		sessions string
		want     int
	}{{"", 3}, {upstream.SessionsIdentity, 3}, {upstream.SessionsOne, 2}} {
		t.Run("sessions-"+tt.sessions, func(t *testing.T) {
			r := sharing(t, tt.sessions)
			for _, name := range []string{"ann", "ann", "bob", "bob"} {
				r.as(name).use()
			}
			r.modern("docs", `{"sampling":{}}`).use() // ann, in another revision
			r.modern("docs", `{"sampling":{},"roots":{}}`).use()
			links := r.servers["docs"].links
			if len(links) != tt.want {
				t.Errorf("%d links, want %d", len(links), tt.want)
			}
			for _, l := range links {
				if shared := l.peer.Owner == ""; shared != (tt.sessions == upstream.SessionsOne) {
					t.Errorf("the owner of a link is %s", l.peer.Owner)
				}
				if string(l.peer.Capabilities) != `{}` {
					t.Errorf("a shared server was told of the capabilities %s", l.peer.Capabilities)
				}
			}
		})
	}
}

func TestASharedServerAsksNobody(t *testing.T) {
	r := sharing(t, upstream.SessionsIdentity)
	docs := r.servers["docs"]
	ann := r.as("ann")
	ann.use()
	for i, method := range []string{"sampling/createMessage", "elicitation/create", "roots/list"} {
		docs.link().peer.OnMessage(wire.Message{ID: jsontext.Value(fmt.Sprint(i)), Method: method, Params: jsontext.Value(`{}`)})
		if got := within(t, "the refusal of "+method, docs.answers); !strings.Contains(got, `"code":-32601`) {
			t.Errorf("%s was answered with %s", method, got)
		}
	}
	docs.says(methodSubscribe, `{}`)
	if got := ann.ask(methodSubscribe, `{"uri":"a:1"}`); !strings.Contains(got, "sessions: session") || len(docs.received(methodSubscribe)) > 0 {
		t.Errorf("resources/subscribe = %s, want a refusal that names the key", got)
	}
}

// TestNotificationsOfASharedServer: changed lists concern every client; a log message outside a request is nobody's.
func TestNotificationsOfASharedServer(t *testing.T) {
	r := sharing(t, upstream.SessionsIdentity)
	a, b, bob := r.as("ann"), r.as("ann"), r.as("bob")
	for _, c := range []*client{a, b, bob} {
		c.use()
	}
	l := r.servers["docs"].links[0]
	l.peer.OnMessage(wire.Message{Method: "notifications/message", Params: jsontext.Value(`{"level":"error","data":1}`)})
	l.peer.OnMessage(wire.Message{Method: noteUpdated, Params: jsontext.Value(`{"uri":"a:1"}`)})
	l.peer.OnMessage(wire.Message{Method: noteTools})
	for _, c := range []*client{a, b} {
		if got := c.waiting(); len(got) != 1 || !strings.Contains(got[0], noteTools) {
			t.Errorf("a client of the identity was told %q", got)
		}
	}
	if got := bob.waiting(); len(got) != 0 {
		t.Errorf("a client of another identity was told %q", got)
	}
	l.Close()
	a.use()
	if got := a.waiting(); len(got) != 3 || len(b.waiting()) != 0 {
		t.Errorf("after a new link, the client that uses it was told %q", got)
	}
	b.session.End()
	r.servers["docs"].link().peer.OnMessage(wire.Message{Method: noteTools})
	if got := a.waiting(); len(got) != 1 {
		t.Errorf("after the end of the other client, the client was told %q", got)
	}
}

// TestASessionForgetsLinksThatEnded: a session may live for weeks, and the process of its server for minutes.
func TestASessionForgetsLinksThatEnded(t *testing.T) {
	r := sharing(t, upstream.SessionsIdentity)
	c := r.as("ann")
	c.use()
	link := func() *link {
		return r.links.workingLinks(nil, []*server{r.active.Load().endpoints["docs"].server})[0]
	}
	first := link()
	r.servers["docs"].link().Close()
	c.use()
	if second := link(); second == first || len(second.subscribers) != 1 || second.keeps != 1 {
		t.Error("the session does not use the second link")
	}
	if len(first.subscribers) != 0 || first.keeps != 0 {
		t.Errorf("the link that ended has %d subscribers, and %d sessions keep it", len(first.subscribers), first.keeps)
	}
}

func TestTheLogLevelOfASharedServer(t *testing.T) {
	r := sharing(t, upstream.SessionsIdentity)
	docs := r.servers["docs"]
	docs.says(methodSetLevel, `{}`)
	docs.plays("prompts/get", func(_ context.Context, _ *playedLink, _ jsontext.Value, on func(wire.Message)) (upstream.Reply, error) {
		for _, level := range []string{"debug", "info", "error"} {
			on(wire.Message{Method: "notifications/message", Params: jsontext.Value(`{"level":"` + level + `"}`)})
		}
		return upstream.Reply{Result: jsontext.Value(`{}`)}, nil
	})
	silent, coarse, fine := r.as("ann"), r.as("ann"), r.as("ann")
	messages := func(c *client) (n int) {
		c.ask("prompts/get", `{"name":"p"}`)
		return len(c.received())
	}
	if n := messages(silent); n != 3 {
		t.Errorf("a client that set no level got %d messages, want all that the server sends", n)
	}
	coarse.ask(methodSetLevel, `{"level":"error"}`)
	fine.ask(methodSetLevel, `{"level":"debug"}`)
	got := []int{messages(coarse), messages(fine), messages(coarse), messages(silent)}
	if want := []int{1, 3, 1, 3}; !slices.Equal(got, want) {
		t.Errorf("the clients got %v messages, want %v", got, want)
	}
	if got, want := docs.received(methodSetLevel), []string{`{"level":"error"}`, `{"level":"debug"}`}; !slices.Equal(got, want) {
		t.Errorf("the server was told the levels %q, want %q", got, want)
	}
}

// TestProcessesEndWhenNobodyUsesThem: neither the session of a client nor a subscription keeps a shared process. The next request starts it.
func TestProcessesEndWhenNobodyUsesThem(t *testing.T) {
	r := sharing(t, upstream.SessionsIdentity)
	docs := r.servers["docs"]
	docs.process = true
	c := r.as("ann")
	docs.link().Close()
	n := len(docs.links)
	c.use()
	if len(docs.links) != n+1 || !isClosed(docs.link().done) {
		t.Fatalf("%d links, want %d, and the last one closed", len(docs.links), n+1)
	}
	c.waiting()
	c.use()
	if got := c.waiting(); len(got) != 0 {
		t.Errorf("after a process that ended unused, the client was told %q", got)
	}

	m := r.modern("docs", `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		m.dispatch(ctx, m.request(`9`, methodListen, `{"notifications":{"toolsListChanged":true},"_meta":`+m.meta("")+`}`))
	}()
	within(t, "the acknowledgement", m.out)
	within(t, "the end of the process", docs.link().done)
	before := len(docs.links)
	l, err := r.linkTo(t.Context(), m.readRequest(), r.active.Load().endpoints["docs"].server)
	check.NoError(t, err)
	if len(docs.links) != before+1 {
		t.Errorf("%d links, want %d: a subscription alone starts no process", len(docs.links), before+1)
	}
	for told := false; !told; {
		docs.link().peer.OnMessage(wire.Message{Method: noteTools})
		select {
		case got := <-m.out:
			told = strings.Contains(got, noteTools)
		default:
		}
	}
	l.release()
	cancel()
	within(t, "the end of the subscription", over)
}

func TestAListSaysThatThereIsNoRoom(t *testing.T) {
	r := newFixture(t, "docs mail", nil)
	join := r.openUpstream
	r.openUpstream = func(ctx context.Context, server *server, p upstream.Peer) (upstreamLink, error) {
		if server.Name == "docs" {
			return nil, &upstream.LinkError{Code: upstream.CodeLinks, Reason: "64 sessions are in use"}
		}
		return join(ctx, server, p)
	}
	for _, method := range []string{"tools/list", "prompts/list", "resources/list"} {
		r.servers["mail"].says(method, `{"prompts":[],"resources":[]}`)
		if got := r.legacy("", `{}`).ask(method, `{}`); !strings.Contains(got, `"data":{"code":"too_many_sessions","server":"docs"}`) {
			t.Errorf("%s = %s, want an error that says so", method, got)
		}
	}
}
