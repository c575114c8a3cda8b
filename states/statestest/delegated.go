package statestest

import (
	"context"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
)

// hook is a request of a coding agent's hook.
func hook(plan string) states.Request {
	q := agent(plan, "")
	q.Kind, q.Session = states.KindHook, &states.Session{Call: "call-1", Client: "claude", ID: "session-1", Prompt: 7}
	return q
}

// reports answers the wait for a report; it asks no world.
type reports struct {
	states.EffectHandler
	report states.Event
}

func (h reports) Do(ctx context.Context, c states.Command) (states.Event, error) {
	if _, waits := c.(*states.AwaitReport); waits {
		return (&states.Live{Report: h.report}).Do(ctx, c)
	}
	return h.EffectHandler.Do(ctx, c)
}

// delegated are calls that the client makes itself.
func delegated() []Scenario {
	digest := func(kind, text string) canonical.Digest { return canonical.Sum(kind, []byte(text)) }
	reported := func(ev states.Event, changes ...func(*Scenario)) func(*Scenario) {
		return func(s *Scenario) {
			s.Request = hook(GoodPlan)
			s.Handler = func(h states.EffectHandler) states.EffectHandler { return reports{h, ev} }
			for _, change := range changes {
				change(s)
			}
		}
	}
	ran := &states.CallReported{Arguments: digest("arguments", goodArguments), At: "2026-11-21T09:00:01.000Z", Bytes: 2, Result: digest("result", "{}")}
	lapsed := &states.ReportLapsed{At: "2026-11-21T09:10:01.000Z", Reason: "No report came."}
	return []Scenario{
		variant("hook-not-reported-yet", states.Delegated, "", 0, func(s *Scenario) { s.Request = hook(GoodPlan) }),
		variant("hook-reported", states.Reported, "", 0, reported(ran)),
		variant("hook-reported-without-digests", states.Reported, policy.CodeReportedFailed, 0, reported(&states.CallReported{At: ran.At, Failed: true})),
		variant("hook-rewritten", states.Reported, policy.CodeRewritten, 0,
			reported(&states.CallReported{Arguments: digest("arguments", "{}"), At: ran.At})),
		variant("hook-unreported", states.Unreported, policy.CodeUnreported, 0, reported(lapsed)),
		variant("hook-report-unreadable", states.Unreported, policy.CodeUnreported, 0,
			reported(&states.CallReported{Arguments: "sha256:0", At: ran.At})),
		variant("evaluation-reported", states.Reported, "", 0,
			reported(ran, func(s *Scenario) { s.Request.Kind, s.Request.Session = states.KindEvaluation, nil })),
		variant("hook-not-allowed", states.Blocked, policy.CodeToolNotAllowed, 0, func(s *Scenario) { s.Request = hook(deletePlan) }),
		variant("hook-held", states.Pending, policy.CodeApprovalRequired, 0, func(s *Scenario) {
			s.Request, s.Decider = hook(GoodPlan), HoldAll{Until: "2026-11-22T09:00:00.000Z"}
		}),
		variant("hook-held-approved-and-reported", states.Reported, "", 0, reported(ran, func(s *Scenario) {
			s.Decider = HoldAll{Until: "2026-11-22T09:00:00.000Z"}
			decided := Votes(Vote(policy.VoteApprove, "bob", "2026-11-21T10:00:00.000Z"))
			decided.Call = "call-2"
			s.World.Decided = decided
		})),
	}
}
