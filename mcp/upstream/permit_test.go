package upstream

import (
	"fmt"
	"testing"
)

func TestARunCallsOnce(t *testing.T) {
	const rivals = 64
	srv := serveScript(t, honest, false)
	u := upstreams(t, Limits{}, srv.server())
	mustList(t, u)
	results := make(chan Returned, rivals)
	for range rivals {
		go func() {
			results <- clientOf(u).Call(t.Context(), Call{Server: "web", Tool: "echo", Arguments: object(`{}`), RunID: "r", Listing: latest(u, "web")})
		}()
	}
	effects := map[string]int{}
	for range rivals {
		r := <-results
		effects[r.Effect+" "+r.Code]++
	}
	want := fmt.Sprintf("map[%s :1 %s %s:%d]", EffectDone, EffectNotSent, CodePermit, rivals-1)
	if fmt.Sprint(effects) != want {
		t.Errorf("effects = %v, want %s", effects, want)
	}
	if n := srv.count(methodCall); n != 1 {
		t.Errorf("%d calls on the wire, want 1", n)
	}
}

func TestRunsForgetOnlyTheOldest(t *testing.T) {
	var r runs
	for i := range rememberedRuns {
		if !r.markCalled(fmt.Sprint(i)) {
			t.Fatalf("markCalled(%d) = false, want true", i)
		}
	}
	if r.markCalled("0") || r.markCalled(fmt.Sprint(rememberedRuns-1)) {
		t.Error("markCalled(a remembered run) = true, want false")
	}
	if !r.markCalled("new") || r.markCalled("1") || !r.markCalled("0") || len(r.seen) != rememberedRuns {
		t.Errorf("after one run too many: %d remembered, want %d, without the oldest", len(r.seen), rememberedRuns)
	}
}

func TestAPermitIsUsedOnce(t *testing.T) {
	const rivals = 64
	frame := []byte("call")
	p := newPermit(frame, 0)
	start := make(chan struct{})
	passed := make(chan bool, rivals)
	for range rivals {
		go func() {
			<-start
			passed <- p.consume(frame) == nil
		}()
	}
	close(start)
	n := 0
	for range rivals {
		if <-passed {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d of %d passed, want 1", n, rivals)
	}
}
