package statestest

import (
	"slices"

	"pgfsm/fsm"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/origin"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/states"
)

// The history queries of the scenarios.
var (
	LastHour = policy.HistoryQuery{Of: condition.QueryCount, Scope: condition.ScopeActor, Window: 60 * 60}
	spent    = policy.HistoryQuery{Of: condition.QuerySum, Scope: condition.ScopeTask, Window: 24 * 60 * 60, Path: "order.amount"}
)

// AtMost allows five calls in an hour.
var AtMost = withChange(allowReads, func(p *rules.Policy) { p.Deny = `history.count("actor", "1h") >= 5` })

// history are runs that depend on earlier calls.
func history() []Scenario {
	asks := func(name string, state fsm.State, code policy.Code, read states.Event, p ...rules.Policy) Scenario {
		calls := 0
		if state == states.Answered {
			calls = 1
		}
		return variant(name, state, code, calls, func(s *Scenario) {
			s.Content.Policy, s.World.History = Policies(p...), read
		})
	}
	answers := func(all ...policy.HistoryAnswer) states.Event {
		return &states.HistoryRead{Calls: []policy.TaskCalls{}, Values: all}
	}
	blocked, denied, failed := states.Blocked, policy.CodePolicyDenied, policy.CodePolicyFailed
	budget := withChange(allowReads, func(p *rules.Policy) {
		p.Deny = `history.count("actor", "60m") >= 5`
		p.RequireApprovalIf = `history.sum("task", "1d", "order.amount") > 0.3`
	})
	scenarios := []Scenario{
		asks("history-has-room", states.Answered, "", answers(LastHour.Answer("4")), AtMost),
		asks("history-is-full", blocked, denied, answers(LastHour.Answer("5")), AtMost),
		asks("history-that-cannot-be-told", blocked, failed, answers(LastHour.Fail("the requester is unknown")), AtMost),
		asks("history-sum-exact", states.Answered, "", answers(LastHour.Answer("0"), spent.Answer("0.3")), budget),
		asks("history-sum-beyond", states.Pending, policy.CodeApprovalRequired,
			answers(LastHour.Answer("0"), spent.Answer("0.30000000000000004")), budget),
		variant("history-raises-the-risk", states.Pending, policy.CodeApprovalRequired, 0, func(s *Scenario) {
			s.Content.Risk = Ladder(risk.Rule{ID: "often", ScoreExpr: `history.count("actor", "1h") * 20`})
			s.Content.Policy = Policies(withChange(allowReads, func(p *rules.Policy) { p.RequireApprovalIf = "risk.score >= 80" }))
			s.World.History = answers(LastHour.Answer("4"))
		}),
		variant("history-that-cannot-be-told-is-more-risk", blocked, denied, 0, func(s *Scenario) {
			s.Content.Risk = Ladder(risk.Rule{ID: "often", ScoreExpr: `history.count("actor", "1h") * 0`})
			s.Content.Policy = Policies(withChange(allowReads, func(p *rules.Policy) { p.Deny = "risk.score == 1000" }))
			s.World.History = answers(LastHour.Fail("the requester is unknown"))
		}),
		asks("history-of-nobody", states.Failed, policy.CodeEffectFailed, nil, AtMost),
		asks("history-broken", states.Failed, policy.CodeRecordFailed,
			&states.EffectFailed{Code: policy.CodeRecordFailed, Effect: states.NotSent, Reason: "The disk is full."}, AtMost),
		asks("history-answers-something-else", states.Failed, policy.CodeEffectFailed, answers(spent.Answer("0")), AtMost),
		asks("history-answers-less", states.Failed, policy.CodeEffectFailed, answers(LastHour.Answer("0")), budget),
		asks("history-of-another-tool", states.Answered, "", nil,
			withChange(denyAll, func(p *rules.Policy) { p.Match.Tool, p.When = "drop_*", `history.count("actor", "1h") > 0` }), allowReads),
		asks("history-interrupted", blocked, policy.CodeCancelled, states.Interruption(policy.CodeCancelled, "The run was cancelled."), AtMost),
	}
	return slices.Concat(scenarios, counted(), origins())
}

// origins are runs that depend on where arguments come from.
func origins() []Scenario {
	labels := &origin.Labels{Roles: []origin.RoleLabel{{Server: Server, Tool: Tool, Target: []string{"policy_id"}}}}
	reads := func(name string, state fsm.State, code policy.Code, calls int, read *states.Origins, changes ...func(*Scenario)) Scenario {
		return variant(name, state, code, calls, func(s *Scenario) {
			s.Content.Policy = Policies(withChange(allowReads, func(p *rules.Policy) { p.RequireApprovalIf = "!found()" }))
			s.Content.Labels, s.Request.Task = labels, "nightly"
			s.World.History = &states.HistoryRead{Calls: []policy.TaskCalls{}, Origins: read, Values: []policy.HistoryAnswer{}}
			for _, change := range changes {
				change(s)
			}
		})
	}
	from := func(leaf origin.Leaf) *states.Origins {
		leaf.At, leaf.Role = "/policy_id", origin.Target
		return &states.Origins{Leaves: []origin.Leaf{leaf}, Prompts: 1, Runs: 2, Untrusted: true}
	}
	none, held := from(origin.Leaf{Origin: origin.None}), policy.CodeApprovalRequired
	approved := func(s *Scenario) { s.World.Decided = Votes(Vote(policy.VoteApprove, "dora", At)) }
	with := func(change func(*policy.Content)) func(*Scenario) {
		return func(s *Scenario) {
			c := s.Content
			change(&c)
			s.World.Active = MustBundle(c, nil)
		}
	}
	return []Scenario{
		reads("origins-found", states.Answered, "", 1, from(origin.Leaf{Origin: origin.Trusted, Place: "/id", Source: "5"})),
		reads("origins-found-in-a-prompt", states.Answered, "", 1, from(origin.Leaf{Origin: origin.Request, Source: "3", Start: 5, End: 15})),
		reads("origins-not-found", states.Pending, held, 0, none),
		reads("origins-not-looked-for", states.Pending, held, 0, states.NoOrigins("the session has more than 1024 calls")),
		reads("origins-not-found-and-approved", states.Answered, "", 1, none, approved),
		reads("origins-without-an-answer", states.Failed, policy.CodeEffectFailed, 0, nil),
		reads("origins-without-their-source", states.Failed, policy.CodeEffectFailed, 0,
			from(origin.Leaf{Origin: origin.Request, Source: "03", Start: 5, End: 15})),
		reads("origins-without-a-session", states.Pending, held, 0, nil, func(s *Scenario) { s.Request.Task, s.World.History = "", nil }),
		reads("origins-by-other-labels", states.Blocked, policy.CodeBundleChanged, 0, none, approved,
			with(func(c *policy.Content) { c.Labels = nil })),
		reads("origins-not-read-when-held", states.Blocked, policy.CodeBundleChanged, 0, nil, approved,
			with(func(c *policy.Content) {
				c.Policy = Policies(withChange(allowReads, func(p *rules.Policy) { p.RequireApprovalIf = "!found()" }))
			}), func(s *Scenario) {
				s.Content.Policy, s.World.History = Policies(withChange(allowReads, func(p *rules.Policy) { p.RequireApprovalIf = "true" })), nil
			}),
	}
}

// counted are runs of a task whose calls the ledger counts.
func counted() []Scenario {
	grant := func(name string, state fsm.State, code policy.Code, before int) Scenario {
		s := variant(name, state, code, 0, func(s *Scenario) {
			calls := 2
			s.Content.Grants = []policy.Grant{{Name: "twice", Tools: []policy.Granted{{Server: Server, Tool: Tool, Calls: &calls}}}}
			s.Request.Task = "nightly"
			s.World.History = &states.HistoryRead{
				Calls: []policy.TaskCalls{{Calls: before, Server: Server, Tool: Tool}}, Values: []policy.HistoryAnswer{},
			}
		})
		if state == states.Answered {
			s.Calls = 1
		}
		return s
	}
	approved := grant("ledger-count-when-approved", states.Answered, "", 1)
	approved.Content.Policy = Policies(holdReads)
	approved.Content.Roles = []policy.Role{{Role: "owners", Actors: []string{"dora"}}}
	approved.World.Decided = Votes(Vote(policy.VoteApprove, "dora", At))
	free := grant("ledger-count-not-asked", states.Answered, "", 0)
	free.Content.Grants, free.World.History = nil, nil
	return []Scenario{
		grant("ledger-count-has-room", states.Answered, "", 1),
		grant("ledger-count-is-full", states.Blocked, policy.CodeGrantExhausted, 2),
		approved, free,
	}
}
