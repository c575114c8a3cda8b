package current_test

import (
	"sync"
	"testing"

	"pgfsm/internal/current"
)

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestReplace(t *testing.T) {
	v := current.New("old")
	first, another := v.Acquire(), v.Acquire()
	former, idle := v.Replace("new")
	if former != "old" || first.Value != "old" || v.Load() != "new" {
		t.Errorf("former %q, used %q, current %q", former, first.Value, v.Load())
	}
	second := v.Acquire()
	if second.Value != "new" {
		t.Errorf("a later user has %q", second.Value)
	}
	another.Release()
	if closed(idle) {
		t.Error("the former value is idle, and has a user")
	}
	first.Release()
	<-idle
	if _, idle := v.Replace("newest"); closed(idle) {
		t.Error("the second value is idle, and has a user")
	}
	second.Release()
}

// TestReplaceConcurrently: no user gets a value after it was idle.
func TestReplaceConcurrently(t *testing.T) {
	type value struct{ idle chan struct{} }
	v := current.New(&value{make(chan struct{})})
	done := make(chan struct{})
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for !closed(done) {
				h := v.Acquire()
				if closed(h.Value.idle) {
					t.Error("a user has a value that is idle")
				}
				h.Release()
			}
		})
	}
	for range 2000 {
		former, idle := v.Replace(&value{make(chan struct{})})
		<-idle
		close(former.idle)
	}
	close(done)
	users.Wait()
}
