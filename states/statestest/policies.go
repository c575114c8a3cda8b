package statestest

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/fsm"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/states"
)

// Ladder is a risk model with the default modes that begins in safe.
func Ladder(all ...risk.Rule) *risk.Content {
	return &risk.Content{Modes: risk.DefaultModes(), Initial: "safe", Rules: all}
}

// Policies are policies, in order.
func Policies(all ...rules.Policy) *rules.Content { return &rules.Content{Policies: all} }

// Rules and policies of the scenarios. The world's plan asks for policy-002 and gives no other argument.
var (
	readFirst   = readOf("first", "policy-001")
	readSecond  = readOf("second", "policy-002")
	oldVersions = risk.Rule{ID: "old", ScoreExpr: "args.version < 3 ? 80 : 10", Reason: "Old versions mislead."}

	allowReads = rules.Policy{ID: "reads", Match: rules.Match{Tool: "fetch_*"}, Effect: rules.Allow, Reason: "Reading is fine."}
	denyAll    = rules.Policy{ID: "all-else", Effect: rules.Deny, Reason: "Nothing else is."}
	holdReads  = rules.Policy{
		ID: "looked-at", Match: rules.Match{Server: Server}, Effect: rules.Pending, Reason: "A person looks.",
		Approvers: []string{"owners"}, Quorum: 1, Expires: 60 * 60 * 1000,
	}
)

func readOf(id, policyID string) risk.Rule {
	return risk.Rule{
		ID: id, Match: risk.Match{Tool: "fetch_*"}, SetMode: "review", Reason: "This policy is looked at.",
		Args: []risk.Predicate{{Path: "policy_id", Op: condition.OpEq, Value: jsontext.Value(`"` + policyID + `"`)}},
	}
}

// withChange is a policy or a rule with something changed.
func withChange[T any](v T, change func(*T)) T {
	change(&v)
	return v
}

// policies are runs that risk rules and policies of their bundle decide.
func policies() []Scenario {
	ruled := func(name string, state fsm.State, code policy.Code, r *risk.Content, p ...rules.Policy) Scenario {
		calls := 0
		if state == states.Answered {
			calls = 1
		}
		return variant(name, state, code, calls, func(s *Scenario) { s.Content.Risk, s.Content.Policy = r, Policies(p...) })
	}
	allows := func(change func(*rules.Policy)) rules.Policy { return withChange(allowReads, change) }
	blocked, denied, failed := states.Blocked, policy.CodePolicyDenied, policy.CodePolicyFailed
	onlyRisk := ruled("risk-without-policies", states.Answered, "", Ladder(readSecond))
	onlyRisk.Content.Policy = nil
	scenarios := []Scenario{
		ruled("policy-allows", states.Answered, "", nil, allowReads, denyAll),
		ruled("policy-denies-by-effect", blocked, denied, nil, denyAll, allowReads),
		ruled("policy-denies-by-condition", blocked, denied, nil,
			allows(func(p *rules.Policy) { p.Deny = "args.policy_id == 'policy-002'" })),
		ruled("policy-denial-does-not-apply", states.Answered, "", nil,
			allows(func(p *rules.Policy) { p.Deny = "args.policy_id == 'policy-001'" })),
		ruled("policy-denial-fails", blocked, failed, nil, allows(func(p *rules.Policy) { p.Deny = "args.lang == 'de'" })),
		ruled("policy-question-fails", blocked, failed, nil,
			allows(func(p *rules.Policy) { p.RequireApprovalIf = "args.version > 3" })),
		ruled("policy-match-fails-and-denies", blocked, failed, nil,
			withChange(denyAll, func(p *rules.Policy) { p.When = "args.lang == 'de'" }), allowReads),
		ruled("policy-match-fails-and-goes-on", states.Answered, "", nil,
			allows(func(p *rules.Policy) { p.ID, p.When = "german", "args.lang == 'de'" }), allowReads),
		ruled("no-policy-matches", blocked, denied, nil, withChange(allowReads, func(p *rules.Policy) { p.Match.Tool = "Fetch_*" })),
		ruled("no-policy-at-all", blocked, denied, nil),
		ruled("policy-on-trial-is-recorded", states.Answered, "", Ladder(readSecond),
			withChange(denyAll, func(p *rules.Policy) { p.ID, p.Mode = "trial", rules.Shadow }),
			withChange(holdReads, func(p *rules.Policy) { p.ID, p.Mode = "trial-hold", rules.Shadow }), allowReads),
		onlyRisk,
		ruled("risk-is-raised-and-denied", blocked, denied, Ladder(readSecond),
			allows(func(p *rules.Policy) { p.Deny = "risk.mode == 'review' && risk.score == 50 && 'second' in risk.rules" })),
		ruled("risk-that-is-not-raised", states.Answered, "", Ladder(readFirst),
			allows(func(p *rules.Policy) { p.Deny = "risk.mode != 'safe'" })),
		ruled("risk-that-fails-is-more", states.Pending, policy.CodeApprovalRequired, Ladder(oldVersions),
			allows(func(p *rules.Policy) { p.RequireApprovalIf = "risk.mode == 'review' && risk.score == 1000" })),
		ruled("risk-of-an-unknown-argument", states.Pending, policy.CodeApprovalRequired, Ladder(risk.Rule{
			ID: "german", SetMode: "danger", Args: []risk.Predicate{{Path: "lang", Op: condition.OpEq, Value: jsontext.Value(`"de"`)}},
		}), withChange(holdReads, func(p *rules.Policy) { p.When = "risk.mode == 'danger'" })),
		ruled("policy-budget-is-spent", blocked, policy.CodePolicySpent, nil, expensive(), allowReads),
	}
	return append(append(scenarios, roles()...), heldByPolicy()...)
}

// expensive is a policy whose condition costs more than a decision has.
func expensive() rules.Policy {
	when := "['aaaaaaaa']" + strings.Repeat(".map(a, a + a)", 24) + " == []"
	return rules.Policy{ID: "expensive", When: when, Effect: rules.Deny}
}

// roles are runs that depend on the requester.
func roles() []Scenario {
	asks := func(name string, state fsm.State, code policy.Code, calls int, actors ...string) Scenario {
		return variant(name, state, code, calls, func(s *Scenario) {
			s.Content.Roles = []policy.Role{{Role: "writers", Actors: []string{"local:bob"}}, {Role: "readers", Actors: actors}}
			s.Content.Policy = Policies(withChange(allowReads, func(p *rules.Policy) {
				p.When = "'readers' in actor.roles && !('writers' in actor.roles)"
			}))
		})
	}
	return []Scenario{
		asks("role-is-had", states.Answered, "", 1, "local:carol", Actor),
		asks("role-is-not-had", states.Blocked, policy.CodePolicyDenied, 0, "local:carol"),
		asks("role-of-nobody", states.Blocked, policy.CodePolicyDenied, 0),
	}
}

// heldByPolicy are runs that a policy of the bundle holds for an hour.
func heldByPolicy() []Scenario {
	heldCase := func(name string, state fsm.State, code policy.Code, calls int, d states.Event, p rules.Policy) Scenario {
		return variant(name, state, code, calls, func(s *Scenario) {
			s.Content.Roles = []policy.Role{{Role: "owners", Actors: []string{"local:bob", "dora"}}}
			s.Content.Risk, s.Content.Policy, s.World.Decided = Ladder(readSecond), Policies(p, denyAll), d
		})
	}
	decide := func(outcome, at string) states.Event {
		return Votes(Vote(outcome, "local:bob", at))
	}
	const inTime = "2026-11-21T09:30:00.000Z"
	two := withChange(holdReads, func(p *rules.Policy) { p.Quorum = 2 })
	twoVotes := Votes(Vote("approve", "local:bob", inTime), Vote("approve", "dora", inTime))
	asks := withChange(allowReads, func(p *rules.Policy) { p.RequireApprovalIf = "risk.score >= 50" })
	return []Scenario{
		heldCase("policy-holds", states.Pending, policy.CodeApprovalRequired, 0, nil, holdReads),
		heldCase("policy-asks-by-condition", states.Pending, policy.CodeApprovalRequired, 0, nil, asks),
		heldCase("policy-holds-and-a-person-approves", states.Answered, "", 1, decide("approve", inTime), holdReads),
		heldCase("policy-asks-and-a-person-approves", states.Answered, "", 1, decide("approve", inTime), asks),
		heldCase("policy-holds-and-a-person-denies", states.Blocked, policy.CodeApprovalDenied, 0, decide("deny", inTime), holdReads),
		heldCase("policy-holds-to-the-last-second", states.Answered, "", 1, decide("approve", "2026-11-21T09:59:59.999Z"), holdReads),
		heldCase("policy-held-and-it-expired", states.Blocked, policy.CodeApprovalExpired, 0, decide("approve", "2026-11-21T10:00:00.000Z"), holdReads),
		heldCase("one-of-two-is-too-few", states.Blocked, policy.CodeApprovalMismatch, 0, decide("approve", inTime), two),
		heldCase("one-person-twice-is-one-vote", states.Blocked, policy.CodeApprovalMismatch, 0,
			Votes(Vote("approve", "local:bob", inTime), Vote("approve", "local:bob", inTime)), two),
		heldCase("two-people-agree", states.Answered, "", 1, twoVotes, two),
		heldCase("two-agree-and-a-third-denies", states.Blocked, policy.CodeApprovalDenied, 0,
			Votes(append(slices.Clone(twoVotes.Votes), Vote("deny", "local:bob", inTime))...), two),
		heldCase("without-the-role", states.Blocked, policy.CodeApprovalMismatch, 0, Votes(Vote("approve", "eve", inTime)), holdReads),
		heldCase("nobody-decided-in-time", states.Blocked, policy.CodeApprovalExpired, 0,
			&states.Decided{At: "2026-11-21T10:00:00.000Z"}, holdReads),
		heldCase("nobody-decided-yet", states.Blocked, policy.CodeApprovalMismatch, 0,
			&states.Decided{At: inTime}, holdReads),
		heldCase("policy-held-and-then-denies", states.Blocked, policy.CodePolicyDenied, 0, decide("approve", inTime),
			withChange(holdReads, func(p *rules.Policy) { p.When = "now < timestamp('2026-11-21T09:30:00Z')" })),
	}
}
