package tracestest

import (
	"context"
	"os"
	"testing"

	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

// Record advances a run as far as it comes, and returns its trace's file, and the trace, read back.
func Record(tb testing.TB, m *states.Machine, run *states.Run, handler states.EffectHandler, clock func() string) (
	path string, doc []byte, trace *traces.Trace,
) {
	tb.Helper()
	rec, err := traces.Create(tb.TempDir(), traces.NewHeader(m, run), clock)
	if err != nil {
		tb.Fatalf("Create() = %v", err)
	}
	o, err := m.Advance(context.Background(), run, handler, rec)
	if err != nil {
		tb.Fatalf("Advance() = %v", err)
	}
	path, head, err := rec.Finish(o)
	if err != nil {
		tb.Fatalf("Finish() = %v", err)
	}
	if doc, err = os.ReadFile(path); err != nil {
		tb.Fatal(err)
	}
	if trace, err = traces.Read(doc); err != nil || trace.Head != head {
		tb.Fatalf("Read() = %v, %v; want head %s", trace, err, head)
	}
	return path, doc, trace
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
