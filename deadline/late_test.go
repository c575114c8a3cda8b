package deadline

import (
	"testing"
	"testing/synctest"
	"time"
)

// A pause gains nothing once the time is over, also if the timer has not fired yet.
func TestAPauseAfterTheEnd(t *testing.T) {
	for _, tt := range []struct {
		name string
		late time.Duration
		over bool
	}{{"before", time.Hour - time.Minute, false}, {"at-the-end", time.Hour, true}, {"after", 2 * time.Hour, true}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, c := New(t.Context(), Limits{Idle: time.Hour, Total: 24 * time.Hour})
				defer c.Stop()
				c.since = c.since.Add(-tt.late)
				c.Pause()
				if over := ctx.Err() != nil; over != tt.over {
					t.Errorf("Err() = %v, want over = %t", ctx.Err(), tt.over)
				}
			})
		})
	}
}
