package ledger

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
)

// A tokenEvent is an event about a token.
type tokenEvent struct {
	event   Event // without its payload
	payload payload
}

// events checks the chain of all events, oldest first, and compares the table of decisions with it.
func (v *verifier) events() error {
	next, stop := iter.Pull2(v.r.Decisions(everything))
	defer stop()
	end := link{hash: Origin}
	for e, err := range v.r.Events(everything) {
		if err != nil {
			return unread("events", eventKey(end.seq), err)
		}
		if v.report.Events == 0 {
			if err := v.begin(&e, &end); err != nil {
				return err
			}
		}
		v.report.Events++
		if err := e.follows(end); err != nil {
			return fault("events", eventKey(e.Seq), err)
		}
		end = link{e.Seq, e.At, e.Hash}
		if err := v.atCheckpoint(end); err != nil {
			return err
		}
		if err := v.event(&e, next); err != nil {
			return err
		}
		if err := v.step(); err != nil {
			return err
		}
	}
	v.report.Size, v.report.Head = end.seq, end.hash
	if err := v.whole(end); err != nil {
		return err
	}
	if d, err, more := next(); more {
		if err != nil {
			return unread("decisions", "the last that has an event", err)
		}
		return &Fault{"decisions", eventKey(d.Seq), "no event tells of it"}
	}
	return nil
}

// begin checks the first event. If it is not event 1, it must follow what was pruned, which a later event says.
func (v *verifier) begin(e *Event, end *link) error {
	if e.Seq > 1 {
		v.cut = link{seq: e.Seq - 1, hash: e.Prev}
		*end = v.cut
		v.report.Pruned = v.cut.seq
	}
	last, err := v.r.Last()
	if err != nil {
		return unread("events", "the last", err)
	}
	v.total = 2 * (last.Seq - v.cut.seq)
	c := v.o.Checkpoint
	switch {
	case c == nil || c.Size == 0 || c.Size > v.cut.seq:
		return nil
	case c.Size < v.cut.seq:
		return fmt.Errorf("%w (it is of event %d, and what is left begins behind %d)", ErrCheckpointPruned, c.Size, v.cut.seq)
	}
	return v.atCheckpoint(v.cut)
}

// follows checks an event's hash, and its link to the event before it.
func (e *Event) follows(before link) error {
	switch {
	case e.Seq != before.seq+1:
		return fmt.Errorf("it follows event %d: what was between is missing", before.seq)
	case e.digest() != e.Hash:
		return errors.New("its hash is not that of its content")
	case e.Prev != before.hash:
		return errors.New("it was chained to another event")
	case e.At < before.at:
		return fmt.Errorf("its time %s is before that of the event before it, %s", e.At, before.at)
	}
	if t, err := time.Parse(timeForm, e.At); err != nil || t.Format(timeForm) != e.At {
		return fmt.Errorf("its time %q is not of the form %s", e.At, timeForm)
	}
	return nil
}

// atCheckpoint compares the event that the checkpoint is of.
func (v *verifier) atCheckpoint(at link) error {
	c := v.o.Checkpoint
	if c == nil || c.Size != at.seq || c.Head == at.hash {
		return nil
	}
	return &Fault{"events", eventKey(at.seq), fmt.Sprintf(
		"its hash is %s, the checkpoint has %s: the past was written anew, or the checkpoint is of another ledger", at.hash.Short(), c.Head.Short())}
}

// event checks one event by itself. Its run is checked later.
func (v *verifier) event(e *Event, next func() (Decision, error, bool)) error {
	key := eventKey(e.Seq)
	blank, err := newPayload(e.Type)
	if err != nil {
		return fault("events", key, err)
	}
	switch blank.(type) {
	case *tokenCreated, *tokenRevoked, *pruned, *passed:
		if e.RunID != "" || e.RunPrev != "" {
			return &Fault{"events", key, fmt.Sprintf("%s is about no run", e.Type)}
		}
		return v.apart(e)
	}
	if e.RunID == "" {
		return &Fault{"events", key, fmt.Sprintf("%s must be about a run", e.Type)}
	}
	v.ofRuns++
	if e.Type != DecisionMade {
		return nil
	}
	p, err := v.payload(e)
	if err != nil {
		return err
	}
	return v.decision(e, p.(*decision), next)
}

// payload decodes the payload of an event.
func (v *verifier) payload(e *Event) (payload, error) {
	key := eventKey(e.Seq)
	value, err := v.blobs.value(string(e.Payload), "events", key)
	if err != nil {
		return nil, err
	}
	p, err := parsePayload(e.Type, value)
	if err != nil {
		return nil, fault("events", key, err)
	}
	v.blobs.use(e.Seq, references(e, p))
	return p, nil
}

// decision compares the next row of decisions with its event.
func (v *verifier) decision(e *Event, p *decision, next func() (Decision, error, bool)) error {
	key := eventKey(e.Seq)
	have, err, more := next()
	want := p.row(e)
	switch {
	case err != nil:
		return unread("decisions", key, err)
	case !more || have.Seq > want.Seq:
		return &Fault{"decisions", key, "it is missing"}
	case have.Seq < want.Seq:
		return &Fault{"decisions", eventKey(have.Seq), "no event tells of it"}
	case have != want:
		return &Fault{"decisions", key, "its " + differing(want, have) + " is not what its event says"}
	}
	v.report.Decisions++
	return nil
}

// apart checks an event that belongs to no run.
func (v *verifier) apart(e *Event) error {
	p, err := v.payload(e)
	if err != nil {
		return err
	}
	if m, ok := p.(*passed); ok {
		return v.passage(e, m)
	}
	gone, ok := p.(*pruned)
	if !ok {
		v.told = append(v.told, tokenEvent{Event{Seq: e.Seq, At: e.At}, p})
		return nil
	}
	switch {
	case gone.Seq >= e.Seq || gone.Events < 1 || gone.Events > gone.Seq:
		return &Fault{"events", eventKey(e.Seq), "it says that events were removed that cannot have been there"}
	case v.pruned != nil && gone.Seq != v.pruned.Seq+gone.Events:
		return &Fault{"events", eventKey(e.Seq), "it does not go on where the prune before it ended"}
	}
	if err := gone.check(v.pruned); err != nil {
		return fault("events", eventKey(e.Seq), err)
	}
	v.pruned = gone
	return nil
}

// whole checks that nothing is missing at the ends.
func (v *verifier) whole(end link) error {
	if c := v.o.Checkpoint; c != nil && c.Size > end.seq {
		return &Fault{"events", eventKey(end.seq + 1), fmt.Sprintf(
			"it is missing: the end was cut off, for the checkpoint is of event %d", c.Size)}
	}
	var recorded link
	if v.pruned != nil {
		recorded = link{seq: v.pruned.Seq, hash: v.pruned.Head}
	}
	switch {
	case recorded.seq > v.cut.seq:
		return &Fault{"events", eventKey(v.cut.seq + 1), fmt.Sprintf("it was pruned, says %s: it should not be there", LedgerPruned)}
	case recorded.seq < v.cut.seq:
		return &Fault{"events", eventKey(v.cut.seq), fmt.Sprintf("it is missing, and no %s says why", LedgerPruned)}
	case recorded.hash != v.cut.hash:
		return &Fault{"events", eventKey(v.cut.seq + 1), fmt.Sprintf("it does not follow what %s says was removed", LedgerPruned)}
	}
	return nil
}

// tokens computes all tokens from their events, or from the last prune, and compares them with their rows.
func (v *verifier) tokens() error {
	v.tags = make(map[string]Token)
	if v.pruned != nil {
		for _, t := range v.pruned.Tokens {
			v.tags[t.ID] = t
		}
	}
	if err := follow(v.tags, v.told); err != nil {
		return err
	}
	v.told = nil
	seen := make(map[string]bool, len(v.tags))
	last := "the first"
	for have, err := range v.r.Tokens() {
		if err != nil {
			return unread("tokens", last, err)
		}
		last = have.ID
		want, ok := v.tags[have.ID]
		switch {
		case !ok:
			return &Fault{"tokens", have.ID, "no event tells of it"}
		case have != want:
			return &Fault{"tokens", have.ID, "its " + differing(want, have) + " is not what its events say"}
		}
		seen[have.ID] = true
		v.report.Tokens++
	}
	for _, id := range slices.Sorted(maps.Keys(v.tags)) {
		if !seen[id] {
			return &Fault{"tokens", id, "it is missing"}
		}
	}
	return nil
}

// tokenID is the token that an event is about.
func tokenID(p payload) string {
	switch p := p.(type) {
	case *tokenCreated:
		return p.ID
	case *tokenRevoked:
		return p.ID
	}
	return ""
}
