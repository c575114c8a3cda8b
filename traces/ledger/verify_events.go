package ledger

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json"

	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

// compareEvents compares the events of a run with those that follow from its execution. Another build may
// word reasons differently.
func (s *runVerifier) compareEvents(resumption *traces.Resumption) error {
	run, own := resumption.Run, s.row.Bundle
	f := run.Facts()
	scored, decided := assessmentOf(&f)
	hold := holdOf(&f)
	again, sent := dispatchOf(&f, own)
	againDelegated, handed := delegateOf(&f, own)
	reported, rewritten, silent := reportsOf(&f)

	decisions := withoutNil(decided, again, againDelegated)
	id := ""
	if len(decisions) > 0 {
		id = decisions[len(decisions)-1].Policy
	}
	decisions = append(decisions, withoutNil(stopOf(&f, own, id))...)
	if len(decisions) != len(s.decisions) {
		return fmt.Errorf("%d decisions are recorded, and the run has %d", len(s.decisions), len(decisions))
	}
	for i := range decisions {
		if err := sameEvent(decisions[i], s.decisions[i]); err != nil {
			return err
		}
	}

	if call := plannedCallOf(run); !reflect.DeepEqual(call, s.first.Call) {
		return fmt.Errorf("the call of %s is not what the run planned", RequestCreated)
	}
	if hold != nil && s.asked != nil {
		hold.Last = s.asked.Last // compared with the trace
	}
	if votes := decidedVotes(resumption.Steps()); votes != nil && !slices.EqualFunc(votes, s.votes, policy.Vote.Equal) {
		return fmt.Errorf("the votes are not those that the run read")
	}
	for _, pair := range [][2]payload{{scored, s.scored}, {hold, s.asked}, {sent, s.sent}, {resultOf(&f), s.returned},
		{handed, s.delegated}, {reported, s.reported}, {rewritten, s.rewritten}, {silent, s.silent}} {
		if err := sameEvent(pair[0], pair[1]); err != nil {
			return err
		}
	}
	return nil
}

func withoutNil(decisions ...*decisionMade) []*decisionMade {
	return slices.DeleteFunc(decisions, func(d *decisionMade) bool { return d == nil })
}

// isAbsent reports whether an event does not happen: see [assessmentOf].
func isAbsent(p payload) bool { return reflect.ValueOf(p).IsNil() }

// sameEvent compares an event that follows from the run with the recorded one, without steps and reasons.
func sameEvent(want, have payload) error {
	if isAbsent(want) || isAbsent(have) {
		if isAbsent(want) && isAbsent(have) {
			return nil
		}
		return fmt.Errorf("%s is recorded, and follows not from the run, or the reverse", want.eventType())
	}
	var forms [2][]byte
	for i, p := range []payload{want, have} {
		form, err := encodePayload(withoutSteps(p))
		if err != nil {
			return err
		}
		forms[i] = form
	}
	if !bytes.Equal(forms[0], forms[1]) {
		return fmt.Errorf("%s is not what follows from the run", want.eventType())
	}
	return nil
}

// withoutSteps returns a copy of an event without its part of the run's record, and without a reason.
func withoutSteps(p payload) payload {
	switch p := p.(type) {
	case *decisionMade:
		c := *p
		c.Reason = ""
		return &c
	case *approvalRequested:
		c := *p
		c.record = record{}
		return &c
	case *proxySent:
		c := *p
		c.record = record{}
		return &c
	case *callDelegated:
		c := *p
		c.record = record{}
		return &c
	}
	return p
}

// decidedVotes returns the votes that a run read; nil if it read none.
func decidedVotes(steps []traces.Step) (votes []policy.Vote) {
	for i := range steps {
		var d states.Decided
		if steps[i].From == states.Pending && json.Unmarshal(steps[i].Event, &d) == nil && d.Happened == "decided" {
			votes = d.Votes
		}
	}
	return votes
}
