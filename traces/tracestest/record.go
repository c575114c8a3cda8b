package tracestest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

// Record advances a run as far as it comes, and returns its trace's file, and the trace, read back.
func Record(tb testing.TB, m *states.Machine, run *states.Run, handler states.EffectHandler, clock func() string) (
	path string, doc []byte, trace *traces.Trace,
) {
	tb.Helper()
	header := traces.NewHeader(m, run)
	rec := recorder{chain: traces.NewChain(&header), clock: clock}
	o, err := m.Advance(context.Background(), run, handler, &rec)
	if err != nil {
		tb.Fatalf("Advance() = %v", err)
	}

	doc = traces.Document(&header, rec.steps, o)
	path = filepath.Join(tb.TempDir(), traces.Name(run.ID()))
	check.NoError(tb, os.WriteFile(path, doc, 0o600))
	if trace, err = traces.Read(doc); err != nil {
		tb.Fatalf("Read() = %v", err)
	}
	return path, doc, trace
}

// A recorder is a [states.Recorder] that keeps the steps.
type recorder struct {
	chain *traces.Chain
	clock func() string
	steps []traces.Step
}

func (r *recorder) Append(_ context.Context, s states.Step) error {
	s.Command, s.Event, s.Facts = slices.Clone(s.Command), slices.Clone(s.Event), slices.Clone(s.Facts)
	r.steps = append(r.steps, r.chain.Link(s, r.clock()))
	return nil
}

// Replayer executes traces again with a decider, which no bundle can name. Nil is the bundle's own.
func Replayer(m *states.Machine, d policy.Decider) *traces.Replayer {
	return traces.NewReplayer(m, func(c policy.Content) (*policy.Bundle, error) {
		b, err := policy.Compile(c)
		if err != nil || d == nil {
			return b, err
		}
		return b.WithDecider(d), nil
	})
}
