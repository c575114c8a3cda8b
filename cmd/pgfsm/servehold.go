package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/config"
	"pgfsm/mcp/gateway"
	"pgfsm/mcp/upstream"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

const (
	// askAgain is when an agent may look again whether people have decided, in seconds: they take minutes.
	askAgain = 15
	// sayEvery is how often a call that is held open says that it still waits: clients give up on silence.
	sayEvery = 5 * time.Second
)

// heldCall is a call that waits for people, as far as who asked is told of it.
type heldCall struct{ id, task, policy, reason, since, updated string }

func waitingRun(run *states.Run) heldCall {
	f := run.Facts()
	at := run.Request().At
	return heldCall{
		id: run.ID(), task: taskID(run.ID(), f.Held.Binding), policy: f.Assessed.Policy, reason: f.Held.Reason, since: at, updated: at,
	}
}

func waitingRequest(q *ledger.Request) heldCall {
	return heldCall{
		id: q.RunID, task: taskID(q.RunID, q.Binding), policy: q.Policy, reason: q.Reason, since: q.At, updated: q.Updated,
	}
}

// held answers for a call that waits for people: with a task for who takes one, else held open for a while, else with the
// word that it waits. The run is in the ledger already, and is nobody's. Only who asks first is shown where to decide: a client
// that repeats its call does so every few seconds.
func (g *gate) held(ctx context.Context, ask *gateway.Ask, w heldCall, first bool) gateway.Answer {
	level := slog.LevelInfo
	if !first { // an agent may ask again as often as it likes
		level = slog.LevelDebug
	}
	g.log.Log(ctx, level, "held", "run", w.id, "actor", ask.From.Name, "server", ask.Server, "policy", w.policy)
	if ask.Tasks {
		return gateway.Answer{Result: g.working(w).created()}
	}
	if url := g.loaded.Serve.DecideAt(w.id); url != "" && first && ask.Elicit {
		ask.Show(url, g.waits(w), w.id)
		if ask.Returns { // it is held open then
			return g.pending(ctx, ask, w)
		}
	}
	if g.loaded.Serve.Hold > 0 {
		if answer, over := g.await(ctx, ask, w); over {
			return answer
		}
	}
	return g.pending(ctx, ask, w)
}

// waits says that a call waits, and as far as agents are told, why.
func (g *gate) waits(w heldCall) string {
	if g.opaque() {
		return "A person has to decide about this call."
	}
	return "A person has to decide about this call: " + w.reason
}

// await holds the call open until the run has ended, at most for approvals.hold until people have decided.
func (g *gate) await(ctx context.Context, ask *gateway.Ask, w heldCall) (answer gateway.Answer, over bool) {
	hold := time.Duration(g.loaded.Serve.Hold) * time.Millisecond
	within, cancel := context.WithTimeout(ctx, hold+time.Duration(g.bundle.Limits().RunTimeout)*time.Millisecond+g.callTime(ask.Server))
	defer cancel()
	begun, said := time.Now(), time.Time{}
	err := ledger.Poll(within, ledger.PollInterval, func() (bool, error) {
		q, err := g.request(within, w.id)
		if err != nil || q.Ended != "" {
			return true, err
		}
		waited := time.Since(begun)
		if q.Status == ledger.Pending && waited >= hold {
			return true, errUndecided
		}
		if time.Since(said) >= sayEvery {
			said = time.Now()
			ask.Say(waited.Seconds(), hold.Seconds(), g.waits(w))
		}
		return false, nil
	})
	if err != nil { // nothing is lost: it waits on
		return answer, false
	}
	if answer, first := g.deliver(ctx, ask, w.id, ledger.ByReply); first {
		return answer, true
	}
	return g.refuse(gateway.Decision{
		Code: "outcome_delivered", Effect: string(states.EffectUnknown), Policy: w.policy, Retry: retryNo, RunID: w.id,
		Reason: "What became of this call was told to another request for it.",
	}, false), true
}

// callTime is how long a call of a server may take in total.
func (a *app) callTime(server string) time.Duration {
	for _, s := range a.servers {
		if s.Name == server {
			return s.TimeoutTotal
		}
	}
	return upstream.DefaultTimeoutTotal
}

var errUndecided = errors.New("nobody has decided within the time that the call is held open")

// pending is the answer that the call waits.
func (g *gate) pending(ctx context.Context, ask *gateway.Ask, w heldCall) gateway.Answer {
	decide := g.loaded.Serve.DecideAt(w.id)
	if decide == "" {
		decide = "pgfsm approvals show " + w.id
	}
	d := gateway.Decision{
		After: askAgain, Code: string(policy.CodeApprovalRequired), Decide: decide, Effect: string(states.NotSent), Policy: w.policy,
		Reason: fmt.Sprintf("%s It waits for a person as %s. Repeat the identical call later to learn what became of it.", w.reason, w.id),
		Retry:  retrySame, RunID: w.id,
	}
	if g.opaque() {
		d.Policy, d.Decide, d.Reason = "", "", "A person has to decide. Repeat the identical call later."
	}
	// Clients refuse a result without structured content of a tool that declares an output type, unless it is an error.
	failed := g.loaded.Serve.OnPending == config.PendingError || g.declaresOutput(ctx, ask)
	return gateway.Answer{Result: d.Result(failed)}
}

// declaresOutput reports whether the tool says of which type its results are, or that cannot be told.
func (g *gate) declaresOutput(ctx context.Context, ask *gateway.Ask) bool {
	link, err := ask.Link(ctx)
	if err != nil {
		return true
	}
	kept, err := link.Listing(ctx, g.maxAge())
	if err != nil {
		return true
	}
	for _, t := range g.view(kept).sent {
		if t.Name != ask.Tool {
			continue
		}
		var typed struct {
			Output jsontext.Value `json:"outputSchema"`
		}
		return json.Unmarshal(t.Raw, &typed) != nil || typed.Output != nil
	}
	return true
}

// maxAge is how old a listing may be that a call is judged by.
func (a *app) maxAge() time.Duration {
	return time.Duration(a.loaded.Serve.CatalogMaxAge) * time.Millisecond
}

// attach answers a call that repeats one which was held, and whose outcome its caller was not told yet.
func (g *gate) attach(ctx context.Context, ask *gateway.Ask, text []byte) (answer gateway.Answer, found bool) {
	plan, v := policy.ReadCall(text, g.bundle.Limits())
	if !v.Allows() {
		return answer, false // a run will say so
	}
	q, err := g.ledger.Attach(ctx, ledger.Look{
		Actor: ask.From.Name, Server: ask.Server, Tool: ask.Tool, Arguments: states.ArgumentsDigest(plan.Args),
	})
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return answer, false
	case err != nil:
		return g.unable(ctx, ask, "", err), true
	case q.Ended == "":
		return g.held(ctx, ask, waitingRequest(&q), false), true
	}
	return g.deliver(ctx, ask, q.RunID, ledger.ByRepeat)
}

// deliver answers with what became of a held call that has ended, if nobody was told yet.
func (g *gate) deliver(ctx context.Context, ask *gateway.Ask, id, how string) (answer gateway.Answer, first bool) {
	got, err := g.ledger.Ended(ctx, g.replayer, id)
	if err == nil {
		first, err = g.ledger.Deliver(ctx, id, how)
	}
	switch {
	case err != nil:
		return g.unable(ctx, ask, id, err), true
	case !first:
		return answer, false
	}
	return g.answer(got.Run, got.Outcome), true
}

// request is how a run stands.
func (g *gate) request(ctx context.Context, id string) (q ledger.Request, err error) {
	err = g.ledger.View(ctx, func(r ledger.Reader) error {
		q, err = r.Request(id)
		return err
	})
	return q, err
}
