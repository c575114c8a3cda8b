package gateway

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// TestNothingIsLeftOfPendingRequests: many at once, of a server that asks, withdraws and says what it likes in any order and of clients that change
// what they can, come back twice, or go. All get an answer, and no room, pending request or link in use is left.
func TestNothingIsLeftOfPendingRequests(t *testing.T) {
	const clients = 2 * maxDedicated
	cans := []string{`{"elicitation":{},"sampling":{},"roots":{}}`, `{"elicitation":{}}`, `{"sampling":{}}`, `{}`, `null`}
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t, 0, nil)
		a.docs.told = func(string, string) {}
		a.ann.ask("tools/list", `{}`)
		says := func(ctx context.Context, turn int, stream, beside func(wire.Message)) jsontext.Value {
			for i := range 6 {
				id := fmt.Sprint(i % 4) // ids come again
				say := stream
				if (turn+i)%2 == 0 {
					say = beside
				}
				if (turn+i)%3 == 0 {
					say(cancels(id))
				}
				switch (turn + i) % 4 {
				case 0, 1:
					say(elicits(id))
				case 2:
					say(wire.Message{ID: jsontext.Value(id), Method: "sampling/createMessage", Params: jsontext.Value(`{"_meta":{"progressToken":1}}`)})
				default:
					say(wire.Message{ID: jsontext.Value(id), Method: "elicitation/create", Params: jsontext.Value(`[]`)})
				}
				if (turn+i)%5 == 0 {
					stream(cancels(id))
				}
				stream(wire.Message{Method: "notifications/progress", Params: jsontext.Value(`{"progress":1,"progressToken":1}`)})
				stream(wire.Message{Method: "notifications/message", Params: jsontext.Value(`{"level":"error"}`)})
				select {
				case <-time.After(time.Duration((turn+i)%7) * 100 * time.Millisecond):
				case <-ctx.Done():
				}
			}
			return jsontext.Value(`{"content":[]}`)
		}
		var mu sync.Mutex
		turns := 0
		turn := func() int {
			mu.Lock()
			defer mu.Unlock()
			turns++
			return turns
		}
		a.docs.plays(byPrompt, func(ctx context.Context, l *playedLink, _ jsontext.Value, on func(wire.Message)) (upstream.Reply, error) {
			return upstream.Reply{Result: says(ctx, turn(), on, l.peer.Tell)}, nil
		})
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() { a.storm(t, i, cans) })
		}
		wg.Wait()
		time.Sleep(ask.KeepAnswer + time.Second) // what nobody came back for
		synctest.Wait()
		if n := len(a.asks.All()); n != 0 || a.room() != 0 {
			t.Errorf("%d pending requests and %d bytes are left", n, a.room())
		}
		a.pool.shared.mu.Lock()
		defer a.pool.shared.mu.Unlock()
		for key, s := range a.pool.shared.slots { // in any order: each is looked at
			if s.uses != 0 || s.works() && s.link.pending.Load() != nil {
				t.Errorf("%+v is in use", key)
			}
		}
	})
}

// storm is one client: it asks, and comes back with other abilities each time, twice at once, or not at all.
func (a *asker) storm(t *testing.T, i int, cans []string) {
	c := a.modern("docs", "")
	c.out = make(sink, 1<<12)
	ask := func(can, more string) string {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if i%8 == 7 {
			time.AfterFunc(time.Second, cancel)
		}
		params := `{"name":"echo","_meta":{"` + metaCapabilities + `":` + can + `,"progressToken":1,"` + metaLogLevel + `":"error"}` + more + `}`
		return string(a.dispatch(ctx, c.request(fmt.Sprint(i), byPrompt, params)))
	}
	for n, answer := 0, ask(cans[i%3], ""); ; n++ {
		switch {
		case answer == "":
			t.Error("there is no answer")
			return
		case !strings.Contains(answer, "input_required") || n == 20 || i%8 == 6:
			return
		}
		time.Sleep(time.Duration(i+n) % 3 * 150 * time.Millisecond)
		state, requests := asked(t, answer)
		can, more := cans[(i+n)%len(cans)], ""
		wire.Each(requests, func(p wire.Piece) {
			name := p.Name
			if more == "" || n%2 == 0 {
				more += `,"` + name + `":{}`
			}
		})
		more = `,"requestState":` + state + `,"inputResponses":{` + strings.TrimPrefix(more, ",") + `}`
		var wg sync.WaitGroup
		if n%3 == 2 {
			wg.Go(func() { ask(can, more) })
		}
		answer = ask(can, more)
		wg.Wait()
	}
}
