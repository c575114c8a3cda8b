package statestest

import (
	"strings"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
)

// Round is an agent's answers to the server's questions, which it sends beside the arguments when
// it repeats a call.
const Round = `{"inputResponses":{"name":{"action":"accept","content":{"name":"Alice"}}},"requestState":"s-1"}`

// CachedListing is the event of a cached listing of one tool, 12 seconds old.
func CachedListing(listing policy.Listing, tool string) *states.ToolsListed {
	wholeListing := states.Shared(&states.ToolsListed{Servers: []policy.Listing{listing}})
	sent, err := listing.Sent()
	if err != nil {
		return states.CachedPart(wholeListing, listing, 12)
	}
	return states.CachedPart(wholeListing, listing.Pick(sent, tool), 12)
}

func agent(plan, round string) states.Request {
	return states.Request{
		Actor: "ci-agent",
		At:    At,
		Kind:  states.KindAgent,
		Round: canonical.Text(round),
		Text:  canonical.Text(plan),
	}
}

const deletePlan = `{"args":{"policy_id":"policy-002"},"server":"` + Server + `","tool":"` + Delete + `","type":"call_tool"}`

// goodArguments are the arguments of [GoodPlan].
const goodArguments = `{"policy_id":"policy-002"}`

// harmfulPlan contains a word of an input rule, written with an escape.
const harmfulPlan = `{"args":{"policy_id":"policy-002","sections":["ransom\u0077are"]},"server":"` + Server + `","tool":"` + Tool + `","type":"call_tool"}`

// ruleOn is the input rule of [Content] for one kind of request.
func ruleOn(kind string) []policy.InputRule {
	return []policy.InputRule{{Rule: Content().Input.Rules[0].Rule, On: []string{kind}}}
}

// agents are runs of the gateway.
func agents() []Scenario {
	setCached := func(s *Scenario, tool string) {
		s.World.Listed = []states.Event{CachedListing(Listings(Page)[0], tool)}
	}
	return []Scenario{
		variant("agent-by-a-kept-listing", states.Answered, "", 1, func(s *Scenario) {
			s.Request = agent(GoodPlan, "")
			setCached(s, Tool)
		}),
		variant("agent-is-never-summarized", states.Answered, "", 1, func(s *Scenario) {
			s.Request, s.Content.Summary = agent(FullPlan, ""), policy.SummaryAlways
			setCached(s, Tool)
		}),
		variant("agent-tool-not-allowed", states.Blocked, policy.CodeToolNotAllowed, 0, func(s *Scenario) {
			s.Request = agent(deletePlan, "")
			setCached(s, Delete)
		}),
		variant("agent-tool-that-the-kept-listing-lacks", states.Blocked, policy.CodeToolUnknown, 0, func(s *Scenario) {
			s.Request = agent(GoodPlan, "")
			setCached(s, "no_such_tool")
		}),
		variant("agent-kept-listing-names-it-twice", states.Blocked, policy.CodeToolAmbiguous, 0, func(s *Scenario) {
			s.Request = agent(GoodPlan, "")
			s.World.Listed = []states.Event{CachedListing(Listings(Page, Page)[0], Tool)}
		}),
		variant("agent-kept-listing-cannot-be-read", states.Failed, policy.CodeNoServers, 0, func(s *Scenario) {
			s.Request = agent(GoodPlan, "")
			s.World.Listed = []states.Event{CachedListing(Listings(`{"tools":{}}`)[0], Tool)}
		}),
		variant("agent-with-a-round", states.Answered, "", 1, func(s *Scenario) {
			s.Request = agent(GoodPlan, Round)
			setCached(s, Tool)
		}),
		variant("agent-round-is-screened", states.Blocked, policy.CodeInputDenied, 0, func(s *Scenario) {
			s.Request = agent(GoodPlan, `{"inputResponses":{"a":{"content":{"name":"ransom\u0077are"}}}}`)
		}),
		variant("agent-round-cannot-be-held", states.Blocked, policy.CodeRoundUnapprovable, 0, func(s *Scenario) {
			s.Request, s.Decider = agent(GoodPlan, Round), HoldAll{Until: "2026-11-22T09:00:00.000Z"}
			setCached(s, Tool)
		}),
		variant("agent-held-and-approved", states.Answered, "", 1, func(s *Scenario) {
			s.Request, s.Decider = agent(GoodPlan, ""), HoldAll{Until: "2026-11-22T09:00:00.000Z"}
			s.World.Listed = []states.Event{CachedListing(Listings(Page)[0], Tool), listed(Page)}
			s.World.Decided = Votes(Vote(policy.VoteApprove, "bob", "2026-11-21T10:00:00.000Z"))
		}),
		variant("agent-traced", states.Answered, "", 1, func(s *Scenario) {
			s.Request = agent(GoodPlan, "")
			s.Request.Trace = Traced("1")
			setCached(s, Tool)
		}),
		variant("agent-traced-and-approved", states.Answered, "", 1, tracedAndApproved(Traced("2"))),
		variant("agent-traced-and-approved-without-a-trace", states.Answered, "", 1, tracedAndApproved(nil)),
	}
}

// Traced is the trace context of a call; digit tells it from others.
func Traced(digit string) *states.TraceContext {
	id := strings.Repeat(digit, 16)
	return &states.TraceContext{Span: "00f067aa0ba902b7", Parent: "00-" + id + id + "-" + id + "-01", State: "vendor=1"}
}

// tracedAndApproved is a held call whose request has a trace context. The approved call has its
// own, or none.
func tracedAndApproved(own *states.TraceContext) func(*Scenario) {
	return func(s *Scenario) {
		s.Request, s.Decider = agent(GoodPlan, ""), HoldAll{Until: "2026-11-22T09:00:00.000Z"}
		s.Request.Trace = Traced("1")
		s.World.Listed = []states.Event{CachedListing(Listings(Page)[0], Tool), listed(Page)}
		decided := Votes(Vote(policy.VoteApprove, "bob", "2026-11-21T10:00:00.000Z"))
		decided.Trace = own
		s.World.Decided = decided
	}
}

// sizesAndInputRules are calls as their own plan, large ones or ones with words of an input rule.
func sizesAndInputRules() []Scenario {
	setCached := func(s *Scenario) { s.World.Listed = []states.Event{CachedListing(Listings(Page)[0], Tool)} }
	return []Scenario{
		variant("agent-arguments-are-no-question", states.Answered, "", 1, func(s *Scenario) {
			s.Request = agent(harmfulPlan, "")
			setCached(s)
		}),
		variant("agent-input-rule-on-agents", states.Blocked, policy.CodeInputDenied, 0, func(s *Scenario) {
			s.Request, s.Content.Input.Rules = agent(harmfulPlan, ""), ruleOn(policy.KindAgent)
		}),
		variant("agent-round-and-input-rule-on-agents", states.Blocked, policy.CodeInputDenied, 0, func(s *Scenario) {
			s.Request = agent(GoodPlan, `{"requestState":"ransomware"}`)
			s.Content.Input.Rules = ruleOn(policy.KindAgent)
		}),
		variant("agent-round-and-input-rule-on-calls", states.Answered, "", 1, func(s *Scenario) {
			s.Request = agent(GoodPlan, `{"requestState":"ransomware"}`)
			s.Content.Input.Rules = ruleOn(policy.KindCall)
			setCached(s)
		}),
		variant("agent-larger-than-its-input-rules-judge", states.Blocked, policy.CodeInputTooLarge, 0,
			func(s *Scenario) {
				s.Request, s.Content.Input.Rules, s.Content.Input.MaxBytes = agent(GoodPlan, ""),
					ruleOn(policy.KindAgent), len(GoodPlan)-1
			}),
		variant("agent-larger-than-questions-and-plans", states.Answered, "", 1, func(s *Scenario) {
			s.Request, s.Content.Input.MaxBytes, s.Content.Limits.PlanBytes = agent(GoodPlan, ""), 1, 1
			setCached(s)
		}),
		variant("agent-arguments-too-large", states.Blocked, policy.CodeArgumentsTooLarge, 0, func(s *Scenario) {
			s.Request, s.Content.Limits.ArgumentsBytes = agent(GoodPlan, ""), len(goodArguments)-1
		}),
		variant("operator-arguments-too-large", states.Blocked, policy.CodeArgumentsTooLarge, 0, func(s *Scenario) {
			s.Request, s.Content.Limits.ArgumentsBytes = call(GoodPlan), len(goodArguments)-1
		}),
		variant("agent-arguments-have-too-many-values", states.Blocked, policy.CodeArgumentsTooLarge, 0,
			func(s *Scenario) {
				many := `{"policy_id":[0` + strings.Repeat(",0", policy.MaxArgumentsValues) + `]}`
				s.Request = agent(strings.Replace(GoodPlan, goodArguments, many, 1), "")
			}),
		variant("agent-arguments-at-their-limit", states.Answered, "", 1, func(s *Scenario) {
			s.Request, s.Content.Limits.ArgumentsBytes = agent(GoodPlan, ""), len(goodArguments)
			setCached(s)
		}),
		variant("operator-input-rule-on-calls", states.Blocked, policy.CodeInputDenied, 0, func(s *Scenario) {
			s.Request, s.Content.Input.Rules = call(harmfulPlan), ruleOn(policy.KindCall)
		}),
		variant("operator-arguments-are-no-question", states.Answered, "", 1,
			func(s *Scenario) { s.Request = call(harmfulPlan) }),
	}
}
