package endtoend

import (
	"context"
	"errors"
	"strings"
	"time"

	"pgfsm/internal/runner"
	"pgfsm/internal/runner/setup"
	"pgfsm/internal/visible"
	"pgfsm/llm"
	"pgfsm/policy"
	"pgfsm/states"
)

// A Bench is the configuration that both agents use. Each agent gets sessions, servers of the demo and a scripted model of its own for
// each case.
type Bench struct {
	*setup.Setup
	Scripted bool   // no model is configured: a [Script] answers
	Actor    string // of pgfsm's runs
	traces   string
}

// OpenBench opens a configuration, with a model that is asked about every request: routes are ignored.
func OpenBench(o setup.Options, actor string) (*Bench, error) {
	loaded, from, err := setup.Load(o)
	if err != nil {
		return nil, err
	}
	b := &Bench{Scripted: loaded.Content.Planner.LLM == nil, Actor: actor}
	if !b.Scripted {
		loaded.Content.Planner.Mode = policy.PlannerLLM
	}
	if b.Setup, err = setup.Open(o, loaded, from); err != nil || !b.Scripted {
		return b, err
	}
	content := *b.Bundle.Content()
	content.Planner.Mode = policy.PlannerLLM
	content.Planner.LLM = &policy.LLM{ // the same for all cases, although each has another port
		BaseURL: "embedded:" + ScriptedModel, Model: ScriptedModel,
		Timeout: policy.DefaultLLMTimeout, MaxTokens: policy.DefaultMaxTokens, Prompt: llm.PromptVersion,
	}
	b.Bundle, err = policy.Compile(content)
	return b, err
}

// Header says what is evaluated.
func (b *Bench) Header(version string, cases []Case) (Header, error) {
	machine, err := states.NewMachine()
	if err != nil {
		return Header{}, err
	}
	model := b.Bundle.Content().Planner.LLM
	return Header{
		Format: Format, Version: version, Model: model.Model, Scripted: b.Scripted, Prompt: model.Prompt,
		Suite: DigestOf(cases), Bundle: b.Bundle.Digest(), Machine: machine.Digest(), Observed: b.IsDemo(),
	}, nil
}

// Measure takes the cases through both agents and writes the files of the book. done is called for each case of the result. The book is
// closed; runs are those that were completed.
func (b *Bench) Measure(ctx context.Context, book *Book, cases []Case, jobs int, done func()) (m Metrics, runs []Run, err error) {
	b.traces = book.TracesDir()
	runs, err = book.Evaluate(ctx, cases, jobs, b.safe, b.naive, done)
	if err == nil {
		m = book.Header.Sum(time.Now().UTC().Format(time.RFC3339), cases, runs)
		err = book.Finish(m)
	}
	return m, runs, errors.Join(err, book.Close())
}

// safe takes a case through pgfsm, as pgfsm run does without a ledger.
func (b *Bench) safe(ctx context.Context, c *Case) Side {
	return b.with(ctx, c, func(s *setup.Setup) Side {
		var meter Meter
		o := s.Runner()
		o.TracesDir, o.Planner, o.Summarizer = b.traces, meter.Planner(s.Planner), meter.Summarizer(s.Summarizer)
		r, err := runner.New(o)
		if err != nil {
			return Side{Outcome: Unended, Reason: b.oneLine(err), Calls: []Call{}}
		}
		begin := time.Now()
		got, err := r.Run(ctx, runner.Request{Actor: b.Actor, Kind: states.KindAsk, Text: []byte(c.Request)}, nil)
		side := sideOf(got)
		side.Micros, side.Tokens = time.Since(begin).Microseconds(), meter.Tokens()
		if err != nil {
			side.Outcome, side.Reason = Unended, b.oneLine(err)
		}
		return side
	})
}

// naive takes a case through the agent without gates.
func (b *Bench) naive(ctx context.Context, c *Case) Side {
	return b.with(ctx, c, func(s *setup.Setup) Side { return naiveSide(ctx, c, s) })
}

// with runs one agent with a setup of its own, and judges the result. A server that cannot be closed does not change the result.
func (b *Bench) with(ctx context.Context, c *Case, run func(*setup.Setup) Side) Side {
	s, err := b.Copy()
	var script *Script
	if err == nil && b.Scripted {
		script, err = Listen(c)
	}
	if err == nil && b.Scripted {
		err = b.ask(s, script)
	}
	if err == nil {
		err = s.Start(ctx)
	}
	side := Side{Outcome: Failed, Calls: []Call{}}
	if err == nil {
		side = run(s)
		side.Reason = b.Secrets.String(side.Reason)
		side.Judge(c, seen(s))
	}
	err = errors.Join(err, s.Close())
	if script != nil {
		err = errors.Join(err, script.Close())
	}
	if err != nil && side.Reason == "" {
		side.Reason = b.oneLine(err)
	}
	return side
}

// oneLine writes an error in one line, without secrets.
func (b *Bench) oneLine(err error) string {
	return strings.TrimSpace(visible.Text(b.Secrets.String(err.Error())))
}

// ask makes a script the model of a setup.
func (b *Bench) ask(s *setup.Setup, script *Script) error {
	of := b.Bundle.Content().Planner.LLM
	model, err := llm.NewModel(llm.Config{
		BaseURL: script.URL(), Model: of.Model, MaxTokens: of.MaxTokens, Secrets: b.Secrets,
		Timeout: time.Duration(of.Timeout) * time.Millisecond,
	})
	s.Planner, s.Summarizer = model, model
	return err
}

// seen returns the calls that reached the demo's servers; nil for other servers, which cannot be asked.
func seen(s *setup.Setup) []Call {
	if s.Fleet == nil {
		return nil
	}
	calls := []Call{}
	for _, server := range s.Fleet.Servers() {
		for _, c := range server.Calls() {
			calls = append(calls, Call{Server: server.Name(), Tool: c.Name, Args: ArgsDigest(c.Arguments)})
		}
	}
	return calls
}

// outcomes converts the types of a run's outcome.
var outcomes = map[string]string{
	states.TypeToolResult: Answered, states.TypeSummary: Answered, states.TypeFinalAnswer: NeedsInfo, states.TypeBlocked: Blocked,
	states.TypePending: Held, states.TypeFailed: Failed,
}

// sideOf returns how a run of pgfsm ended.
func sideOf(got runner.Result) Side {
	side := Side{Outcome: Unended, Calls: []Call{}}
	if got.Run == nil {
		return side
	}
	o, facts := got.Outcome, got.Run.Facts()
	if known, ok := outcomes[o.Type]; ok {
		side.Outcome = known
	}
	side.RunID, side.Head, side.Summary = got.Run.ID(), got.Head, o.Type == states.TypeSummary
	side.Gate, side.Code, side.Reason = string(o.Gate), string(o.Code), o.Reason
	if facts.Dispatched != nil {
		raw, p := got.Run.Raw(), facts.Permitted
		side.Calls = append(side.Calls, Call{
			Server: p.Server, Tool: p.Tool, Args: ArgsDigest(p.Arguments), Done: raw != nil && !policy.IsError(raw),
		})
	}
	return side
}
