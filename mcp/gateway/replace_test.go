package gateway

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json/jsontext"
)

// config is what the rig was made with, with other settings of some servers: the words that each exposes, or none if it is removed.
func (r *rig) config(changed map[string]Expose) (c Config) {
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

func (r *rig) replace(c Config) <-chan struct{} {
	r.t.Helper()
	next, err := r.Prepare(c)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.Replace(next)
}

// connects has the judge use the link of each call, and waits for go-ahead where the arguments ask for it.
func (r *rig) connects(wait <-chan struct{}) {
	r.judge.decide = func(ctx context.Context, a *Ask) Answer {
		if _, err := a.Link(ctx); err != nil {
			return Answer{Error: invalid(1, err.Error())}
		}
		if strings.Contains(string(a.Arguments), "wait") {
			<-wait
		}
		return Answer{Native: true, Result: jsontext.Value(`{"content":[]}`)}
	}
}

const callOf = `{"name":"%s__echo","arguments":{"%s":1}}`

func call(server, what string) string {
	return strings.Replace(strings.Replace(callOf, "%s", server, 1), "%s", what, 1)
}

// TestReplaceKeepsCallsAndLinks: a call under way keeps its link with a server that has changed; the next call has another one. A server that
// did not change keeps its link.
func TestReplaceKeepsCallsAndLinks(t *testing.T) {
	for _, modern := range []bool{false, true} {
		name := map[bool]string{false: "session", true: "stateless"}[modern]
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "docs same", nil)
				wait := make(chan struct{})
				r.connects(wait)
				var c *client
				if modern {
					c = r.modern("", `{}`)
				} else {
					c = r.legacy("", `{}`)
				}
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
		r := newRig(t, "docs same", nil)
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
		if n := len(r.pool.servers); n != 1 {
			t.Errorf("the gateway remembers %d servers, want 1", n)
		}
	})
}

// TestReplaceNotifies: a client is told of another list of tools only if it has asked for the list, and its own list has changed.
func TestReplaceNotifies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "docs same", nil)
		listing, silent := r.legacy("", `{}`), r.legacy("", `{}`)
		subscriber := r.modern("", `{}`)
		end, _ := subscriber.listens(`"s"`, `{"toolsListChanged":true}`)
		defer func() { end(); synctest.Wait() }()
		synctest.Wait()
		subscriber.received()
		listing.ask("tools/list", `{}`)
		told := func(c *client) int {
			synctest.Wait()
			if c.session == nil {
				return len(c.received())
			}
			n := 0
			for _, m := range c.session.Outgoing.Take() {
				if strings.Contains(string(m), noteTools) {
					n++
				}
			}
			return n
		}
		for _, tt := range []struct {
			name    string
			changed map[string]Expose
			hidden  []string
			want    int
		}{
			{"nothing-changed", nil, nil, 0},
			{"a-server-was-connected-anew-with-the-same-list", map[string]Expose{"docs": ExposeTools | ExposeLogging}, nil, 0},
			{"a-server-was-removed", map[string]Expose{"docs": 0}, nil, 1},
			{"it-is-there-again", nil, nil, 1},
			{"the-tools-are-no-longer-allowed", nil, []string{"echo"}, 1},
			{"they-still-are-not", map[string]Expose{"docs": 0}, []string{"echo"}, 0},
		} {
			next := r.config(tt.changed)
			next.Calls = &judge{hidden: tt.hidden}
			r.replace(next)
			if a, b, c := told(listing), told(subscriber), told(silent); a != tt.want || b != tt.want || c != 0 {
				t.Errorf("%s: %d, %d and %d notifications, want %d, %d and 0", tt.name, a, b, c, tt.want, tt.want)
			}
		}
	})
}
