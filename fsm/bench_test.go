package fsm_test

import (
	"context"
	"testing"

	"github.com/qmuntal/stateless"

	"pgfsm/fsm"
	"pgfsm/internal/test/check"
)

// BenchmarkFire runs the longest way through the machine: here with everything that Fire adds, beside stateless alone
// with the same rows, a guard that says yes and its state in a variable.
func BenchmarkFire(b *testing.B) {
	way := byApproval()
	b.Run("fsm", func(b *testing.B) {
		m, err := fsm.Compile(realistic())
		check.NoError(b, err)
		s := &subject{}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			mark := way[i%len(way)]
			if to, err := m.Fire(s, mark.From, mark.On); err != nil || to != mark.To {
				b.Fatal(to, err)
			}
		}
	})
	b.Run("stateless-alone", func(b *testing.B) {
		var state any = fsm.State("received")
		inner := stateless.NewStateMachineWithExternalStorage(
			func(context.Context) (any, error) { return state, nil },
			func(_ context.Context, to any) error { state = to; return nil }, stateless.FiringImmediate)
		for _, r := range realistic().Rows {
			inner.Configure(r.From).Permit(r.On, r.To, func(context.Context, ...any) bool { return true })
		}
		ctx, froms, ons := context.Background(), make([]any, len(way)), make([]any, len(way))
		for i, mark := range way {
			froms[i], ons[i] = mark.From, mark.On
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			state = froms[i%len(way)]
			check.NoError(b, inner.FireCtx(ctx, ons[i%len(way)]))
		}
	})
	b.Run("refused", func(b *testing.B) {
		m, err := fsm.Compile(realistic())
		check.NoError(b, err)
		s := &subject{refuse: "screen_allows"}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.Fire(s, "received", "screen"); err == nil {
				b.Fatal("not refused")
			}
		}
	})
}
