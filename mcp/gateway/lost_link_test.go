package gateway

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// TestAListIsRepeatedOverTheNextLink shows that a list, and no other request, is repeated once if the link ends before the answer.
func TestAListIsRepeatedOverTheNextLink(t *testing.T) {
	for _, tt := range []struct {
		method, params, result string
		losses, sent           int
		want                   string
	}{
		{"prompts/list", `{}`, `{"prompts":[{"name":"p"}]}`, 1, 2, `"prompts":[{`},
		{"resources/list", `{}`, `{"resources":[{"uri":"a:b","name":"r"}]}`, 1, 2, `"resources":[{`},
		{"resources/templates/list", `{}`, `{"resourceTemplates":[{"uriTemplate":"a:{b}","name":"r"}]}`, 1, 2, `"resourceTemplates":[{`},
		{"prompts/list", `{}`, ``, 2, 2, ""},
		{"prompts/get", `{"name":"p"}`, ``, 1, 1, "lost"},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}`, ``, 1, 1, "lost"},
	} {
		for _, at := range []string{"docs", ""} {
			if at == "" && !strings.HasSuffix(tt.method, "/list") {
				continue // needs other requests first
			}
			t.Run(tt.method+"-at-"+at, func(t *testing.T) {
				r := newFixture(t, "docs", nil)
				docs, losses := r.servers["docs"], tt.losses
				docs.plays(tt.method, func(_ context.Context, l *playedLink, _ jsontext.Value, _ func(wire.Message)) (upstream.Reply, error) {
					if losses--; losses >= 0 {
						l.Close()
						return upstream.Reply{}, &upstream.LinkError{Code: upstream.CodeUnreachable, Reason: "the session is lost"}
					}
					return upstream.Reply{Result: jsontext.Value(tt.result)}, nil
				})
				got := r.legacy(at, `{}`).ask(tt.method, tt.params)
				if n := len(docs.received(tt.method)); n != tt.sent || !strings.Contains(got, tt.want) {
					t.Errorf("the server got it %d times, the client %s, want %d times and %s", n, got, tt.sent, tt.want)
				}
			})
		}
	}
}

// TestARetiredLinkKeepsItsRequests: a list that fails is repeated over the next link at once; what is under way over the former one goes on.
func TestARetiredLinkKeepsItsRequests(t *testing.T) {
	r := sharing(t, upstream.SessionsIdentity)
	docs, began, finish := r.servers["docs"], make(chan *playedLink), make(chan struct{})
	docs.plays("prompts/get", func(_ context.Context, l *playedLink, _ jsontext.Value, _ func(wire.Message)) (upstream.Reply, error) {
		began <- l
		<-finish
		if isClosed(l.done) {
			return upstream.Reply{}, &upstream.LinkError{Code: upstream.CodeClosed, Reason: "the link is closed"}
		}
		return upstream.Reply{Result: jsontext.Value(`{"messages":[]}`)}, nil
	})
	var first *playedLink
	docs.plays("prompts/list", func(_ context.Context, l *playedLink, _ jsontext.Value, _ func(wire.Message)) (upstream.Reply, error) {
		if l == first {
			l.retired.Store(true)
			return upstream.Reply{}, &upstream.LinkError{Code: upstream.CodeUnreachable, Reason: "500"}
		}
		return upstream.Reply{Result: jsontext.Value(`{"prompts":[]}`)}, nil
	})
	c, got := r.legacy("docs", `{}`), make(chan string)
	go func() { got <- c.ask("prompts/get", `{"name":"p"}`) }()
	first = <-began
	if listed := r.legacy("docs", `{}`).ask("prompts/list", `{}`); !strings.Contains(listed, `"prompts":[`) {
		t.Errorf("the list is %s", listed)
	}
	close(finish)
	if answer := <-got; !strings.Contains(answer, `"messages":[]`) {
		t.Errorf("the request under way got %s", answer)
	}
}

// TestACallLeavesALostSession: a call that finds that the session is lost, while other requests wait over it, goes on over the next one.
func TestACallLeavesALostSession(t *testing.T) {
	r := newFixture(t, "docs", nil)
	docs := r.servers["docs"]
	r.judge.decide = func(ctx context.Context, call *ToolCall) Answer {
		lost, err := call.Connect(ctx)
		docs.link().retired.Store(true)
		next, err2 := call.Connect(ctx)
		if errors.Join(err, err2) != nil || lost == next {
			t.Errorf("the call stays on the lost session: %t; %v, %v", lost == next, err, err2)
		}
		return Answer{Result: jsontext.Value(`{}`)}
	}
	r.legacy("docs", `{}`).ask("tools/call", `{"name":"fetch"}`)
	if len(docs.links) != 2 {
		t.Errorf("%d links", len(docs.links))
	}
}
