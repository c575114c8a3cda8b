package gateway

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// TestAnswersCountWhileTheRequestIsRepeatedWithThem: the repetition holds them, for as long as its server takes.
func TestAnswersCountWhileTheRequestIsRepeatedWithThem(t *testing.T) {
	const size = 500 // of each answer
	cancelled := func(p *pager) {
		p.dispatch(context.Background(), p.bob.request("", methodCancelled, `{"requestId":7}`))
	}
	for _, tc := range []struct {
		name     string
		without  Expose
		results  []string
		end      func(p *pager) // of the repetition; nil: the server answers
		lingers  bool           // it goes on after that
		repeated int            // bytes while it is under way
	}{
		{"one-round", 0, []string{wants(oneForm, "s")}, nil, false, size},
		{"two-rounds", 0, []string{wants(oneForm, "s"), wants(oneForm, "t")}, nil, false, 2 * size},
		{"no-answers", 0, []string{wants("", "s")}, nil, false, 0},
		{"cancelled", 0, []string{wants(oneForm, "s")}, cancelled, false, size},
		{"cancelled-and-the-server-is-not-told", ExposeCancellation, []string{wants(oneForm, "s")}, cancelled, true, size},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPager(t, func(o *Options) { o.Servers[0].Expose &^= tc.without }, append(tc.results, inTheEnd)...)
				p.replies = func(int, wire.Message) (string, string) {
					return `{"":"` + strings.Repeat("x", size-len(`{"":""}`)) + `"}`, ""
				}
				begun, goOn := make(chan struct{}), make(chan struct{})
				inner := p.judge.decide
				p.judge.decide = func(ctx context.Context, a *Ask) Answer {
					if len(p.rounds) == len(tc.results) {
						close(begun)
						select {
						case <-ctx.Done():
							return Answer{Result: jsontext.Value(`{}`)}
						case <-goOn:
						}
					}
					return inner(ctx, a)
				}
				over := make(chan string, 1)
				go func() { over <- p.ask(byTool) }()
				<-begun
				if tc.end != nil {
					tc.end(p)
					synctest.Wait()
				}
				if n := p.room(); (tc.end == nil || tc.lingers) && n != tc.repeated {
					t.Errorf("%d bytes are taken while it is repeated, want %d", n, tc.repeated)
				}
				close(goOn)
				<-over
				synctest.Wait()
				if n := p.room(); n != 0 {
					t.Errorf("%d bytes are taken afterwards", n)
				}
			})
		})
	}
}
