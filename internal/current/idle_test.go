package current

import "testing"

// TestIdleIsFinal: a user who has read the current value and is overtaken by its replacement does not get it when it is idle.
func TestIdleIsFinal(t *testing.T) {
	v := New("old")
	h := v.now.Load()
	_, idle := v.Replace("new")
	<-idle
	if h.acquire() {
		t.Error("an idle value has a user again")
	}
	if got := v.Acquire().Value; got != "new" {
		t.Errorf("the user gets %q", got)
	}
}
