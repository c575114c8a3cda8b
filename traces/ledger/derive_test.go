package ledger_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// TestTraceIsDerived runs every scenario with two recorders: the trace that the ledger derives is the document of the other one, byte
// for byte.
func TestTraceIsDerived(t *testing.T) {
	for _, s := range statestest.Scenarios() {
		if foreign(&s) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			d := newDesk(t)
			run, rec := d.begin(statestest.RunID, &s)
			file, err := traces.Create(t.TempDir(), traces.NewHeader(d.Machine, run), func() string { return statestest.At })
			if err != nil {
				t.Fatal(err)
			}
			o, err := d.Machine.Advance(context.Background(), run, rec.Door(s.Entry()), recorders{file, rec})
			if err == nil && o.Type != states.TypePending {
				_, err = rec.Finish(context.Background(), o)
			}
			if err != nil {
				t.Fatal(err)
			}
			path, _, err := file.Finish(o)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			d.derives(statestest.RunID, want, s.Decider)
		})
	}
}

// derives compares the trace that the ledger derives with a document.
func (d *desk) derives(id string, want []byte, decider policy.Decider) {
	d.TB.Helper()
	d.Look(func(r ledger.Reader) error {
		got, err := ledger.Trace(context.Background(), r, id, d.replayer(decider))
		if err == nil && !bytes.Equal(got, want) {
			d.TB.Errorf("derived:\n%s\nrecorded:\n%s", got, want)
		}
		return err
	})
}

// linked is a recorder in memory.
type linked struct {
	chain *traces.Chain
	steps []traces.Step
}

func (l *linked) Append(_ context.Context, s states.Step) error {
	s.Command, s.Event, s.Facts = s.Command.Clone(), s.Event.Clone(), s.Facts.Clone()
	l.steps = append(l.steps, l.chain.Link(s, statestest.At))
	return nil
}

// TestGeneratedTraceIsDerived is [TestTraceIsDerived] for runs that are drawn at random. PGFSM_SOAK=1 draws ten times as many.
func TestGeneratedTraceIsDerived(t *testing.T) {
	n := 1000
	if os.Getenv("PGFSM_SOAK") != "" {
		n = 10_000
	}
	r, ended := rand.New(rand.NewPCG(1, 2)), make(map[string]int)
	all := slices.DeleteFunc(statestest.Scenarios(), func(s statestest.Scenario) bool { return strings.HasPrefix(s.Name, "active-") }) // they wait
	d := newDesk(t)
	for range n {
		s := all[r.IntN(len(all))]
		if foreign(&s) || s.Decider != nil {
			continue
		}
		vary(r, &s)
		id := ledgertest.NewID(t)
		run, rec := d.begin(id, &s)
		h := traces.NewHeader(d.Machine, run)
		steps := &linked{chain: traces.NewChain(&h)}
		o, err := d.Machine.Advance(context.Background(), run, rec.Door(s.Entry()), recorders{steps, rec})
		if err == nil && o.Type != states.TypePending {
			_, err = rec.Finish(context.Background(), o)
		}
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		d.derives(id, traces.Document(&h, steps.steps, o), nil)
		ended[o.State+" "+string(o.Code)]++
	}
	if len(ended) < 30 {
		t.Errorf("the runs ended in %d ways only: %v", len(ended), ended)
	}
	if err := alike(d.checked(ledger.VerifyOptions{})); err != nil {
		t.Errorf("Verify() = %v", err)
	}
}

// vary changes what a scenario's run meets.
func vary(r *rand.Rand, s *statestest.Scenario) {
	w := *s.World
	s.World = &w
	s.Request.Actor = fmt.Sprintf("local:actor-%d", r.IntN(5))
	s.Content.Env = []string{"test", "prod"}[r.IntN(2)]
	text := func(t canonical.Text) canonical.Text { // with one byte changed, or dropped, or as it is
		b := []byte(t)
		if len(b) == 0 {
			return t
		}
		switch i := r.IntN(len(b)); r.IntN(4) {
		case 0:
			b[i] = byte(' ' + r.IntN(95))
		case 1:
			b = append(b[:i], b[i+1:]...)
		}
		return canonical.Text(b)
	}
	if p, ok := w.Plan.(*states.Completed); ok && r.IntN(3) == 0 {
		c := *p
		c.Content = text(p.Content)
		w.Plan = &c
	}
	if p, ok := w.Summary.(*states.Completed); ok && r.IntN(3) == 0 {
		c := *p
		c.Content = text(p.Content)
		w.Summary = &c
	}
	if p, ok := w.Returned.(*states.ToolReturned); ok {
		c := *p
		switch r.IntN(3) {
		case 0:
			c.Result = text(p.Result)
		case 1:
			c.Result = canonical.Text(`{"structuredContent":{"status":"` + strings.Repeat("x", r.IntN(2*ledger.MaxInline)) + `"}}`)
		}
		w.Returned = &c
	}
}
