package traces_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
)

var museum = flag.Bool("museum", false, "execute the traces of testdata/good again and write them and those of testdata/bad anew")

var anyCase = json.MatchCaseInsensitiveNames(true) // a step has no tags

// stored is a trace of the museum as far as it is needed to execute it again: its hashes are not looked at.
type stored struct {
	Bundle struct {
		Content jsontext.Value `json:"content"`
	} `json:"bundle"`
	Format  string         `json:"format"`
	Request states.Request `json:"request"`
	RunID   string         `json:"run_id"`
	Steps   []traces.Step  `json:"steps"`
}

// again executes a stored trace: it is the door, which says what was recorded, and the recorder.
type again struct {
	old   []traces.Step
	chain *traces.Chain
	steps []traces.Step
}

func (a *again) Do(_ context.Context, wanted states.Command) (states.Event, error) {
	if len(a.steps) == len(a.old) {
		return nil, states.ErrParked
	}
	return states.DecodeEvent(a.old[len(a.steps)].Event)
}

func (a *again) Append(s states.Step) error {
	for _, raw := range []*jsontext.Value{&s.Facts, &s.Command, &s.Event} {
		*raw = bytes.Clone(*raw)
	}
	a.steps = append(a.steps, a.chain.Link(s, a.old[min(len(a.steps), len(a.old)-1)].At))
	return nil
}

// execute returns a stored trace as this version records it.
func (s *stored) execute(t *testing.T, m *states.Machine) (*traces.Header, []traces.Step, states.Outcome) {
	t.Helper()
	var content policy.Content
	if err := canonical.Unmarshal(s.Bundle.Content, &content); err != nil {
		t.Fatal(err)
	}
	b, err := policy.Compile(content)
	if err != nil {
		t.Fatal(err)
	}
	h := &traces.Header{
		Bundle: traces.Bundle{Content: b.Canonical(), Digest: b.Digest()}, Format: s.Format, Machine: m.Digest(), Request: s.Request, RunID: s.RunID,
	}
	a := &again{old: s.Steps, chain: traces.NewChain(h)}
	outcome, err := m.Advance(context.Background(), states.NewRun(s.RunID, s.Request, b), a, a)
	if err != nil {
		t.Fatal(err)
	}
	return h, a.steps, outcome
}

// TestMuseumUpdate writes the museum anew after a change of what is recorded: the good traces are executed again with what
// happened then, and the spoiled ones whose chain was computed anew are spoiled in the same way.
func TestMuseumUpdate(t *testing.T) {
	if !*museum {
		t.Skip("only with -museum")
	}
	m := statestest.MustMachine(t)
	names, docs := good(t)
	for i, name := range names {
		s := new(stored)
		if err := json.Unmarshal(docs[i], s, anyCase); err != nil {
			t.Fatal(err)
		}
		h, steps, outcome := s.execute(t, m)
		if err := os.WriteFile(name, traces.Document(h, steps, outcome), 0o644); err != nil {
			t.Fatal(err)
		}
		respoil(t, s, h, steps, outcome)
	}
}

// respoil spoils a trace as those of its run in testdata/bad are.
func respoil(t *testing.T, old *stored, h *traces.Header, steps []traces.Step, outcome states.Outcome) {
	t.Helper()
	names, err := filepath.Glob("testdata/bad/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		says, doc, _ := strings.Cut(string(text), "\n")
		var bad stored
		if !strings.Contains(says, "chain") || json.Unmarshal([]byte(doc), &bad, anyCase) != nil || bad.RunID != old.RunID {
			continue
		}
		chain := traces.NewChain(h)
		var spoiled []traces.Step
		for _, s := range bad.Steps {
			i := slices.IndexFunc(old.Steps, func(o traces.Step) bool { return o.From == s.From && o.Trigger == s.Trigger && o.To == s.To })
			if i >= 0 {
				s.Facts = alter(old.Steps[i].Facts, s.Facts, steps[i].Facts)
				s.Command = alter(old.Steps[i].Command, s.Command, steps[i].Command)
				s.Event = alter(old.Steps[i].Event, s.Event, steps[i].Event)
			}
			spoiled = append(spoiled, chain.Link(states.Step{
				From: s.From, To: s.To, On: s.Trigger, Facts: s.Facts, Command: s.Command, Event: s.Event,
			}, s.At))
		}
		if err := os.WriteFile(name, append([]byte(says+"\n"), traces.Document(h, spoiled, outcome)...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// alter makes of a value what was made of an older one.
func alter(was, spoiled, now jsontext.Value) jsontext.Value {
	from := 0
	for from < min(len(was), len(spoiled)) && was[from] == spoiled[from] {
		from++
	}
	to := 0
	for to < min(len(was), len(spoiled))-from && was[len(was)-1-to] == spoiled[len(spoiled)-1-to] {
		to++
	}
	if from == len(was) && len(was) == len(spoiled) {
		return now
	}
	const around = 12 // bytes that say where
	begin, end := max(0, from-around), min(len(was), len(was)-to+around)
	by := slices.Concat(was[begin:from], spoiled[from:len(spoiled)-to], was[len(was)-to:end])
	return bytes.Replace(now, was[begin:end], by, 1)
}
