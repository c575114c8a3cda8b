package upstream

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// TestCallsWaitForTheStreamOfNews: what a server asks in the middle of the first call must find somebody who listens, where there
// is somebody to ask.
func TestCallsWaitForTheStreamOfNews(t *testing.T) {
	for _, tt := range []struct {
		name string
		get  func(rw http.ResponseWriter, n *streamFixture)
	}{
		{"there-is-one", func(rw http.ResponseWriter, n *streamFixture) {
			rw.Header().Set("Content-Type", "text/event-stream")
			http.NewResponseController(rw).Flush()
			<-n.hold
		}},
		{"there-is-none", func(rw http.ResponseWriter, _ *streamFixture) { rw.WriteHeader(http.StatusMethodNotAllowed) }},
		{"it-breaks", func(http.ResponseWriter, *streamFixture) { panic(http.ErrAbortHandler) }},
		{"it-is-not-answered", func(_ http.ResponseWriter, n *streamFixture) { <-n.hold }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := serveStream(t, announces)
			calling, looked := make(chan struct{}), make(chan struct{})
			var early atomic.Bool
			var once sync.Once
			n.get = func(rw http.ResponseWriter, _ *http.Request) {
				<-calling
				for range 20 { // the call, if it did not wait, would be here as soon as these
					if resp, err := http.Head(n.URL); err == nil {
						resp.Body.Close()
					}
				}
				once.Do(func() {
					early.Store(n.count("tools/call") > 0)
					close(looked)
				})
				tt.get(rw, n)
			}
			l := mustLink(t, upstreams(t, Limits{}, n.server()), "web", Peer{Protocol: older, OnMessage: newMessageLog().accept, Capabilities: []byte(`{"elicitation":{}}`)})
			c := callByListing(t, l, `{}`)
			close(calling)
			if r := l.Call(t.Context(), c, nil); r.Effect != EffectDone {
				t.Errorf("Call() = %+v, want it done", r)
			}
			<-looked
			if early.Load() {
				t.Error("the call was made before the stream was answered")
			}
		})
	}
}
