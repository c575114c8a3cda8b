package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"pgfsm/deadline"
	"pgfsm/mcp/gateway"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/visible"
	"pgfsm/states"
	"pgfsm/traces"
)

// gate decides about the calls of agents: it puts the machine behind the gateway.
type gate struct {
	*app
	ledger   *openedLedger // nil: there is none
	nowhere  bool          // nothing is recorded: the operator said so
	replayer *traces.Replayer
	holds    bool // the policy may hold a call, so a call may be the repetition of one that waits
	log      *slog.Logger
	calls    sync.WaitGroup
	lapsed   atomic.Pointer[lapse] // the last record that could not be kept; nil: the last one was
}

// lapseTime is for how long a record that could not be kept counts against the gateway if no other call comes: whoever goes
// by that sends none.
const lapseTime = 10 * time.Second

// A lapse is a record that could not be kept.
type lapse struct {
	at  time.Time
	why error
}

// lapses notes that a record could not be kept, unless it is only that nobody waits for it any more.
func (g *gate) lapses(ctx context.Context, why error) {
	if ctx.Err() == nil {
		g.lapsed.Store(&lapse{time.Now(), why})
	}
}

// ready says why calls are refused for want of a record.
func (g *gate) ready() error {
	l := g.lapsed.Load()
	if l == nil || time.Since(l.at) >= lapseTime {
		return nil
	}
	return fmt.Errorf("calls are refused, for they cannot be recorded: %w", l.why)
}

func newGate(a *app, l *openedLedger, log *slog.Logger) *gate {
	return &gate{
		app: a, ledger: l, nowhere: a.loaded.Serve.Record == settingsNone && l == nil, log: log,
		replayer: traces.NewReplayer(a.machine, nil), holds: l != nil && a.bundle.Content().Policy != nil,
	}
}

// Tools are the tools of a listing that agents may see.
func (g *gate) Tools(k *upstream.Kept) []gateway.Tool { return g.view(k).tools }

// Call takes an agent's call through the machine, or tells what became of the same call if that was held.
func (g *gate) Call(ctx context.Context, ask *gateway.Ask) gateway.Answer {
	g.calls.Add(1)
	defer g.calls.Done()
	request := states.Request{Actor: ask.From.Name, At: now(), Kind: states.KindAgent, Text: agentPlan(ask)}
	if ask.Extra != nil {
		round, err := canonical.JSON(ask.Extra)
		if err != nil {
			return gateway.Answer{Error: wire.ErrorObject(wire.InvalidParams, "inputResponses and requestState are not strict JSON", nil)}
		}
		request.Round = round
	}
	if g.holds && request.Round == nil {
		if answer, found := g.attach(ctx, ask, request.Text); found {
			return answer
		}
	}
	id, err := uuid.NewV7()
	if err != nil {
		return g.unable(ctx, ask, "", err)
	}
	return g.run(ctx, ask, states.NewRun(id.String(), request, g.bundle))
}

// wait returns when every call is recorded as it ended, also one whose client was cut off.
func (g *gate) wait() { g.calls.Wait() }

// agentPlan is the call as a plan: what the agent sent, spliced.
func agentPlan(ask *gateway.Ask) []byte {
	b := make([]byte, 0, len(ask.Arguments)+len(ask.Server)+len(ask.Tool)+64)
	b = append(append(b, `{"args":`...), ask.Arguments...)
	b = wire.AppendQuote(append(b, `,"server":`...), ask.Server)
	b = wire.AppendQuote(append(b, `,"tool":`...), ask.Tool)
	return append(b, `,"type":"call_tool"}`...)
}

// run takes a new run through the machine, within its time.
func (g *gate) run(ctx context.Context, ask *gateway.Ask, run *states.Run) gateway.Answer {
	within, cancel := deadline.Within(ctx, time.Duration(g.bundle.Limits().RunTimeout)*time.Millisecond)
	defer cancel()
	rec, err := g.begin(run)
	if err != nil {
		return g.unable(ctx, ask, run.ID(), err)
	}
	ports := &linkPorts{app: g.app, ask: ask}
	live := &states.Live{Watcher: ports, Tools: ports, Caller: ports}
	outcome, err := g.machine.Advance(within, run, rec.Door(live), rec)
	if err != nil {
		rec.Abandon()
		return g.unrecordedCall(ctx, ask, run, err)
	}
	if outcome.Type == states.TypePending && g.ledger != nil {
		g.lapsed.Store(nil)
		return g.held(ctx, ask, waitingRun(run), true)
	}
	if _, err := rec.Finish(outcome); err != nil {
		rec.Abandon()
		return g.unrecordedCall(ctx, ask, run, err)
	}
	g.lapsed.Store(nil)
	g.tell(ask, run.ID(), outcome)
	if f := ports.failed; f != nil && outcome.Type == states.TypeFailed {
		return gateway.Answer{Error: wire.ErrorObject(f.Code, g.secrets.String(f.Message), g.mask(f.Data))}
	}
	return g.answer(run, outcome)
}

// answer is what an ended run says to whoever asked.
func (g *gate) answer(run *states.Run, o states.Outcome) gateway.Answer {
	if o.Effect == states.EffectDone && run.Raw() != nil {
		return gateway.Answer{Result: run.Raw(), Native: true, RunID: run.ID()}
	}
	if o.Code == policy.CodeToolUnknown && !g.opaque() {
		return gateway.Answer{Error: wire.ErrorObject(wire.InvalidParams, "Unknown tool: "+o.Reason, nil)}
	}
	return g.refuse(refusalOf(run, o), o.Type == states.TypeBlocked)
}

// unrecordedCall answers for a run whose record cannot be kept: it stopped where it was.
func (g *gate) unrecordedCall(ctx context.Context, ask *gateway.Ask, run *states.Run, cause error) gateway.Answer {
	g.lapses(ctx, cause)
	o := run.Outcome()
	o.Type, o.Code, o.Gate, o.Reason = states.TypeFailed, policy.CodeRecordFailed, policy.GateRun, cause.Error()
	g.tell(ask, run.ID(), o)
	return g.refuse(refusalOf(run, o), false)
}

// unable answers for a call that came to no run.
func (g *gate) unable(ctx context.Context, ask *gateway.Ask, id string, cause error) gateway.Answer {
	g.lapses(ctx, cause)
	o := states.Outcome{Type: states.TypeFailed, Code: policy.CodeRecordFailed, Gate: policy.GateRun, Effect: states.NotSent, Reason: cause.Error()}
	g.tell(ask, id, o)
	return g.refuse(gateway.Decision{Code: string(o.Code), Reason: o.Reason, RunID: id, Effect: string(o.Effect), Retry: retryLater}, false)
}

// tell says in the log how a call ended. What went well is for who wants to see everything.
func (g *gate) tell(ask *gateway.Ask, id string, o states.Outcome) {
	level := slog.LevelDebug
	switch o.Type {
	case states.TypeToolResult:
	case states.TypeFailed:
		level = slog.LevelWarn
	default:
		level = slog.LevelInfo
	}
	if !g.log.Enabled(context.Background(), level) {
		return
	}
	g.log.Log(context.Background(), level, "call", "run", id, "actor", ask.From.Name, "server", ask.Server, "tool", visible.Text(ask.Tool),
		"state", o.State, "code", string(o.Code), "effect", string(o.Effect), "reason", visible.Text(o.Reason))
}
