package gateway

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// config is what the fixture was made with, with other settings of some servers: the words that each exposes, or none if it is removed.
func (r *fixture) config(changed map[string]Expose) (c Config) {
	c = r.options.Config
	c.Servers = nil
	for _, s := range r.options.Config.Servers {
		e, is := changed[s.Name]
		switch {
		case !is:
			c.Servers = append(c.Servers, s)
		case e != 0:
			c.Servers = append(c.Servers, Server{Name: s.Name, Expose: e})
		}
	}
	return c
}

func (r *fixture) replace(c Config) <-chan struct{} {
	r.t.Helper()
	next, err := r.Prepare(c)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.Replace(next)
}

// connects has the judge use the link of each call, and waits for go-ahead where the arguments ask for it.
func (r *fixture) connects(wait <-chan struct{}) {
	r.judge.decide = func(ctx context.Context, a *ToolCall) Answer {
		if _, err := a.Connect(ctx); err != nil {
			return Answer{Error: rpcError(1, err.Error())}
		}
		if strings.Contains(string(a.Arguments), "wait") {
			<-wait
		}
		return Answer{Native: true, Result: jsontext.Value(`{"content":[]}`)}
	}
}

func call(server, what string) string {
	return `{"name":"` + server + `__echo","arguments":{"` + what + `":1}}`
}

// TestReplaceKeepsCallsAndLinks: a call under way keeps its link with a server that has changed; the next call has another one. A server that
// did not change keeps its link.
func TestReplaceKeepsCallsAndLinks(t *testing.T) {
	for name, connect := range map[string]func(r *fixture, server, can string) *client{ // in any order
		"session": (*fixture).legacy, "stateless": (*fixture).modern,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFixture(t, "docs same", nil)
				wait := make(chan struct{})
				r.connects(wait)
				c := connect(r, "", `{}`)
				c.ask("tools/call", call("same", "go"))
				c.ask("tools/call", call("docs", "go"))
				first, same := r.servers["docs"].link(), r.servers["same"].link()
				answer := make(chan string, 1)
				go func() {
					q := c.request(`8`, "tools/call", `{"_meta":`+c.meta("")+`,`+call("docs", "wait")[1:])
					answer <- string(c.dispatch(context.Background(), q))
				}()
				synctest.Wait()
				idle := r.replace(r.config(map[string]Expose{"docs": ExposeTools}))
				synctest.Wait()
				if isClosed(first.done) || isClosed(idle) {
					t.Error("the link of a call under way is closed, or its configuration is idle")
				}
				c.ask("tools/call", call("same", "go"))
				c.ask("tools/call", call("docs", "go"))
				if next := r.servers["docs"].link(); next == first || r.servers["same"].link() != same || isClosed(same.done) {
					t.Error("the changed server has its former link, or the other one has not")
				}
				close(wait)
				if got := <-answer; !strings.Contains(got, `"content":[]`) {
					t.Errorf("the call under way is answered with %s", got)
				}
				synctest.Wait()
				if !isClosed(first.done) || !isClosed(idle) {
					t.Error("the call has ended, and its link or its configuration is still in use")
				}
			})
		})
	}
}

// TestReplaceRemovesServers: the sessions of a removed server's endpoint end, and its unused links close; other sessions stay.
func TestReplaceRemovesServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, "docs same", nil)
		r.connects(nil)
		own, all := r.legacy("docs", `{}`), r.legacy("", `{}`)
		own.ask("tools/call", `{"name":"echo","arguments":{}}`)
		all.ask("tools/call", call("docs", "go"))
		links := r.servers["docs"].links
		r.replace(r.config(map[string]Expose{"docs": 0}))
		synctest.Wait()
		for i, l := range links {
			if !isClosed(l.done) {
				t.Errorf("link %d with the removed server is open", i)
			}
		}
		if own.session.Context.Err() == nil || all.session.Context.Err() != nil {
			t.Error("the session at the removed server's endpoint is open, or the other one is not")
		}
		if got := all.ask("tools/call", call("docs", "go")); !strings.Contains(got, "there is no tool of this name") {
			t.Errorf("a call of the removed server: %s", got)
		}
		if got := own.ask("ping", `{}`); !strings.Contains(got, "the session has ended") {
			t.Errorf("a request at the removed server's endpoint: %s", got)
		}
		all.ask("tools/call", call("same", "go"))
	})
}

// TestReplaceNotifies: clients learn that the lists that their endpoint has or had may have changed.
func TestReplaceNotifies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, "docs same", nil)
		session, subscriber := r.legacy("", `{}`), r.modern("", `{}`)
		end, _ := subscriber.listens(`"s"`, `{"toolsListChanged":true}`)
		defer func() { end(); synctest.Wait() }()
		synctest.Wait()
		subscriber.received()
		told := func(messages []string) (methods string) {
			for _, m := range messages {
				methods += wire.TextMember([]byte(m), "method") + " "
			}
			return methods
		}
		for _, tt := range []struct {
			name    string
			changed map[string]Expose
			want    string
		}{
			{"another-server-object", map[string]Expose{"docs": ExposeTools}, noteTools + " " + notePrompts + " " + noteResources + " "},
			{"nothing-but-tools-now", map[string]Expose{"docs": ExposeTools, "same": ExposeTools}, noteTools + " " + notePrompts + " " + noteResources + " "},
			{"nothing-but-tools", map[string]Expose{"docs": ExposeTools, "same": ExposeTools}, noteTools + " "},
		} {
			r.replace(r.config(tt.changed))
			synctest.Wait()
			if got := told(session.waiting()); got != tt.want {
				t.Errorf("%s: the session got %q, want %q", tt.name, got, tt.want)
			}
			if got := told(subscriber.received()); got != noteTools+" " {
				t.Errorf("%s: the subscription got %q, want %q", tt.name, got, noteTools)
			}
		}
		r.servers["docs"].link().peer.OnMessage(wire.Message{Method: noteTools})
		synctest.Wait()
		if got := told(subscriber.received()); got != noteTools+" " {
			t.Errorf("the subscription got %q of the server's new link, want %q", got, noteTools)
		}
	})
}
