package mcp

import (
	"testing"
	"time"
)

func TestWhatTimeACallHas(t *testing.T) {
	u := &Upstreams{limits: Limits{CallTimeout: time.Minute}}
	for _, c := range []struct {
		name       string
		asks, want time.Duration
	}{
		{"nothing-said", 0, time.Minute},
		{"less-than-the-limit", time.Second, time.Second},
		{"the-limit", time.Minute, time.Minute},
		{"more-than-the-limit", time.Hour, time.Minute},
		{"less-than-nothing", -1, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := u.within(&Call{Timeout: c.asks}); got != c.want {
				t.Errorf("within() = %s, want %s", got, c.want)
			}
		})
	}
}
