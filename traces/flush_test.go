package traces

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/states"
	"pgfsm/states/statestest"
)

// watchFlush notes the base name of everything that is flushed until the test ends.
func watchFlush(t *testing.T) *[]string {
	t.Helper()
	var flushed []string
	was := flush
	flush = func(f *os.File) error {
		flushed = append(flushed, filepath.Base(f.Name()))
		return was(f)
	}
	t.Cleanup(func() { flush = was })
	return &flushed
}

// spy notes how much had been flushed when the call left.
type spy struct {
	*statestest.World
	flushed *[]string
	before  int
}

func (s *spy) Call(ctx context.Context, c *states.CallTool) states.Event {
	s.before = len(*s.flushed)
	return s.World.Call(ctx, c)
}

// TestDispatchIsFlushedBeforeTheCallLeaves counts flushes: the header and its name when the record
// begins, and dispatch (and before it hold) before the call; nothing else waits for the disk on the
// way.
func TestDispatchIsFlushedBeforeTheCallLeaves(t *testing.T) {
	for _, tc := range []struct {
		name string
		want int // flushes of steps before the call
	}{{"typed-and-summarized", 1}, {"approved", 2}} {
		t.Run(tc.name, func(t *testing.T) {
			m := statestest.MustMachine(t)
			flushed := watchFlush(t)
			s := statestest.Find(t, tc.name)
			dir := t.TempDir()
			run := s.Run()
			rec, err := Create(dir, NewHeader(m, run), func() string { return statestest.At })
			check.NoError(t, err)
			if n := len(*flushed); n != 2 || (*flushed)[1] != filepath.Base(dir) {
				t.Errorf("Create() flushed %v, want the file with its header and then its folder", *flushed)
			}
			began := len(*flushed)
			world := &spy{World: s.World, flushed: flushed}
			handler := &states.Live{Tools: world, Completer: world, Caller: world, Approver: world, Active: run.Bundle()}
			if _, err := m.Advance(context.Background(), run, handler, rec); err != nil {
				t.Fatal(err)
			}
			if got := world.before - began; got != tc.want {
				t.Errorf("%d steps were flushed before the call left, want %d", got, tc.want)
			}
			if got := len(*flushed) - began; got != tc.want {
				t.Errorf("%d steps were flushed in all, want %d", got, tc.want)
			}
			check.NoError(t, rec.Abandon())
		})
	}
}
