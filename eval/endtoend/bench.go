// Package endtoend takes cases through pgfsm and through an agent without gates, on the same servers and with the same model
// outputs, and compares the results: what was blocked, what was called, which calls the case did not permit, how long it took and
// how many tokens it cost.
//
// A file of cases has one JSON object a line ([Case]). Both agents ask the configured model. Without one, each case brings its own
// outputs: a chat endpoint on loopback answers with the case's plan and with its summary. Both agents use the same HTTP requests and
// prompts.
package endtoend

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"pgfsm/internal/canonical"
	"pgfsm/internal/runner"
	"pgfsm/internal/runner/setup"
	"pgfsm/internal/visible"
	"pgfsm/llm"
	"pgfsm/policy"
	"pgfsm/states"
)

// A Bench is the configuration that both agents use. For each case, each agent gets separate sessions, servers of the demo
// and a scripted model.
type Bench struct {
	*setup.Setup
	Scripted bool   // no model is configured: a scripted model answers
	Actor    string // the actor of pgfsm's runs
	Traces   string // the folder for the traces of pgfsm's runs
}

// OpenBench opens a configuration, with a model that is asked about every request: routes are ignored.
func OpenBench(o setup.Options, actor, traces string) (*Bench, error) {
	loaded, from, err := setup.Load(o)
	if err != nil {
		return nil, err
	}
	b := &Bench{Scripted: loaded.Content.Planner.LLM == nil, Actor: actor, Traces: traces}
	if !b.Scripted {
		loaded.Content.Planner.Mode = policy.PlannerLLM
	}
	if b.Setup, err = setup.Open(o, loaded, from); err != nil || !b.Scripted {
		return b, err
	}
	content := *b.Bundle.Content()
	content.Planner.Mode = policy.PlannerLLM
	content.Planner.LLM = &policy.LLM{ // the same for all cases, although each has another port
		BaseURL: "embedded:" + scriptedModel, Model: scriptedModel,
		Timeout: policy.DefaultLLMTimeout, MaxTokens: policy.DefaultMaxTokens, Prompt: llm.PromptVersion,
	}
	b.Bundle, err = policy.Compile(content)
	return b, err
}

// Measure takes every case through both agents, one agent after the other, jobs cases at the same time. done is called after each
// case.
func (b *Bench) Measure(ctx context.Context, version string, cases []Case, jobs int, done func()) (*Metrics, error) {
	machine, err := states.NewMachine()
	if err != nil {
		return nil, err
	}
	suite, err := canonical.SumOf("e2e cases", cases)
	if err != nil {
		return nil, err
	}
	model := b.Bundle.Content().Planner.LLM
	m := &Metrics{
		Format: Format, Started: time.Now().UTC().Format(time.RFC3339), Version: version,
		Model: model.Model, Scripted: b.Scripted, Prompt: model.Prompt,
		Suite: suite, Bundle: b.Bundle.Digest(), Machine: machine.Digest(), Observed: b.IsDemo(),
		Runs: make([]Run, len(cases)),
	}

	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(jobs)
	for i := range cases {
		group.Go(func() error {
			c := &cases[i]
			m.Runs[i] = Run{ID: c.ID, Safe: b.safe(ctx, c), Naive: b.naive(ctx, c)}
			done()
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	m.sum(cases)
	return m, nil
}

// safe takes a case through pgfsm, as pgfsm run does without a ledger.
func (b *Bench) safe(ctx context.Context, c *Case) Side {
	return b.runWith(ctx, c, func(s *setup.Setup) Side {
		var tokens Tokens
		o := s.Runner()
		o.TracesDir, o.Planner, o.Summarizer = b.Traces, meteredPlanner{&tokens, s.Planner}, meteredSummarizer{&tokens, s.Summarizer}
		r, err := runner.New(o)
		if err != nil {
			return Side{Outcome: Unended, Reason: b.oneLine(err), Calls: []Call{}}
		}
		begin := time.Now()
		got, err := r.Run(ctx, runner.Request{Actor: b.Actor, Kind: states.KindAsk, Text: []byte(c.Request)}, nil)
		side := sideOf(got)
		side.Micros, side.Tokens = time.Since(begin).Microseconds(), tokens
		if err != nil {
			side.Outcome, side.Reason = Unended, b.oneLine(err)
		}
		return side
	})
}

// naive takes a case through the agent without gates.
func (b *Bench) naive(ctx context.Context, c *Case) Side {
	return b.runWith(ctx, c, func(s *setup.Setup) Side { return naiveSide(ctx, c, s) })
}

// runWith runs one agent with a separate setup, and judges the result. A server that cannot be closed does not change the result.
func (b *Bench) runWith(ctx context.Context, c *Case, run func(*setup.Setup) Side) Side {
	side := Side{Outcome: Failed, Calls: []Call{}}
	s, err := b.Copy()
	if err != nil {
		side.Reason = b.oneLine(err)
		return side
	}
	if b.Scripted {
		var stop func() error
		if stop, err = b.askScript(s, c); err == nil {
			defer stop()
		}
	}
	if err == nil {
		err = s.Start(ctx)
	}
	if err == nil {
		side = run(s)
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

// askScript makes a scripted model the model of a setup.
func (b *Bench) askScript(s *setup.Setup, c *Case) (stop func() error, err error) {
	url, stop, err := listen(c)
	if err != nil {
		return nil, err
	}
	config := b.Bundle.Content().Planner.LLM
	model, err := llm.NewModel(llm.Config{
		BaseURL: url, Model: config.Model, MaxTokens: config.MaxTokens, Secrets: b.Secrets,
		Timeout: time.Duration(config.Timeout) * time.Millisecond,
	})
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	s.Planner, s.Summarizer = model, model
	return stop, nil
}

// callsSeen returns the calls that reached the demo's servers; nil for other servers, which cannot be asked.
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
