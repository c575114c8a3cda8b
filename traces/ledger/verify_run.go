package ledger

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

// requests computes every request from its events, one run after the other, and checks its steps.
func (v *verifier) requests() error {
	next, stop := iter.Pull2(v.r.Runs())
	defer stop()
	last, seen := "", int64(0)
	withSteps, err, more := next()
	for q, readErr := range v.r.Requests(Filter{}) {
		if readErr != nil {
			if more && withSteps > last { // the row is most likely that of the next run with steps
				last = withSteps
			}
			return unread("requests", last, readErr)
		}
		last = q.RunID
		if more && err == nil && withSteps < q.RunID {
			return v.stray(withSteps)
		}
		if err != nil {
			return unread("steps", last, err)
		}
		if more && withSteps == q.RunID {
			withSteps, err, more = next()
		}
		n, err := v.run(&q)
		if err != nil {
			return err
		}
		seen += n
		v.report.Requests++
	}
	switch {
	case err != nil:
		return unread("steps", last, err)
	case more:
		return v.stray(withSteps)
	case seen != v.ofRuns:
		return v.orphan()
	}
	return nil
}

// stray returns the fault of steps whose run has no request.
func (v *verifier) stray(run string) error {
	for _, err := range v.r.EventsOf(run) {
		if err != nil {
			return unread("events", "of run "+run, err)
		}
		return &Fault{"requests", run, "it is missing"}
	}
	return &Fault{"steps", stepKey(run, 0), "no event tells of the run"}
}

// orphan finds the first event of a run that has no request.
func (v *verifier) orphan() error {
	for e, err := range v.r.Events(everything) {
		if err != nil {
			return unread("events", "the last", err)
		}
		if e.RunID == "" {
			continue
		}
		if _, err := v.r.Request(e.RunID); errors.Is(err, ErrNotFound) {
			return &Fault{"requests", e.RunID, fmt.Sprintf("it is missing, and event %d tells of it", e.Seq)}
		} else if err != nil {
			return unread("requests", e.RunID, err)
		}
	}
	return &Fault{"events", "of runs", "looking them up by run does not find all of them: the index is damaged"}
}

// A story is the history of one run, as its events have it.
type story struct {
	v       *verifier
	request Request // as far as it was made
	first   *created
	scored  *scored
	judged  *decision // what risk and policy came to at first
	asked   *asked
	votes   []policy.Vote
	sent    *sent
	result  *returned
	ended   *ended
	endedAt int64 // seq of that event
	anchors []anchor
	events  []int64 // of the anchors
}

// run checks one run and returns how many events it has.
func (v *verifier) run(have *Request) (int64, error) {
	s := &story{v: v}
	if id, err := uuid.Parse(have.RunID); err != nil || id.String() != have.RunID {
		return 0, &Fault{"requests", have.RunID, "the run id is not a UUID"}
	}
	n := int64(0)
	for e, err := range v.r.EventsOf(have.RunID) {
		if err != nil {
			return n, unread("events", "of run "+have.RunID, err)
		}
		n++
		if err := s.event(&e, have.RunID); err != nil {
			return n, err
		}
		if err := v.step(); err != nil {
			return n, err
		}
	}
	if s.first == nil {
		return n, &Fault{"requests", have.RunID, "no event tells of it"}
	}
	if name := differing(s.request, *have); name != "" {
		return n, &Fault{"requests", have.RunID, "its " + name + " is not what its events say"}
	}
	if isRef(have.Args) {
		if _, err := v.blobs.value(have.Args, "requests", have.RunID); err != nil {
			return n, err
		}
	}
	return n, s.steps()
}

// event adds one event to the history.
func (s *story) event(e *Event, run string) error {
	key := eventKey(e.Seq)
	switch {
	case e.RunID != run || e.Seq <= s.request.Seq || e.digest() != e.Hash:
		return &Fault{"events", key, "looking it up by its run finds another one: the index is damaged"}
	case e.RunPrev != s.request.Hash:
		return &Fault{"events", key, "it was chained to another event of its run"}
	}
	p, err := s.v.payload(e)
	if err != nil {
		return err
	}
	if err := s.may(e, p); err != nil {
		return fault("events", key, err)
	}
	if err := project(&s.request, e, p); err != nil {
		return fault("events", key, err)
	}
	return s.note(e, p)
}

// may returns why an event is not allowed, besides what [project] checks: no call without a decision, no decision without the
// required votes, and nothing twice.
func (s *story) may(e *Event, p payload) error {
	q := &s.request
	switch p := p.(type) {
	case *decision:
		switch {
		case p.Bundle != q.Bundle:
			return errors.New("it was decided by another bundle than the run's")
		case policy.Outcome(p.Outcome) != policy.Block && q.Status != Proposed && q.Status != Approved:
			return fmt.Errorf("a policy decided %s about a request that is %s", p.Outcome, q.Status)
		}
	case *asked:
		if s.asked != nil {
			return errors.New("people are asked twice")
		}
	case *voted:
		return s.mayVote(e, p)
	case *expired:
		if p.Binding != q.Binding || p.Expires != q.Expires || policy.Before(e.At, q.Expires) {
			return errors.New("an expiry that is not that of the request, or is before it")
		}
	case *sent:
		if q.Owner == "" {
			return errors.New("a call of a run that no process has")
		}
	case *returned:
		if s.result != nil {
			return errors.New("a second result")
		}
	case *ended:
		return s.mayEnd(p)
	}
	return nil
}

// mayVote checks one vote.
func (s *story) mayVote(e *Event, p *voted) error {
	q := &s.request
	token, known := s.v.tags[p.Token]
	switch {
	case s.asked == nil:
		return errors.New("a vote about a request that was not held")
	case q.Status != Pending:
		return fmt.Errorf("a vote about a request that is %s", q.Status)
	case !policy.Before(e.At, q.Expires):
		return errors.New("a vote after the request had expired")
	case !p.approve && e.By == q.Actor:
		return s.mayWithdraw(e, p)
	case policy.SamePerson(e.By, q.Actor):
		return errors.New("a vote about one's own request")
	case slices.ContainsFunc(s.votes, func(v policy.Vote) bool { return policy.SamePerson(v.By, e.By) }):
		return errors.New("a second vote of one person")
	case !known || token.Name != e.By || token.Role != RoleApprover:
		return errors.New("the token of the vote is not one of the person as an approver")
	case p.approve && p.Decides != (q.Agreed+1 >= max(q.Quorum, 1)):
		return fmt.Errorf("%d of %d people have approved with it, so its member decides is wrong", q.Agreed+1, max(q.Quorum, 1))
	}
	return validThen(&token, e)
}

// mayEnd compares an outcome with what happened.
func (s *story) mayEnd(p *ended) error {
	o := &p.Outcome
	switch o.Type {
	case states.TypeToolResult, states.TypeSummary:
		if s.result == nil || o.Effect != states.EffectDone {
			return errors.New("an answer without a result")
		}
	case states.TypeBlocked, states.TypeFinalAnswer:
		if s.sent != nil || o.Effect != states.NotSent {
			return errors.New("a run whose call left ends as if nothing was sent")
		}
	case states.TypeFailed:
		if s.sent == nil && o.Effect != states.NotSent {
			return errors.New("a run whose call did not leave ends as if it had")
		}
	default:
		return fmt.Errorf("a run cannot end as %q", o.Type)
	}
	return nil
}

// note remembers what the steps must contain, too.
func (s *story) note(e *Event, p payload) error {
	switch p := p.(type) {
	case *created:
		s.first = p
		_, err := s.v.blobs.text(p.Bundle, BlobBundle, "events", eventKey(e.Seq))
		return err
	case *reserved:
		s.anchor(e, p.anchor)
	case *scored:
		s.scored = p
	case *decision:
		if s.judged == nil && s.scored != nil {
			s.judged = p
		}
	case *asked:
		s.asked = p
		s.anchor(e, p.anchor)
	case *voted:
		w := policy.Vote{At: e.At, Binding: p.Binding, By: e.By, Outcome: policy.VoteDeny, Reason: p.Reason}
		if p.approve {
			w.Outcome = policy.VoteApprove
		}
		s.votes = append(s.votes, w)
	case *sent:
		s.sent = p
		s.anchor(e, p.anchor)
	case *returned:
		s.result = p
	case *ended:
		s.ended, s.endedAt = p, e.Seq
		s.anchor(e, p.anchor)
	}
	return nil
}

func (s *story) anchor(e *Event, a anchor) {
	s.anchors, s.events = append(s.anchors, a), append(s.events, e.Seq)
}

// steps reads the run's steps and checks their chain, their header, and the events that anchor them.
func (s *story) steps() error {
	run := s.request.RunID
	var steps []traces.Step
	for row, err := range s.v.r.Steps(run) {
		if err != nil {
			return unread("steps", stepKey(run, len(steps)), err)
		}
		key := stepKey(run, row.Seq)
		if row.RunID != run {
			return &Fault{"steps", key, "looking it up by its run finds another one: the index is damaged"}
		}
		step, err := row.whole(s.v.blobs.getter("steps", key))
		if err != nil {
			return fault("steps", key, err)
		}
		steps = append(steps, step)
		s.v.report.Steps++
	}
	header := s.first.header(run)
	var tampered *traces.TamperError
	if err := traces.CheckChain(&header, steps); errors.As(err, &tampered) {
		return &Fault{"steps", stepKey(run, tampered.Seq), tampered.What}
	} else if err != nil {
		return fault("steps", run, err)
	}
	if err := s.anchored(steps); err != nil {
		return err
	}
	if err := s.agree(steps); err != nil {
		return err
	}
	return s.replay(&header, steps)
}

// anchored checks that events anchor all steps.
func (s *story) anchored(steps []traces.Step) error {
	run := s.request.RunID
	least := 0
	for i, a := range s.anchors {
		key := eventKey(s.events[i])
		switch {
		case a.Steps <= 0 || a.Steps < least:
			return &Fault{"events", key, fmt.Sprintf("it anchors %d steps", a.Steps)}
		case a.Steps > len(steps):
			return &Fault{"steps", stepKey(run, len(steps)), fmt.Sprintf("it is missing: event %s anchors %d steps", key, a.Steps)}
		case steps[a.Steps-1].Hash != a.Last:
			return &Fault{"steps", stepKey(run, a.Steps-1), fmt.Sprintf("its hash is not the one that event %s anchors", key)}
		}
		least = a.Steps
	}
	if len(steps) > least {
		return &Fault{"steps", stepKey(run, least), "no event anchors it"}
	}
	if s.ended != nil && s.ended.Head != traces.Head(s.ended.Last, s.ended.Outcome) {
		return &Fault{"events", eventKey(s.endedAt), "the head is not that of the last step and the outcome"}
	}
	return nil
}

// replay executes the run again, if that is wanted and the run has ended or is held.
func (s *story) replay(h *traces.Header, steps []traces.Step) error {
	p := s.v.o.Replayer
	if p == nil || s.ended == nil && (s.asked == nil || s.sent != nil) {
		return nil
	}
	run := s.request.RunID
	content, err := s.v.blobs.text(h.Bundle.Digest, BlobBundle, "requests", run)
	if err != nil {
		return err
	}
	h.Bundle.Content = []byte(content)
	doc, err := document(s.v.ctx, p, h, steps, s.outcome())
	if err == nil {
		err = again(p, doc)
	}
	if err != nil {
		return fault("steps", stepKey(run, 0), fmt.Errorf("the run does not replay: %w", err))
	}
	s.v.report.Replayed++
	return nil
}

func (s *story) outcome() *states.Outcome {
	if s.ended == nil {
		return nil
	}
	return &s.ended.Outcome
}

// again executes a trace again.
func again(p *traces.Replayer, doc []byte) error {
	t, err := traces.Read(doc)
	if err != nil {
		return err
	}
	_, err = p.Replay(t)
	return err
}

// getter resolves the values of one row.
func (b *blobs) getter(table, key string) resolver {
	return func(value string) (jsontext.Value, error) { return b.value(value, table, key) }
}
