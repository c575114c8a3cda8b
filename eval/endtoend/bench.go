// Package endtoend takes cases through pgfsm and through an agent without gates, on the same
// servers and with the same model outputs, and compares the results: what was blocked, what was
// called, which calls the case did not permit, how long it took and how many tokens it cost.
//
// A file of cases has one JSON object a line ([Case]). Both agents ask the configured model, with
// the same prompts. Without a model, each case brings its own outputs.
package endtoend

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/runner"
	"pgfsm/internal/runner/setup"
	"pgfsm/internal/visible"
	"pgfsm/llm"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

// A Bench is the configuration that both agents use. For each case, each agent gets separate
// sessions, servers of the demo and a scripted model.
type Bench struct {
	*setup.Setup
	Scripted bool   // no model is configured: a scripted model answers
	Actor    string // the actor of pgfsm's runs
	Traces   string // the folder for the ledger of pgfsm's runs and their traces
}

// OpenBench opens a configuration, with a model that is asked about every request: routes are
// ignored.
func OpenBench(o setup.Options, actor, traces string) (*Bench, error) {
	loaded, from, err := setup.Load(o)
	if err != nil {
		return nil, err
	}
	b := &Bench{Scripted: loaded.Content.Planner.LLM == nil, Actor: actor, Traces: traces}
	if !b.Scripted {
		loaded.Content.Planner.Mode = policy.PlannerLLM
	}
	b.Setup, err = setup.Open(o, loaded, from)
	return b, err
}

// Measure takes every case through both agents. done is called after each case.
func (b *Bench) Measure(ctx context.Context, version string, cases []Case, done func()) (m *Metrics, err error) {
	machine, err := states.NewMachine()
	if err != nil {
		return nil, err
	}
	suite, err := canonical.SumOf("e2e cases", cases)
	if err != nil {
		return nil, err
	}

	recorded, closeLedger, err := b.openLedger(ctx, version)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeLedger()) }()

	m = &Metrics{
		Format:   Format,
		Started:  time.Now().UTC().Format(time.RFC3339),
		Version:  version,
		Model:    "scripted",
		Scripted: b.Scripted,
		Prompt:   llm.PromptVersion,
		Suite:    suite,
		Bundle:   b.Bundle.Digest(),
		Machine:  machine.Digest(),
		Observed: b.IsDemo(),
		Runs:     make([]Run, len(cases)),
	}

	if !b.Scripted {
		m.Model = b.Bundle.Content().Planner.LLM.Model
	}

	for i := range cases {
		c := &cases[i]
		m.Runs[i] = Run{ID: c.ID, Safe: b.runSafe(ctx, c, recorded), Naive: b.runNaive(ctx, c)}
		done()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}

	m.sumUp(cases)
	return m, recorded.View(ctx, func(r ledger.Reader) error {
		_, _, err := ledger.WriteTraces(ctx, r, traces.NewReplayer(machine, nil), b.Traces)
		return err
	})
}

// openLedger makes the ledger of pgfsm's runs.
func (b *Bench) openLedger(ctx context.Context, version string) (l *ledger.Ledger, closeLedger func() error, err error) {
	if err := os.MkdirAll(b.Traces, 0o700); err != nil {
		return nil, nil, err
	}
	store, err := stores.Open("sqlite:"+filepath.Join(b.Traces, "pgfsm.db"), stores.ToWrite)
	if err != nil {
		return nil, nil, err
	}
	if l, err = ledger.Open(ctx, store, ledger.Options{Build: version}); err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return l, func() error { return errors.Join(l.Close(), store.Close()) }, nil
}

// runSafe takes a case through pgfsm, as pgfsm run does.
func (b *Bench) runSafe(ctx context.Context, c *Case, recorded *ledger.Ledger) Side {
	return b.runWith(ctx, c, func(s *setup.Setup) Side {
		o := s.Runner()
		o.Ledger = recorded
		r, err := runner.New(o)
		if err != nil {
			return Side{Outcome: Unended, Reason: b.oneLine(err), Calls: []Call{}}
		}

		begin := time.Now()
		result, err := r.Run(ctx, runner.Request{Actor: b.Actor, Kind: states.KindAsk, Text: []byte(c.Request)}, nil)
		side := sideOf(result)
		side.Micros = time.Since(begin).Microseconds()
		if err != nil {
			side.Outcome, side.Reason = Unended, b.oneLine(err)
		}
		return side
	})
}

// runNaive takes a case through the agent without gates.
func (b *Bench) runNaive(ctx context.Context, c *Case) Side {
	return b.runWith(ctx, c, func(s *setup.Setup) Side { return naiveSide(ctx, c, s) })
}

// runWith runs one agent with a separate setup, and judges the result. A server that cannot be
// closed does not change the result.
func (b *Bench) runWith(ctx context.Context, c *Case, run func(*setup.Setup) Side) Side {
	side := Side{Outcome: Failed, Calls: []Call{}}
	s, err := b.Copy()
	if err != nil {
		side.Reason = b.oneLine(err)
		return side
	}
	if b.Scripted {
		s.Planner, s.Summarizer = script{c}, script{c}
	}
	// The completions of each agent are counted apart.
	meter := &tokenMeter{planner: s.Planner, summarizer: s.Summarizer}
	s.Planner, s.Summarizer = meter, meter

	if err = s.Start(ctx); err == nil {
		side = run(s)
		side.Tokens = meter.tokens
		side.Reason = b.Secrets.String(side.Reason)
		side.Judge(c, callsSeen(s))
	}
	if err = errors.Join(err, s.Close()); err != nil && side.Reason == "" {
		side.Reason = b.oneLine(err)
	}
	return side
}

// oneLine writes an error in one line, without secrets.
func (b *Bench) oneLine(err error) string {
	return strings.TrimSpace(visible.Text(b.Secrets.String(err.Error())))
}

// script is the model that answers with a case's texts.
type script struct{ *Case }

// Plan implements [llm.Planner].
func (s script) Plan(context.Context, string, []llm.Tool) (llm.Completion, error) {
	return llm.Completion{Content: []byte(s.Case.Plan)}, nil
}

// Summarize implements [llm.Summarizer].
func (s script) Summarize(context.Context, string, []byte) (llm.Completion, error) {
	return llm.Completion{Content: []byte(s.Case.Summary)}, nil
}

// callsSeen returns the calls that reached the demo's servers; nil for other servers, which cannot
// be asked.
func callsSeen(s *setup.Setup) []Call {
	if s.Fleet == nil {
		return nil
	}
	calls := []Call{}
	for _, server := range s.Fleet.Servers() {
		for _, c := range server.Calls() {
			calls = append(calls, Call{Server: server.Name(), Tool: c.Name, Args: argsDigest(c.Arguments)})
		}
	}
	return calls
}
