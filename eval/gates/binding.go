package gates

import (
	"fmt"
	"slices"
	"strings"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states"
)

// A heldCall is a call that waits for approvers.
type heldCall struct {
	run, actor, at, plan string
	kb                   string // the first server's answer to tools/list
	content              policy.Content
}

// An approval is the call that approvers decided about, the call that would run, and the votes.
type approval struct {
	asked, runs heldCall
	votes       []policy.Vote    // a vote without a binding is about asked
	at          string           // the time of the decision
	then        string           // the first server's answer after the decision; empty: unchanged
	active      *policy.Content  // the configuration after the decision; nil: unchanged
	binding     canonical.Digest // the binding that the decision names; empty: that of asked
}

// When approvers decided, and when their time ends: the policy waits an hour.
const (
	inTime = "2026-11-21T09:30:00Z"
	late   = "2026-11-21T10:00:00Z"
)

// agreed is a call that two approvers approved.
func agreed() *approval {
	c := content()
	c.Roles = []policy.Role{{Role: "owners", Actors: []string{"bob", "carol", "Dave", "local:alice", "alice"}}, {Role: "readers", Actors: []string{"eve"}}}
	c.Policy = ask(func(*rules.Policy) {})
	call := heldCall{run: runID, actor: actor, at: asked, plan: fetchFirst, kb: pageKB, content: c}
	return &approval{
		asked: call, runs: call, at: inTime,
		votes: []policy.Vote{votes(policy.VoteApprove, "bob", inTime), votes(policy.VoteApprove, "carol", inTime)},
	}
}

// ask is a policy that holds calls, with a change.
func ask(change func(*rules.Policy)) *rules.Content {
	p := rules.Policy{
		ID: "ask", Match: rules.Match{Tool: "*e*"}, Effect: rules.Pending, Reason: "Two owners look.",
		Approvers: []string{"owners"}, Quorum: 2, Expires: 60 * 60 * 1000,
	}
	change(&p)
	return &rules.Content{Policies: []rules.Policy{p}}
}

func votes(outcome, by, at string) policy.Vote {
	return policy.Vote{At: at, By: by, Outcome: outcome, Reason: "as agreed"}
}

// A bindingChange changes one part of an approval. With the change, no call may be made.
type bindingChange struct {
	name  string
	want  policy.Code
	apply func(*approval)
}

// binding approves a call, changes each part of the approved call and of the approval, and counts the calls that are made.
func binding(e *evaluation) (Suite, error) {
	all := bindingChanges()
	approve := func(change func(*approval)) func([]byte) string {
		return func([]byte) string {
			a := agreed()
			change(a)
			return e.decide(a)
		}
	}
	trials := []trial{{"unchanged", called, nil, approve(func(*approval) {})}}
	for _, c := range all {
		trials = append(trials, trial{c.name, "blocked " + string(c.want), []byte(c.name), approve(c.apply)})
	}
	return judge(fmt.Sprintf("approvals: one unchanged, and %d changes of one part", len(all)), trials), nil
}

// decide holds the call asked, and runs the other call with its approval.
func (e *evaluation) decide(a *approval) string {
	held, w, err := a.asked.begin()
	if err != nil {
		return err.Error()
	}
	if _, err := e.subject.play(e.runner, held, w); err != nil || held.HeldCall() == nil {
		return "the call is not held"
	}
	about := held.HeldCall().Binding
	runs, w, err := a.runs.begin()
	if err != nil {
		return err.Error()
	}
	w.active = runs.Bundle()
	if a.active != nil {
		if w.active, err = policy.Compile(*a.active); err != nil {
			return err.Error()
		}
	}
	if a.then != "" {
		w.listed = append(w.listed, listed(a.then, pageDesk))
	}
	w.decided = func(canonical.Digest) *states.Decided {
		d := &states.Decided{At: a.at, Binding: about, Votes: slices.Clone(a.votes)}
		if a.binding != "" {
			d.Binding = a.binding
		}
		for i := range d.Votes {
			if d.Votes[i].Binding == "" {
				d.Votes[i].Binding = about
			}
		}
		return d
	}
	o, err := e.subject.play(e.runner, runs, w)
	return ended(o, err, w, []byte(a.runs.plan))
}

// begin makes a run of the call, and its world.
func (h *heldCall) begin() (*states.Run, *world, error) {
	b, err := policy.Compile(h.content)
	if err != nil {
		return nil, nil, err
	}
	request := states.Request{Actor: h.actor, At: h.at, Kind: states.KindAsk, Text: canonical.Text(question)}
	w := &world{listed: []*states.ToolsListed{listed(h.kb, pageDesk)}, plan: []byte(h.plan), result: plainResult}
	return states.NewRun(h.run, request, b), w, nil
}

// bindingChanges are the changes of one part.
func bindingChanges() []bindingChange {
	return slices.Concat(callChanges(), voteChanges(), laterChanges())
}

// callChanges: approvers approved another call than the one that would run.
func callChanges() []bindingChange {
	other := func(name string, change func(*heldCall)) bindingChange {
		return bindingChange{name, policy.CodeApprovalMismatch, func(a *approval) { change(&a.asked) }}
	}
	plan := func(from, to string) func(*heldCall) {
		return func(h *heldCall) { h.plan = strings.Replace(h.plan, from, to, 1) }
	}
	return []bindingChange{
		other("arguments", plan("entry-002", "entry-001")),
		other("arguments_more", plan(`"entry-002"`, `"entry-002","lang":"en"`)),
		other("arguments_number_spelled_otherwise", plan(`"entry-002"`, `"entry-002","version":1.0`)),
		other("tool_and_server", func(h *heldCall) {
			h.plan = `{"type":"call_tool","server":"desk","tool":"search_tickets","args":{"query":"x"}}`
		}),
		other("definition", func(h *heldCall) { h.kb = strings.Replace(h.kb, "by its id.", "by its name.", 1) }),
		other("environment", func(h *heldCall) { h.content.Env = "production" }),
		other("policy", func(h *heldCall) { h.content.Policy = ask(func(p *rules.Policy) { p.ID = "other" }) }),
		other("quorum", func(h *heldCall) { h.content.Policy = ask(func(p *rules.Policy) { p.Quorum = 1 }) }),
		other("approvers", func(h *heldCall) {
			h.content.Policy = ask(func(p *rules.Policy) { p.Approvers = []string{"owners", "readers"} })
		}),
		other("run", func(h *heldCall) { h.run = "01890a5d-ac96-774b-bcce-b302099a8058" }),
		other("actor", func(h *heldCall) { h.actor = "local:mallory" }),
		other("expiry", func(h *heldCall) { h.at = "2026-11-21T09:00:01Z" }),
	}
}

// voteChanges: the votes are too few, or a voter may not decide.
func voteChanges() []bindingChange {
	cast := func(name string, want policy.Code, all ...policy.Vote) bindingChange {
		return bindingChange{name, want, func(a *approval) { a.votes = all }}
	}
	yes := func(by string) policy.Vote { return votes(policy.VoteApprove, by, inTime) }
	about := func(d canonical.Digest) policy.Vote {
		v := yes("carol")
		v.Binding = d
		return v
	}
	mismatch := policy.CodeApprovalMismatch
	return []bindingChange{
		cast("nobody_said_anything", mismatch),
		cast("one_short_of_the_quorum", mismatch, yes("bob")),
		cast("one_person_twice", mismatch, yes("bob"), yes("bob")),
		cast("one_person_by_two_spellings", mismatch, yes("bob"), yes("dave")),
		cast("own_request", mismatch, yes("bob"), yes(actor)),
		cast("own_request_by_another_spelling", mismatch, yes("bob"), yes("alice")),
		cast("without_the_role", mismatch, yes("bob"), yes("mallory")),
		cast("with_another_role", mismatch, yes("bob"), yes("eve")),
		cast("nameless", mismatch, yes("bob"), yes("")),
		cast("one_denies", policy.CodeApprovalDenied, yes("bob"), yes("carol"), votes(policy.VoteDeny, "Dave", inTime)),
		cast("neither_word", policy.CodeApprovalDenied, yes("bob"), votes("Approve", "carol", inTime)),
		cast("no_word", policy.CodeApprovalDenied, yes("bob"), votes("", "carol", inTime)),
		cast("one_too_late", policy.CodeApprovalExpired, yes("bob"), votes(policy.VoteApprove, "carol", late)),
		cast("time_of_another_form", policy.CodeApprovalExpired, yes("bob"), votes(policy.VoteApprove, "carol", "2026-11-21T09:30:00+00:00")),
		cast("no_time", policy.CodeApprovalExpired, yes("bob"), votes(policy.VoteApprove, "carol", "")),
		cast("vote_about_another_call", mismatch, yes("bob"), about("sha256:"+canonical.Digest(strings.Repeat("0", 64)))),
		{"decision_about_another_call", mismatch, func(a *approval) { a.binding = canonical.Sum("approval binding", []byte("{}")) }},
		{"decision_about_nothing", mismatch, func(a *approval) { a.binding = "none" }},
	}
}

// laterChanges: something changes between the approval and the call.
func laterChanges() []bindingChange {
	then := func(name string, want policy.Code, kb string) bindingChange {
		return bindingChange{name, want, func(a *approval) { a.then = kb }}
	}
	active := func(name string, want policy.Code, change func(*policy.Content)) bindingChange {
		return bindingChange{name, want, func(a *approval) {
			c := a.runs.content
			change(&c)
			a.active = &c
		}}
	}
	changed := policy.CodeToolDefinitionChanged
	return []bindingChange{
		then("description_changed_meanwhile", changed, strings.Replace(pageKB, "by its id.", "by its id, and mail it.", 1)),
		then("schema_loosened_meanwhile", changed, strings.Replace(pageKB, `"required":["entry_id"]`, `"additionalProperties":true`, 1)),
		then("hints_changed_meanwhile", changed, strings.Replace(pageKB, `"readOnlyHint":true`, `"readOnlyHint":false`, 1)),
		then("tool_gone_meanwhile", policy.CodeToolUnknown, `{"tools":[]}`),
		then("tool_listed_twice_meanwhile", policy.CodeToolAmbiguous, `{"tools":[`+fetchTool+`,`+fetchTool+`]}`),
		then("server_unreadable_meanwhile", policy.CodeServerDown, `{"tools":[],"tools":[]}`),
		{"policy_denies_by_then", policy.CodePolicyDenied, func(a *approval) {
			for _, h := range []*heldCall{&a.asked, &a.runs} {
				h.content.Policy = ask(func(p *rules.Policy) { p.When = "now < timestamp('2026-11-21T09:15:00Z')" })
			}
		}},
		active("policy_changed_meanwhile", policy.CodeBundleChanged, func(c *policy.Content) { c.Policy = ask(func(p *rules.Policy) { p.ID = "other" }) }),
		active("quorum_raised_meanwhile", policy.CodeBundleChanged, func(c *policy.Content) { c.Policy = ask(func(p *rules.Policy) { p.Quorum = 3 }) }),
		active("environment_changed_meanwhile", policy.CodeBundleChanged, func(c *policy.Content) { c.Env = "production" }),
		active("server_moved_meanwhile", policy.CodeBundleChanged, func(c *policy.Content) {
			c.Servers = slices.Clone(c.Servers)
			c.Servers[0].URL = "http://127.0.0.1:6666/mcp"
		}),
		active("approvers_lost_their_role_meanwhile", policy.CodeApprovalMismatch, func(c *policy.Content) { c.Roles = nil }),
		active("allowlist_narrowed_meanwhile", policy.CodeToolNotAllowed, func(c *policy.Content) { c.Allowlist = nil }),
	}
}
