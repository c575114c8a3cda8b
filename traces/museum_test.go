package traces_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgfsm/states/statestest"
	"pgfsm/traces"
)

// The museum keeps traces, from the first release on for ever. testdata/good are runs of the demo as they were recorded; a good trace is never edited
// when code changes. testdata/bad are the same traces, spoiled; the first line of each says what was altered and which
// error must come out, and the trace follows.

func TestGoodTracesReplay(t *testing.T) {
	names, docs := good(t)
	p := traces.NewReplayer(statestest.MustMachine(t), nil)
	for i, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			for _, read := range []func([]byte) (*traces.Trace, error){traces.Read, p.Read, p.Read} {
				trace, err := read(docs[i])
				if err != nil {
					t.Fatalf("Read() = %v", err)
				}
				if _, err := p.Replay(trace); err != nil {
					t.Fatalf("Replay() = %v", err)
				}
			}
		})
	}
}

var wanted = regexp.MustCompile(`^# .+; want (\w+): (.+)$`)

func TestBadTracesAreRefused(t *testing.T) {
	names, err := filepath.Glob("testdata/bad/*.txt")
	if err != nil || len(names) < 8 {
		t.Fatalf("testdata/bad holds %d traces, %v", len(names), err)
	}
	_, docs := good(t)
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			said, doc, _ := strings.Cut(string(text), "\n")
			want := wanted.FindStringSubmatch(said)
			if want == nil {
				t.Fatalf("the first line is %q", said)
			}
			warm := traces.NewReplayer(statestest.MustMachine(t), nil)
			for _, d := range docs {
				if _, err := warm.Read(d); err != nil {
					t.Fatal(err)
				}
			}
			for reader, read := range map[string]func([]byte) (*traces.Trace, error){"cold": traces.Read, "warm": warm.Read} {
				trace, err := read([]byte(doc))
				if err == nil {
					_, err = warm.Replay(trace)
				}
				kind := "unreadable"
				var diverged *traces.DivergenceError
				switch {
				case errors.As(err, &diverged):
					kind = "diverged"
				case errors.Is(err, traces.ErrTampered):
					kind = "tampered"
				}
				if err == nil || kind != want[1] || !strings.Contains(err.Error(), want[2]) {
					t.Errorf("%s reader: %s: %v, want %s: %s", reader, kind, err, want[1], want[2])
				}
			}
		})
	}
}

// FuzzRead holds a reader that remembers to one that does not: what one refuses the other refuses, with the same words.
func FuzzRead(f *testing.F) {
	_, docs := good(f)
	warm := traces.NewReplayer(statestest.MustMachine(f), nil)
	for _, doc := range docs {
		if _, err := warm.Read(doc); err != nil {
			f.Fatal(err)
		}
		f.Add(doc)
		f.Add([]byte(strings.Replace(string(doc), `}]},"facts"`, `}]}.5,"facts"`, 1)))
		f.Add([]byte(strings.Replace(string(doc), `},"format"`, `} ,"format"`, 1)))
	}
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"steps":[{"event":{"happened":"tools_listed"`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		_, cold := traces.Read(doc)
		trace, err := warm.Read(doc)
		if (cold == nil) != (err == nil) {
			t.Fatalf("cold reader: %v; warm reader: %v", cold, err)
		}
		if cold == nil {
			if _, err := warm.Replay(trace); err != nil {
				var diverged *traces.DivergenceError
				if !errors.As(err, &diverged) && !errors.Is(err, traces.ErrTampered) {
					t.Fatalf("a trace whose chain holds fails with %v", err)
				}
			}
		}
	})
}
