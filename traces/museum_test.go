package traces_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/states/statestest"
	"pgfsm/traces"
)

// The museum keeps traces, from the first release on for ever. testdata/good are runs of the demo,
// and calls whose arguments have origins, as they were recorded; a good trace is never edited when
// code changes. testdata/bad are such traces, spoiled; the first line of each says what was altered
// and which error must come out, and the trace follows. forged_test.go makes them.

func TestGoodTracesReplay(t *testing.T) {
	names, docs := good(t)
	p := traces.NewReplayer(statestest.MustMachine(t), nil)
	for i, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			trace, err := traces.Read(docs[i])
			if err != nil {
				t.Fatalf("Read() = %v", err)
			}
			if _, err := p.Replay(trace); err != nil {
				t.Fatalf("Replay() = %v", err)
			}
		})
	}
}

// FuzzRead replays what the reader accepts: a trace whose chain holds diverges or replays, and
// nothing else.
func FuzzRead(f *testing.F) {
	_, docs := good(f)
	p := traces.NewReplayer(statestest.MustMachine(f), nil)
	for _, doc := range docs {
		f.Add(doc)
		f.Add([]byte(strings.Replace(string(doc), `}]},"facts"`, `}]}.5,"facts"`, 1)))
	}
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"steps":[{"event":{"happened":"tools_listed"`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		trace, err := traces.Read(doc)
		if err != nil {
			return
		}
		if _, err := p.Replay(trace); err != nil {
			var diverged *traces.DivergenceError
			if !errors.As(err, &diverged) && !errors.Is(err, traces.ErrTampered) {
				t.Fatalf("a trace whose chain holds fails with %v", err)
			}
		}
	})
}

// good are the traces of the museum.
func good(tb testing.TB) (names []string, docs [][]byte) {
	tb.Helper()
	names, err := filepath.Glob("testdata/good/*.json")
	if err != nil || len(names) == 0 {
		tb.Fatalf("testdata/good holds %d traces, %v", len(names), err)
	}
	for _, name := range names {
		doc, err := os.ReadFile(name)
		check.NoError(tb, err)
		docs = append(docs, doc)
	}
	return names, docs
}
