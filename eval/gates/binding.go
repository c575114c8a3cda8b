package gates

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/rules"
	"pgfsm/states"
)

// A heldCall is one call as it stands when people are asked about it.
type heldCall struct {
	run, actor, at, plan string
	kb                   string // what the first server lists
	content              policy.Content
}

// An approval is what was shown to people, what would run, and what they said.
type approval struct {
	shown, runs heldCall
	votes       []policy.Vote    // those without a binding are about what was shown
	at          string           // of the decision
	then        string           // what the first server lists after the decision; empty is what it listed before
	binding     canonical.Digest // of the decision, if it is about something else
}

// When people decided, and until when they may: the policy waits an hour.
const (
	inTime = "2026-11-21T09:30:00Z"
	late   = "2026-11-21T10:00:00Z"
)

// agreed is a call that two people agreed to.
func agreed() *approval {
	c := content()
	c.Roles = []policy.Role{{Role: "owners", Actors: []string{"bob", "carol", "Dave", "local:alice", "alice"}}, {Role: "readers", Actors: []string{"eve"}}}
	c.Policy = &rules.Content{Policies: []rules.Policy{{
		ID: "ask", Match: rules.Match{Tool: "*e*"}, Effect: rules.Pending, Reason: "Two owners look.",
		Approvers: []string{"owners"}, Quorum: 2, Expires: 60 * 60 * 1000,
	}}}
	call := heldCall{run: runID, actor: actor, at: asked, plan: fetchFirst, kb: pageKB, content: c}
	return &approval{
		shown: call, runs: call, at: inTime,
		votes: []policy.Vote{votes(policy.VoteApprove, "bob", inTime), votes(policy.VoteApprove, "carol", inTime)},
	}
}

func votes(outcome, by, at string) policy.Vote {
	return policy.Vote{At: at, By: by, Outcome: outcome, Reason: "as agreed"}
}

// A bindingChange makes one part of an approval another. Whatever else is changed with it, nothing may be called.
type bindingChange struct {
	name  string
	want  policy.Code
	apply func(*approval)
}

// binding approves a call, changes every part of what was approved, and counts what is called all the same.
func binding(e *evaluation) (Suite, error) {
	all := bindingChanges()
	known := make(map[string]bindingChange, len(all))
	trials := []trial{e.approvalTrial("unchanged", called, nil, known)}
	for _, c := range all {
		known[c.name] = c
		trials = append(trials, e.approvalTrial(c.name, "blocked "+string(c.want), []string{c.name}, known))
	}
	for i := range all {
		for j := i + 1; j < len(all); j += 7 { // a seventh of all pairs: each change stands in some
			names := []string{all[i].name, all[j].name}
			trials = append(trials, e.approvalTrial(strings.Join(names, "+"), refused, names, known))
		}
	}
	return e.table(fmt.Sprintf("approvals: one unchanged, %d changes of one part, and pairs of them", len(all)), trials), nil
}

// approvalTrial is an approval with some changes as a trial: its input is the list of their names.
func (e *evaluation) approvalTrial(id, want string, names []string, known map[string]bindingChange) trial {
	input, err := json.Marshal(slices.Concat([]string{}, names))
	if err != nil {
		input = nil
	}
	return trial{
		id: id, want: want, input: input,
		got: func(in []byte) string {
			changes, ok := listOf(in, known)
			if !ok && string(in) != "[]" {
				return "no list of changes"
			}
			a := agreed()
			for _, name := range changes {
				known[name].apply(a)
			}
			got := e.decide(a)
			if want == refused && strings.HasPrefix(got, "blocked ") {
				return refused
			}
			return got
		},
		known: func(in []byte, got string) bool {
			_, ok := listOf(in, known)
			return ok && got == called
		},
	}
}

// decide shows one call to people, and takes their word to the other.
func (e *evaluation) decide(a *approval) string {
	shown, w, err := a.shown.begin()
	if err != nil {
		return err.Error()
	}
	if _, err := e.subject.play(e.machine, shown, w); err != nil || shown.Held() == nil {
		return "what is shown is not held"
	}
	about := shown.Held().Binding
	runs, w, err := a.runs.begin()
	if err != nil {
		return err.Error()
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
	o, err := e.subject.play(e.machine, runs, w)
	return ended(o, err, w, []byte(a.runs.plan))
}

// begin is the call as a run, and its world.
func (h *heldCall) begin() (*states.Run, *world, error) {
	b, err := policy.Compile(h.content)
	if err != nil {
		return nil, nil, err
	}
	request := states.Request{Actor: h.actor, At: h.at, Kind: states.KindAsk, Text: canonical.Text(question)}
	w := &world{listed: []*states.ToolsListed{listed(h.kb, pageDesk)}, plan: []byte(h.plan), result: plainResult}
	return states.NewRun(h.run, request, b), w, nil
}

// bindingChanges are all changes of one part.
func bindingChanges() []bindingChange {
	return slices.Concat(shownChanges(), voteChanges(), laterChanges())
}

// shownChanges: people agreed to something else than what would run.
func shownChanges() []bindingChange {
	other := func(name string, change func(*heldCall)) bindingChange {
		return bindingChange{name, policy.CodeApprovalMismatch, func(a *approval) { change(&a.shown) }}
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
		other("bundle_env", func(h *heldCall) { h.content.Env = "production" }),
		other("bundle_policy", func(h *heldCall) {
			p := slices.Clone(h.content.Policy.Policies)
			p[0].Reason = "Two owners looked."
			h.content.Policy = &rules.Content{Policies: p}
		}),
		other("bundle_quorum", func(h *heldCall) {
			p := slices.Clone(h.content.Policy.Policies)
			p[0].Quorum = 1
			h.content.Policy = &rules.Content{Policies: p}
		}),
		other("bundle_roles", func(h *heldCall) {
			h.content.Roles = append(slices.Clone(h.content.Roles), policy.Role{Role: "guests", Actors: []string{"mallory"}})
		}),
		other("run", func(h *heldCall) { h.run = "01890a5d-ac96-774b-bcce-b302099a8058" }),
		other("actor", func(h *heldCall) { h.actor = "local:mallory" }),
		other("expiry", func(h *heldCall) { h.at = "2026-11-21T09:00:01Z" }),
	}
}

// voteChanges: what people said is not enough, or not theirs to say.
func voteChanges() []bindingChange {
	said := func(name string, want policy.Code, all ...policy.Vote) bindingChange {
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
		said("nobody_said_anything", mismatch),
		said("one_short_of_the_quorum", mismatch, yes("bob")),
		said("one_person_twice", mismatch, yes("bob"), yes("bob")),
		said("one_person_by_two_spellings", mismatch, yes("bob"), yes("dave")),
		said("own_request", mismatch, yes("bob"), yes(actor)),
		said("own_request_by_another_spelling", mismatch, yes("bob"), yes("alice")),
		said("without_the_role", mismatch, yes("bob"), yes("mallory")),
		said("with_another_role", mismatch, yes("bob"), yes("eve")),
		said("nameless", mismatch, yes("bob"), yes("")),
		said("one_denies", policy.CodeApprovalDenied, yes("bob"), yes("carol"), votes(policy.VoteDeny, "Dave", inTime)),
		said("neither_word", policy.CodeApprovalDenied, yes("bob"), votes("Approve", "carol", inTime)),
		said("no_word", policy.CodeApprovalDenied, yes("bob"), votes("", "carol", inTime)),
		said("one_too_late", policy.CodeApprovalExpired, yes("bob"), votes(policy.VoteApprove, "carol", late)),
		said("time_of_another_form", policy.CodeApprovalExpired, yes("bob"), votes(policy.VoteApprove, "carol", "2026-11-21T09:30:00+00:00")),
		said("no_time", policy.CodeApprovalExpired, yes("bob"), votes(policy.VoteApprove, "carol", "")),
		said("vote_about_another_call", mismatch, yes("bob"), about("sha256:"+canonical.Digest(strings.Repeat("0", 64)))),
		{"decision_about_another_call", mismatch, func(a *approval) { a.binding = canonical.Sum("approval binding", []byte("{}")) }},
		{"decision_about_nothing", mismatch, func(a *approval) { a.binding = "none" }},
	}
}

// laterChanges: the world is another one when the call would be made.
func laterChanges() []bindingChange {
	then := func(name string, want policy.Code, kb string) bindingChange {
		return bindingChange{name, want, func(a *approval) { a.then = kb }}
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
			for _, h := range []*heldCall{&a.shown, &a.runs} {
				p := slices.Clone(h.content.Policy.Policies)
				p[0].When = "now < timestamp('2026-11-21T09:15:00Z')"
				h.content.Policy = &rules.Content{Policies: p}
			}
		}},
	}
}
