package statestest

import (
	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/states"
)

// Round is what an agent sends beside the arguments of a call that it repeats with answers to the server's questions.
const Round = `{"inputResponses":{"name":{"action":"accept","content":{"name":"Alice"}}},"requestState":"s-1"}`

// Kept is what a run is told that goes by a listing of 12 seconds ago, of one tool.
func Kept(listing policy.Listing, tool string) *states.ToolsListed {
	whole := states.Shared(&states.ToolsListed{Servers: []policy.Listing{listing}})
	sent, err := listing.Sent()
	if err != nil {
		return states.KeptOf(whole, listing, 12)
	}
	return states.KeptOf(whole, listing.Pick(sent, tool), 12)
}

func agent(plan, round string) states.Request {
	return states.Request{Actor: "ci-agent", At: At, Kind: states.KindAgent, Round: canonical.Text(round), Text: canonical.Text(plan)}
}

const deletePlan = `{"args":{"policy_id":"policy-002"},"server":"` + Server + `","tool":"` + Delete + `","type":"call_tool"}`

// agents are runs that the gateway begins.
func agents() []Scenario {
	kept := func(s *Scenario, tool string) {
		s.World.Listed = []states.Event{Kept(Listings(Page)[0], tool)}
	}
	return []Scenario{
		with("agent-by-a-kept-listing", states.Answered, "", 1, func(s *Scenario) {
			s.Request = agent(GoodPlan, "")
			kept(s, Tool)
		}),
		with("agent-is-never-summarized", states.Answered, "", 1, func(s *Scenario) {
			s.Request, s.Content.Summary = agent(FullPlan, ""), policy.SummaryAlways
			kept(s, Tool)
		}),
		with("agent-tool-not-allowed", states.Blocked, policy.CodeToolNotAllowed, 0, func(s *Scenario) {
			s.Request = agent(deletePlan, "")
			kept(s, Delete)
		}),
		with("agent-tool-that-the-kept-listing-lacks", states.Blocked, policy.CodeToolUnknown, 0, func(s *Scenario) {
			s.Request = agent(GoodPlan, "")
			kept(s, "no_such_tool")
		}),
		with("agent-kept-listing-names-it-twice", states.Blocked, policy.CodeToolAmbiguous, 0, func(s *Scenario) {
			s.Request = agent(GoodPlan, "")
			s.World.Listed = []states.Event{Kept(Listings(Page, Page)[0], Tool)}
		}),
		with("agent-kept-listing-cannot-be-read", states.Failed, policy.CodeNoServers, 0, func(s *Scenario) {
			s.Request = agent(GoodPlan, "")
			s.World.Listed = []states.Event{Kept(Listings(`{"tools":[{"name":1}]}`)[0], Tool)}
		}),
		with("agent-with-a-round", states.Answered, "", 1, func(s *Scenario) {
			s.Request = agent(GoodPlan, Round)
			kept(s, Tool)
		}),
		with("agent-round-is-screened", states.Blocked, policy.CodeInputDenied, 0, func(s *Scenario) {
			s.Request = agent(GoodPlan, `{"inputResponses":{"a":{"content":{"name":"ransom\u0077are"}}}}`)
		}),
		with("agent-round-cannot-be-held", states.Blocked, policy.CodeRoundUnapprovable, 0, func(s *Scenario) {
			s.Request, s.Decider = agent(GoodPlan, Round), HoldAll{Until: "2026-11-22T09:00:00Z"}
			kept(s, Tool)
		}),
		with("agent-held-and-approved", states.Answered, "", 1, func(s *Scenario) {
			s.Request, s.Decider = agent(GoodPlan, ""), HoldAll{Until: "2026-11-22T09:00:00Z"}
			s.World.Listed = []states.Event{Kept(Listings(Page)[0], Tool), listed(Page)}
			s.World.Decided = Votes(Vote(policy.VoteApprove, "bob", "2026-11-21T10:00:00Z"))
		}),
	}
}
