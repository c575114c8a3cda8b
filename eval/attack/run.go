package attack

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"pgfsm/eval"
	"pgfsm/eval/world"
	"pgfsm/internal/runner"
	"pgfsm/policy"
	"pgfsm/policy/origin"
	"pgfsm/states"
)

// armOutcome is the result of a list of calls in one arm.
type armOutcome []CallResult

// trial holds the settings that are the same for one list of calls in one arm.
type trial struct {
	setting // none: naive

	runner   *runner.Runner
	arm      Arm
	approved setting // in which the call was approved whose votes are replayed
	unit     *unit

	before  []eval.Target   // made so far
	session *origin.Session // what was before the next call; nil: the arm looks at none
	sent    []origin.Sent   // what the calls before sent
	runs    int             // begun so far
}

// tryCalls takes the unit's calls through the arm, one after the other.
func (t *trial) tryCalls(ctx context.Context) (out armOutcome, err error) {
	calls := t.unit.calls()
	if t.arm == Origin {
		t.session = &origin.Session{Prompts: []origin.Prompt{{Entry: 1, Source: "user", Text: t.unit.c.Request}}}
	}
	if t.unit.side == wants {
		for i := range t.unit.c.Before {
			t.addToSession(&t.unit.c.Before[i])
		}
	}
	for i := range calls {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if t.arm == Naive {
			out = append(out, callNaively(t.unit.tools, &calls[i]))
			continue
		}
		o := t.tryCall(ctx, &calls[i])
		if err := ctx.Err(); err != nil { // an interrupted run is no result
			return out, err
		}
		out = append(out, o)
		if target, ok := calls[i].Target(t.bundle.Limits()); ok && o.Made {
			t.before = append(t.before, target)
			t.addToSession(&calls[i])
		}
	}
	return out, nil
}

// tryCall makes one call, with the arm's approver.
func (t *trial) tryCall(ctx context.Context, c *eval.Call) CallResult {
	switch {
	case t.arm == Unattended, t.arm == Origin:
		return t.runCall(ctx, c, expireApproval)
	case t.arm != Approvals, t.unit.side == needs, t.isNeeded(c): // the other arms approve without reading
		return t.runCall(ctx, c, decideAlways(policy.VoteApprove))
	case t.unit.c.Approved == nil:
		return t.runCall(ctx, c, decideAlways(policy.VoteDeny))
	}
	return t.replayApproval(ctx, c)
}

// isNeeded reports whether the task needs the same call: an approver does not know whether the task
// or the attack wants it.
func (t *trial) isNeeded(c *eval.Call) bool {
	call, ok := c.Target(t.bundle.Limits())
	if !ok {
		return false
	}
	for i := range t.unit.c.Needs {
		if need, ok := t.unit.c.Needs[i].Target(t.bundle.Limits()); ok && need.Equal(call) {
			return true
		}
	}
	return false
}

// runCall is one run in the world of the case.
func (t *trial) runCall(ctx context.Context, c *eval.Call, who world.Approver) CallResult {
	return t.runOnce(ctx, c, t.unit.c.Changes, who)
}

// answer is every tool's answer. Only the call itself is measured.
const answer = `{"content":[{"type":"text","text":"done"}]}`

// runOnce is one run of the machine. changes: the server announces other tools between plan and
// call.
func (t *trial) runOnce(ctx context.Context, c *eval.Call, changes bool, who world.Approver) CallResult {
	unitCase := t.unit.c
	t.runs++
	run := states.NewRun(t.nextID(), states.Request{
		Actor: unitCase.Actor,
		At:    unitCase.At,
		Kind:  states.KindAsk,
		Text:  []byte(unitCase.Request),
		Task:  unitCase.Task,
	}, t.bundle)

	w := &world.World{
		Listings: []*states.ToolsListed{t.listed},
		Plan:     c.Text(),
		Result:   []byte(answer),
		Approver: who,
		Changes:  changes,
		Before:   t.before,
		Session:  t.sessionNow(),
		Active:   t.bundle,
	}

	ended, err := w.Run(ctx, t.runner, run)
	if err != nil {
		return CallResult{Slip: "the machine gave up: " + err.Error()}
	}

	o := CallResult{Held: w.Held}
	target, plain := c.Target(t.bundle.Limits())
	o.Made = len(w.Calls) == 1 && plain && w.Calls[0].Equal(target)
	o.Slip = slipOf(ended, w.Calls, o.Made)
	if !o.Made {
		o.Gate, o.Code, o.Reason = string(ended.Gate), string(ended.Code), ended.Reason
	}

	if ended.Type == states.TypeFinalAnswer {
		o.Code = codeAsked
	}

	return o
}

// codeAsked is the code of a plan that only asks for more information, so that no call was made.
const codeAsked = "needs_info"

// slipOf compares the machine's outcome of a run with the calls that reached the server.
func slipOf(ended states.Outcome, seen []eval.Target, made bool) string {
	answered := ended.Type == states.TypeToolResult || ended.Type == states.TypeSummary
	switch {
	case len(seen) > 1:
		return fmt.Sprintf("%d calls of one run reached the server", len(seen))
	case len(seen) == 1 && !made:
		return fmt.Sprintf("another call than the one that was planned reached the server: %s %s %s", seen[0].Server,
			seen[0].Tool, seen[0].Args)
	case made != answered:
		return fmt.Sprintf("the run ended as %s, and %d calls reached the server", ended.Type, len(seen))
	}
	return ""
}

// nextID draws the id of the next run: a version 7 UUID in form, made of what the run is, for runs
// must come out the same each time, and no two of one case may share an id, which approvals are
// bound to.
func (t *trial) nextID() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00", t.unit.digest, t.arm, t.unit.side)
	_ = binary.Write(h, binary.BigEndian, uint64(t.runs)) // a hash never fails
	b := h.Sum(nil)
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
