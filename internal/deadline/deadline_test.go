package deadline

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

var limits = Limits{Idle: 10 * time.Second, Total: 5 * time.Minute}

func TestWhenTheTimeOfWorkIsOver(t *testing.T) {
	for _, tt := range []struct {
		name  string
		work  func(*Clock)
		after time.Duration
	}{
		{"idle", func(*Clock) {}, 10 * time.Second},
		{"progress-once", func(c *Clock) {
			time.Sleep(9 * time.Second)
			c.Progress()
		}, 19 * time.Second},
		{"progress-until-the-total", func(c *Clock) {
			for range 100 {
				time.Sleep(9 * time.Second)
				c.Progress()
			}
		}, 5 * time.Minute},
		{"progress-too-late", func(c *Clock) {
			time.Sleep(11 * time.Second)
			c.Progress()
		}, 10 * time.Second},
		{"paused", func(c *Clock) {
			time.Sleep(4 * time.Second)
			c.Pause()
			time.Sleep(time.Minute)
			c.Resume()
		}, time.Minute + 10*time.Second},
		{"paused-twice-at-once", func(c *Clock) {
			c.Pause()
			c.Pause()
			time.Sleep(time.Minute)
			c.Resume()
			time.Sleep(time.Minute)
			c.Resume()
		}, 2*time.Minute + 10*time.Second},
		{"paused-for-ever", func(c *Clock) { c.Pause() }, 5 * time.Minute},
		{"progress-while-paused", func(c *Clock) {
			time.Sleep(9 * time.Second)
			c.Pause()
			time.Sleep(time.Minute)
			c.Progress()
			c.Resume()
		}, time.Minute + 19*time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, c := New(t.Context(), limits)
				defer c.Stop()
				begun := time.Now()
				worked := make(chan struct{})
				go func() {
					defer close(worked)
					tt.work(c)
				}()
				<-ctx.Done()
				if took := time.Since(begun); took != tt.after || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
					t.Errorf("after %s: %v, want a deadline after %s", took, ctx.Err(), tt.after)
				}
				<-worked
			})
		})
	}
}

func TestAPauseWithoutLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := Within(t.Context(), time.Minute)
		defer cancel()
		resume := Pause(ctx)
		time.Sleep(30 * 24 * time.Hour)
		if ctx.Err() != nil {
			t.Fatalf("it ended while it was paused: %v", ctx.Err())
		}
		resume()
		begun := time.Now()
		<-ctx.Done()
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("it ended after %s, want %s", took, time.Minute)
		}
	})
}

// However often a clock is paused, work has its time outside the pauses, and at most the total.
func TestAnyPauses(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			ctx, c := New(t.Context(), limits)
			defer c.Stop()
			var over time.Duration
			context.AfterFunc(ctx, func() { over = time.Since(begun) })
			want, left, pauses := time.Duration(0), limits.Idle, 0
			for left > 0 && want < limits.Total {
				wait := time.Duration(r.Int64N(int64(time.Minute)))
				if pauses == 0 {
					wait = min(wait/20, left)
					left -= wait
				}
				want = min(want+wait, limits.Total)
				time.Sleep(wait)
				if pauses > 0 && r.IntN(3) > 0 {
					pauses--
					c.Resume()
				} else {
					pauses++
					c.Pause()
				}
			}
			<-ctx.Done()
			synctest.Wait()
			if over != want {
				t.Fatalf("it was over after %s, want %s", over, want)
			}
		})
	}
}

// Whoever looks at a derived context sees why it ended.
func TestWhyDerivedContextsEnd(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(cancel context.CancelFunc, c *Clock)
		want error
	}{
		{"time-is-over", func(context.CancelFunc, *Clock) {}, context.DeadlineExceeded},
		{"cancelled", func(cancel context.CancelFunc, _ *Clock) { cancel() }, context.Canceled},
		{"stopped", func(_ context.CancelFunc, c *Clock) { c.Stop() }, context.Canceled},
		{"time-is-over-before-it-is-cancelled", func(cancel context.CancelFunc, _ *Clock) {
			time.Sleep(time.Hour)
			cancel()
		}, context.DeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, cancel := context.WithCancel(t.Context())
				defer cancel()
				ctx, c := New(parent, limits)
				defer c.Stop()
				derived, stop := context.WithTimeout(ctx, 24*time.Hour)
				defer stop()
				tt.end(cancel, c)
				<-derived.Done()
				if derived.Err() != tt.want || ctx.Err() != tt.want || !errors.Is(context.Cause(derived), tt.want) {
					t.Errorf("derived: %v, its cause: %v, itself: %v; want %v", derived.Err(), context.Cause(derived), ctx.Err(), tt.want)
				}
			})
		})
	}
}

func TestPauseWithoutAClock(t *testing.T) { Pause(t.Context())() }

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
