package attack

import (
	"fmt"
	"slices"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/states"
)

// A person answers a held call.
type person func(run *states.Run, binding canonical.Digest) (states.Event, error)

// says is a person, or as many as are asked for, who give one answer to everything.
func says(outcome string) person {
	return func(run *states.Run, binding canonical.Digest) (states.Event, error) {
		at := run.Request().At
		return &states.Decided{At: at, Binding: binding, Votes: votes(run, binding, outcome)}, nil
	}
}

// nobody answers: the request expires.
func nobody(run *states.Run, binding canonical.Digest) (states.Event, error) {
	return &states.Decided{At: run.Held().Expires, Binding: binding}, nil
}

// votes are exactly those that a held call asks for: as many different people as the quorum says, each in one of the roles
// that may decide and none of them who asked. Where the bundle names too few people there are too few votes.
func votes(run *states.Run, binding canonical.Digest, outcome string) []policy.Vote {
	held := run.Held()
	if held == nil {
		return nil
	}
	var people []string
	if len(held.Approvers) == 0 {
		for i := range max(held.Quorum, 1) {
			people = append(people, fmt.Sprintf("approver-%d@example.com", i+1))
		}
	}
	for _, role := range run.Bundle().Content().Roles {
		if !slices.Contains(held.Approvers, role.Role) {
			continue
		}
		for _, who := range role.Actors {
			known := func(other string) bool { return policy.SamePerson(other, who) }
			if len(people) < max(held.Quorum, 1) && !known(held.Actor) && !slices.ContainsFunc(people, known) {
				people = append(people, who)
			}
		}
	}
	all := make([]policy.Vote, len(people))
	for i, who := range people {
		all[i] = policy.Vote{At: run.Request().At, Binding: binding, By: who, Outcome: outcome, Reason: "as the evaluation says"}
	}
	return all
}

// replays is an attacker who has the votes about another call, and gives them for this one. What the event says of itself
// can be forged as well: then only the votes say what they are about.
func replays(stolen *states.Decided, forged bool) person {
	return func(_ *states.Run, binding canonical.Digest) (states.Event, error) {
		d := &states.Decided{At: stolen.At, Binding: stolen.Binding, Votes: slices.Clone(stolen.Votes)}
		if forged {
			d.Binding = binding
		}
		return d, nil
	}
}

// keeps is a person who agrees, and whose decision somebody keeps.
func keeps(kept **states.Decided) person {
	return func(run *states.Run, binding canonical.Digest) (states.Event, error) {
		ev, err := says(policy.VoteApprove)(run, binding)
		*kept, _ = ev.(*states.Decided)
		return ev, err
	}
}
