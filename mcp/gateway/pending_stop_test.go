package gateway

import (
	"context"
	"runtime"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// A blocked session.Sender says when it is reached, and goes on when it is let.
type blocked struct{ entered, free chan struct{} }

func (s *blocked) Send([]byte) error {
	close(s.entered)
	<-s.free
	return nil
}

// TestAClientThatDoesNotReadKeepsNoStop: a stop has its time, also while a client does not read what its request is told.
func TestAClientThatDoesNotReadKeepsNoStop(t *testing.T) {
	a := newAsker(t, 0, nil)
	out := &blocked{make(chan struct{}), make(chan struct{})}
	a.docs.plays(byPrompt, func(ctx context.Context, l *playedLink, _ jsontext.Value, on func(wire.Message)) (upstream.Reply, error) {
		go on(wire.Message{Method: "notifications/progress", Params: jsontext.Value(`{"progressToken":5,"progress":1}`)})
		<-out.entered
		l.peer.Tell(elicits("10"))
		<-ctx.Done()
		return upstream.Reply{}, ctx.Err()
	})
	go func() {
		q := a.ann.request(`7`, byPrompt, `{"name":"p","_meta":`+a.ann.meta(`,"progressToken":5`)+`}`)
		q.Out = out
		a.dispatch(context.Background(), q)
	}()
	<-out.entered
	for all := a.asks.All(); len(all) == 0 || !all[0].Unattended(); all = a.asks.All() { // until the client is to be asked
		runtime.Gosched()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	over := make(chan error, 1)
	go func() { over <- a.Drain(ctx) }()
	defer close(out.free)
	within(t, "the end of the stop", over)
}
