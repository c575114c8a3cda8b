package traces_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
)

var museum = flag.Bool("museum", false, "execute the traces of testdata/good again and write them anew")

var anyCase = json.MatchCaseInsensitiveNames(true) // a step has no tags

// stored is a trace of the museum as far as it is needed to execute it again: its hashes are not
// looked at.
type stored struct {
	Bundle struct {
		Content jsontext.Value `json:"content"`
	} `json:"bundle"`
	Format  string         `json:"format"`
	Request states.Request `json:"request"`
	RunID   string         `json:"run_id"`
	Steps   []traces.Step  `json:"steps"`
}

// again executes a stored trace: it is the handler, which says what was recorded, and the recorder.
type again struct {
	old   []traces.Step
	chain *traces.Chain
	steps []traces.Step
}

func (a *again) Do(_ context.Context, command states.Command) (states.Event, error) {
	if len(a.steps) == len(a.old) {
		return nil, states.ErrParked
	}
	return states.DecodeEvent(a.old[len(a.steps)].Event)
}

func (a *again) Append(_ context.Context, s states.Step) error {
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
	check.NoError(t, canonical.Unmarshal(s.Bundle.Content, &content))
	b, err := policy.Compile(content)
	check.NoError(t, err)
	h := &traces.Header{
		Bundle: traces.Bundle{Content: b.Canonical(), Digest: b.Digest()}, Format: s.Format, Machine: m.Digest(), Request: s.Request, RunID: s.RunID,
	}
	a := &again{old: s.Steps, chain: traces.NewChain(h)}
	outcome, err := m.Advance(context.Background(), states.NewRun(s.RunID, s.Request, b), a, a)
	check.NoError(t, err)
	return h, a.steps, outcome
}

// TestMuseumUpdate writes the good traces anew after a change of what is recorded: it executes them
// again with the recorded events.
func TestMuseumUpdate(t *testing.T) {
	if !*museum {
		t.Skip("only with -museum")
	}
	m := statestest.MustMachine(t)
	names, docs := good(t)
	for i, name := range names {
		s := new(stored)
		check.NoError(t, json.Unmarshal(docs[i], s, anyCase))
		h, steps, outcome := s.execute(t, m)
		check.NoError(t, os.WriteFile(name, traces.Document(h, steps, outcome), 0o644))
	}
}
