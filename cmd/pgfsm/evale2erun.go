package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"pgfsm/eval/endtoend"
	"pgfsm/llm"
	"pgfsm/policy"
	"pgfsm/runner"
	"pgfsm/states"
)

// desk is what one agent works one case with: servers that nobody else uses, where they are the demo's, and a model.
type desk struct {
	*app
	script *endtoend.Script // nil: the model is a real one
	meter  endtoend.Meter
}

// desk makes an app of its own for one case. Close it.
func (b *bench) desk(ctx context.Context, c *endtoend.Case) (*desk, error) {
	own := *b.app
	own.servers, own.fleet, own.upstreams = slices.Clone(b.app.servers), nil, nil
	d := &desk{app: &own}
	if err := b.open(ctx, d, c); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (b *bench) open(ctx context.Context, d *desk, c *endtoend.Case) error {
	var err error
	if b.scripted {
		if d.script, err = endtoend.Listen(c); err != nil {
			return err
		}
		of := d.bundle.Content().Planner.LLM
		model, err := llm.NewModel(llm.Config{
			BaseURL: d.script.URL(), Model: of.Model, MaxTokens: of.MaxTokens, Secrets: d.secrets,
			Timeout: time.Duration(of.Timeout) * time.Millisecond,
		})
		if err != nil {
			return err
		}
		d.planner, d.summary = model, model
	}
	if b.app.demo {
		return d.start(ctx)
	}
	return d.connect()
}

func (d *desk) close() error {
	err := d.app.close()
	if d.script != nil {
		err = errors.Join(err, d.script.Close())
	}
	return err
}

// seen is what reached the demo's servers; nil where the servers are others, which cannot be asked.
func (d *desk) seen() []endtoend.Call {
	if d.fleet == nil {
		return nil
	}
	calls := []endtoend.Call{}
	for _, s := range d.fleet.Servers() {
		for _, c := range s.Calls() {
			calls = append(calls, endtoend.Call{Server: s.Name(), Tool: c.Name, Args: endtoend.ArgsDigest(c.Arguments)})
		}
	}
	return calls
}

// unmeasured is the side of a case that could not even begin.
func (b *bench) unmeasured(err error) endtoend.Side {
	return endtoend.Side{Outcome: endtoend.Failed, Reason: b.app.oneline(err), Calls: []endtoend.Call{}}
}

// naive takes a case through the agent without gates.
func (b *bench) naive(ctx context.Context, c *endtoend.Case) endtoend.Side {
	d, err := b.desk(ctx, c)
	if err != nil {
		return b.unmeasured(err)
	}
	side := endtoend.Naive(ctx, c, endtoend.World{
		Servers: d.servers, Planner: d.planner, Summarizer: d.summary,
		Timeout: time.Duration(d.bundle.Limits().RunTimeout) * time.Millisecond,
	})
	side.Reason = d.secrets.String(side.Reason)
	side.Judge(c, d.seen())
	return d.closed(side)
}

// safe takes a case through pgfsm, as pgfsm run does without a ledger.
func (b *bench) safe(ctx context.Context, c *endtoend.Case) endtoend.Side {
	d, err := b.desk(ctx, c)
	if err != nil {
		return b.unmeasured(err)
	}
	d.tracesDir = b.traces
	side := d.advance(ctx, c)
	side.Judge(c, d.seen())
	return d.closed(side)
}

// closed closes the desk. A server that does not close has no bearing on what was measured: it is said, and no more.
func (d *desk) closed(side endtoend.Side) endtoend.Side {
	if err := d.close(); err != nil && side.Reason == "" {
		side.Reason = d.oneline(err)
	}
	return side
}

// advance takes a case through pgfsm, with a clock and a meter.
func (d *desk) advance(ctx context.Context, c *endtoend.Case) endtoend.Side {
	side := endtoend.Side{Outcome: endtoend.Unended, Calls: []endtoend.Call{}}
	o := d.runnerOptions(nil)
	o.Planner, o.Summarizer = d.meter.Planner(d.planner), d.meter.Summarizer(d.summary)
	r, err := runner.New(o)
	if err != nil {
		side.Reason = d.oneline(err)
		return side
	}
	begin := time.Now()
	got, err := r.Run(ctx, runner.Request{Actor: actor(), Kind: states.KindAsk, Text: []byte(c.Request)}, nil)
	side.Micros, side.Tokens = time.Since(begin).Microseconds(), d.meter.Tokens()
	if got.Run != nil {
		side.RunID, side.Head = got.Run.ID(), got.Head
		ended(&side, got.Run, got.Outcome)
	}
	if err != nil {
		side.Outcome, side.Reason = endtoend.Unended, d.oneline(err)
	}
	return side
}

// ended says what came of a run.
func ended(side *endtoend.Side, run *states.Run, o states.Outcome) {
	facts := run.Facts()
	switch o.Type {
	case states.TypeToolResult, states.TypeSummary:
		side.Outcome, side.Summary = endtoend.Answered, o.Type == states.TypeSummary
	case states.TypeFinalAnswer:
		side.Outcome = endtoend.NeedsInfo
	case states.TypeBlocked:
		side.Outcome = endtoend.Blocked
	case states.TypePending:
		side.Outcome = endtoend.Held
	case states.TypeFailed:
		side.Outcome = endtoend.Failed
	}
	side.Gate, side.Code, side.Reason = string(o.Gate), string(o.Code), o.Reason
	if facts.Dispatched == nil {
		return
	}
	p := facts.Permitted
	side.Calls = append(side.Calls, endtoend.Call{
		Server: p.Server, Tool: p.Tool, Args: endtoend.ArgsDigest(p.Arguments), Done: run.Raw() != nil && !policy.IsError(run.Raw()),
	})
}
