package runner

import (
	"testing"
	"time"

	"pgfsm/states"
)

// TestCallsThatAreNotHeldDoNotWait: while one call is counted among the held ones, which may take as long as the ledger, others end.
func TestCallsThatAreNotHeldDoNotWait(t *testing.T) {
	r := &Runner{}
	r.holds.mu.Lock()
	defer r.holds.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		(&heldCallLimit{run: states.NewHeld("", states.Request{}, ""), configured: &ConfiguredRunner{runner: r}}).end()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("a call that was not held waits for one that is")
	}
}
