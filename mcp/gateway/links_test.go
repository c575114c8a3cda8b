package gateway

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// use asks something of a server.
func (c *client) use() string { c.t.Helper(); return c.ask("tools/list", `{}`) }

func TestLinksAreSharedByThoseWhoAreAlike(t *testing.T) {
	r := newFixture(t, "docs mail", nil)
	docs := r.servers["docs"]
	docs.modern, r.servers["mail"].modern = true, true
	ann := r.modern("docs", `{"sampling":{},"experimental":{"x":{}}}`)
	ann.use()
	ann.use()
	alike := r.modern("", `{"experimental":{},"sampling":{"new":1}}`)
	alike.use()
	if n := len(docs.links); n != 1 {
		t.Errorf("%d links for one identity with one set of capabilities", n)
	}
	able := r.modern("docs", `{"sampling":{},"roots":{}}`)
	able.use()
	bob := r.modern("docs", `{"sampling":{}}`)
	bob.from = Identity{Name: "ann", Token: "t"}
	bob.use()
	r.legacy("docs", `{"sampling":{}}`).use()
	r.legacy("docs", `{"sampling":{}}`).use()
	var told []string
	for _, l := range docs.links {
		told = append(told, l.peer.Protocol+" "+string(l.peer.Capabilities))
	}
	want := []string{session.Stateless + ` {"sampling":{}}`, session.Stateless + ` {"sampling":{},"roots":{}}`, session.Stateless + ` {"sampling":{}}`, `2025-11-25 {"sampling":{}}`, `2025-11-25 {"sampling":{}}`}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if n := len(r.servers["mail"].links); n != 1 {
		t.Errorf("mail has %d links: only one client came to all servers", n)
	}
}

func TestServersHearOnlyOfWhatIsExposed(t *testing.T) {
	const can = `{"sampling":{"tools":{},"context":{},"x":1},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"extensions":{"a/b":{}},"tasks":{}}`
	for _, tc := range []struct {
		name   string
		expose Expose
		want   string
	}{
		{"all", everything, `{"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}`},
		{"default", DefaultExpose, `{}`},
		{"elicitation", ExposeElicitation | ExposeTools, `{"elicitation":{"form":{},"url":{}}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newFixture(t, "docs", func(o *Options) { o.Servers[0].Expose = tc.expose })
			r.legacy("docs", can)
			if got := string(r.servers["docs"].link().peer.Capabilities); got != tc.want {
				t.Error(got)
			}
		})
	}
}

func TestLinksThatEndAreMadeAnew(t *testing.T) {
	r := newFixture(t, "docs", nil)
	docs := r.servers["docs"]
	docs.says("resources/subscribe", `{}`)
	docs.says("logging/setLevel", `{}`)
	for _, client := range []func(server, can string) *client{r.modern, r.legacy} {
		c := client("docs", `{}`)
		c.use()
		n := len(docs.links)
		docs.link().Close()
		if got := c.use(); !strings.Contains(got, "echo") || len(docs.links) != n+1 {
			t.Errorf("%d links: %s", len(docs.links), got)
		}
	}
	c := r.legacy("docs", `{}`)
	c.ask("resources/subscribe", `{"uri":"a:1"}`)
	c.ask("resources/subscribe", `{"uri":"a:2"}`)
	docs.says(methodUnsubscribe, `{}`)
	c.ask(methodUnsubscribe, `{"uri":"a:1"}`)
	c.ask("logging/setLevel", `{"level":"error"}`)
	restored := make(chan string, 2)
	for _, method := range []string{"resources/subscribe", "logging/setLevel"} {
		docs.plays(method, func(_ context.Context, _ *playedLink, params jsontext.Value, _ func(wire.Message)) (upstream.Reply, error) {
			restored <- method + " " + string(params)
			return upstream.Reply{Result: jsontext.Value(`{}`)}, nil
		})
	}
	docs.link().Close()
	c.use()
	got := []string{within(t, "the level", restored), within(t, "the subscription", restored)}
	if want := []string{`logging/setLevel {"level":"error"}`, `resources/subscribe {"uri":"a:2"}`}; !slices.Equal(got, want) {
		t.Errorf("the new link was told %q", got)
	}
	var told []string
	for _, m := range c.waiting() {
		told = append(told, wire.TextMember([]byte(m), "method"))
	}
	if want := []string{noteTools, notePrompts, noteResources}; !slices.Equal(told, want) {
		t.Errorf("the client was told %q", told)
	}
}

func TestConnectingIsSharedAndOutlivesWhoGivesUp(t *testing.T) {
	r := newFixture(t, "docs", nil)
	join := r.openUpstream
	begun, goOn := make(chan struct{}), make(chan struct{})
	tried := 0
	r.openUpstream = func(ctx context.Context, server *server, p upstream.Peer) (upstreamLink, error) {
		tried++
		close(begun)
		<-goOn
		return join(ctx, server, p)
	}
	c := r.modern("docs", `{}`)
	ctx, cancel := context.WithCancel(context.Background())
	gaveUp := make(chan error, 1)
	go func() {
		_, err := r.linkTo(ctx, c.readRequest(), r.active.Load().endpoints[""].servers[0])
		gaveUp <- err
	}()
	within(t, "the attempt", begun)
	cancel()
	if err := within(t, "the first", gaveUp); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			l, err := r.linkTo(context.Background(), c.readRequest(), r.active.Load().endpoints[""].servers[0])
			if err != nil {
				t.Error(err)
				return
			}
			l.release()
		})
	}
	close(goOn)
	wg.Wait()
	if tried != 1 {
		t.Errorf("there were %d attempts", tried)
	}
}

func TestSharedLinksEnd(t *testing.T) {
	r := newFixture(t, "docs", nil)
	docs := r.servers["docs"]
	docs.process = true
	server := r.active.Load().endpoints[""].servers[0]
	q := r.modern("docs", `{}`).readRequest()
	used, err := r.linkTo(t.Context(), q, server)
	check.NoError(t, err)
	r.modern("docs", `{}`).use()
	if isClosed(docs.link().done) {
		t.Error("a link in use was closed")
	}
	used.release()
	within(t, "the end of the unused link", docs.link().done)
	if _, err := r.linkTo(t.Context(), q, server); err != nil || len(docs.links) != 2 {
		t.Errorf("%d links, %v, want another one", len(docs.links), err)
	}
	r.links.closeAll()
	within(t, "the end of the link in use", docs.link().done)
	if _, err := r.linkTo(t.Context(), q, server); err == nil {
		t.Error("a link was made after the end")
	}
}

func TestSessionsTakeTheirLinksAlong(t *testing.T) {
	r := newFixture(t, "docs mail", nil)
	c := r.legacy("", `{"roots":{}}`)
	c.use()
	docs, mail := r.servers["docs"].link(), r.servers["mail"].link()
	docs.peer.OnMessage(wire.Message{ID: jsontext.Value(`1`), Method: "roots/list"})
	c.pushed()
	c.session.End()
	within(t, "the end of one link", docs.done)
	within(t, "the end of the other", mail.done)
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	if len(c.session.questions.byID) != 0 {
		t.Errorf("%d questions wait for a session that has ended", len(c.session.questions.byID))
	}
}

func TestConnectingWhileTheSessionEnds(t *testing.T) {
	r := newFixture(t, "docs", nil)
	c := r.legacy("", `{}`)
	docs := r.servers["docs"]
	docs.link().Close()
	join := r.openUpstream
	begun, goOn, late := make(chan struct{}), make(chan struct{}), make(chan upstreamLink, 1)
	r.openUpstream = func(ctx context.Context, server *server, p upstream.Peer) (upstreamLink, error) {
		close(begun)
		<-goOn
		opened, err := join(ctx, server, p)
		late <- opened
		return opened, err
	}
	over := make(chan string, 1)
	go func() { over <- c.use() }()
	within(t, "the attempt", begun)

	// Another request uses the link until the session's links are closed, and no longer than it takes to connect.
	table := r.links
	table.mu.Lock()
	var connecting *link
	for _, l := range table.links {
		connecting = l
	}
	connecting.uses++
	table.mu.Unlock()
	c.session.End()
	within(t, "the answer", over)
	for closed := false; !closed; runtime.Gosched() {
		table.mu.Lock()
		closed = connecting.session.linksClosed
		table.mu.Unlock()
	}
	connecting.release()
	close(goOn)
	within(t, "the end of the link that came too late", within(t, "the link", late).Done())
}

// A link that opens when its account has just ended, which AccountsChanged could not close, closes at once.
func TestLinksDoNotOutliveTheirAccounts(t *testing.T) {
	var r *fixture
	asked := 0
	r = newFixture(t, "docs", func(o *Options) {
		o.Servers[0].Person = true
		o.Account = func(context.Context, Identity, string) (*upstream.Account, error) {
			if asked++; asked > 1 {
				return nil, &upstream.LinkError{Code: upstream.CodeCredentialsNeeded}
			}
			r.AccountsChanged(func(string) bool { return false }, func(string) bool { return false })
			return &upstream.Account{ID: "ended"}, nil
		}
	})
	r.legacy("docs", `{}`)
	within(t, "the link ends", r.servers["docs"].link().done)
}
