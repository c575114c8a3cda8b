package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

// checkRuns computes every request from its events, one run after the other, and compares it with
// its row.
func (v *verifier) checkRuns() error {
	last, seen := "", int64(0)
	for q, err := range v.r.Runs(Filter{}) {
		if err != nil {
			return unreadFault("requests", v.runAfter(last), err)
		}
		last = q.RunID
		n, err := v.checkRun(&q)
		if err != nil {
			return err
		}
		seen += n
		v.report.Requests++
	}
	if seen != v.runEntries {
		return v.findOrphan()
	}
	return nil
}

// runAfter returns the first run, in the order of ids, that comes after the run last and has an
// entry. If there is none, it returns last. If the row of a request cannot be read, the row is most
// likely that of this run.
func (v *verifier) runAfter(last string) string {
	next := ""
	for e, err := range v.r.Entries(everything) {
		if err == nil && e.RunID > last && (next == "" || e.RunID < next) {
			next = e.RunID
		}
	}
	return cmp.Or(next, last)
}

// findOrphan returns a fault for the first run that has an entry but no request.
func (v *verifier) findOrphan() error {
	for e, err := range v.r.Entries(everything) {
		if err != nil {
			return unreadFault("entries", "the last", err)
		}
		if e.RunID == "" {
			continue
		}
		if _, err := v.r.Run(e.RunID); errors.Is(err, ErrNotFound) {
			return &Fault{"requests", e.RunID, fmt.Sprintf("it is missing, and entry %d tells of it", e.Index)}
		} else if err != nil {
			return unreadFault("requests", e.RunID, err)
		}
	}
	return &Fault{"entries", "of runs", "looking them up by run does not find all of them: the index is damaged"}
}

// A runVerifier computes the history of one run from its entries, and checks it.
type runVerifier struct {
	verifier    *verifier
	prev        string // the link to the previous entry
	row         RunRow // the projection of the entries so far
	first       *requestCreated
	scored      *riskScored
	judged      *decisionMade // the decision of risk rules and policies before an approval
	asked       *approvalRequested
	heldAt      int           // how many steps lead to the hold
	judgedAgain *decisionMade // the decision after the approval
	votes       []policy.Vote
	sent        *proxySent
	returned    *toolResult
	ended       *runEnded
	inputs      []traces.Input
}

// checkRun checks one run and returns how many entries it has.
func (v *verifier) checkRun(have *RunRow) (int64, error) {
	s := &runVerifier{verifier: v}
	if id, err := uuid.Parse(have.RunID); err != nil || id.String() != have.RunID {
		return 0, &Fault{"requests", have.RunID, "the run id is not a UUID"}
	}

	n := int64(0)
	for e, err := range v.r.EntriesOf(have.RunID) {
		if err != nil {
			return n, unreadFault("entries", "of run "+have.RunID, err)
		}
		n++
		if err := s.addEntry(&e, have.RunID); err != nil {
			return n, err
		}
		if err := v.countEntry(); err != nil {
			return n, err
		}
	}

	// The row must be what the entries make of it.
	if s.first == nil {
		return n, &Fault{"requests", have.RunID, rowOfNothing}
	}
	if name := differingColumn(s.row, *have); name != "" {
		return n, &Fault{"requests", have.RunID, "its " + name + " is not what its entries say"}
	}

	if isRef(have.Args) {
		if _, err := v.blobs.checkedValue(have.Args, "requests", have.RunID); err != nil {
			return n, err
		}
	}

	return n, s.reexecute()
}

// addEntry adds one entry to the history.
func (s *runVerifier) addEntry(e *Entry, run string) error {
	key := entryKey(e.Index)
	hash := e.computeHash()
	stored, err := leafHash(s.verifier.r, e.Index)

	switch {
	case err != nil:
		return unreadFault("tree", key, err)
	case e.RunID != run || stored != hash || s.row.Entries > 0 && e.Index <= s.row.Entry:
		return &Fault{"entries", key, "looking it up by its run finds another one: the index is damaged"}
	case e.N != s.row.Entries || e.Prev != s.prev:
		return &Fault{"entries", key, "it is linked to another entry of its run"}
	}

	decoded, err := s.verifier.decodePayloads(e)
	if err != nil {
		return err
	}

	for _, p := range decoded {
		if err := s.addEvent(&Event{Index: e.Index, RunID: run, Type: p.eventType(), At: e.At, By: e.By}, p); err != nil {
			return asFault("entries", key, err)
		}
	}

	s.row.Entry, s.row.Entries, s.prev = e.Index, e.N+1, encodeLink(hash)
	return nil
}

// addEvent adds one event to the history.
func (s *runVerifier) addEvent(e *Event, p payload) error {
	if p.aboutNoRun() {
		return fmt.Errorf("%s is about no run", e.Type)
	}
	if err := s.checkEvent(e, p); err != nil {
		return err
	}
	if err := projectEvent(&s.row, e, p); err != nil {
		return err
	}
	if part, ok := p.(recording); ok {
		if err := s.addInputs(e, part.runRecord()); err != nil {
			return err
		}
	}
	return s.storePayload(e, p)
}

// addInputs adds a part of the run's record.
func (s *runVerifier) addInputs(e *Event, r *record) error {
	key := entryKey(e.Index)
	inputs, err := r.resolveInputs(func(ref string) (jsontext.Value, error) {
		return s.verifier.blobs.checkedValue(ref, "entries", key)
	})
	if err != nil {
		return asFault("entries", key, err)
	}
	s.inputs = append(s.inputs, inputs...)
	return nil
}

// checkEvent returns an error for an event that is not allowed, besides the checks of
// [projectEvent]. It finds calls without a decision, decisions without the required votes, and
// repeated events.
func (s *runVerifier) checkEvent(e *Event, p payload) error {
	q := &s.row
	switch p := p.(type) {
	case *decisionMade:
		switch {
		// Only an approved call is judged again, by the active bundle.
		case p.Bundle != "" && q.Status != Approved:
			return errors.New("it was decided by another bundle than the run's")
		case policy.Outcome(p.Outcome) != policy.Block && q.Status != Proposed && q.Status != Approved:
			return fmt.Errorf("a policy decided %s about a request that is %s", p.Outcome, q.Status)
		}
	case *approvalRequested:
		if s.asked != nil {
			return errors.New("people are asked twice")
		}
	case *approvalVote:
		return s.checkVote(e, p)
	case *approvalExpired:
		if p.Binding != q.Binding || p.Expires != q.Expires || policy.IsBefore(e.At, q.Expires) {
			return errors.New("an expiry that is not that of the request, or is before it")
		}
	case *proxySent:
		if q.Owner == "" {
			return errors.New("a call of a run that no process has")
		}
		return s.checkSend(e)
	case *toolResult:
		if s.returned != nil {
			return errors.New("a second result")
		}
	case *runEnded:
		return s.checkEnd(p)
	}
	return nil
}

// checkVote checks one vote.
func (s *runVerifier) checkVote(e *Event, p *approvalVote) error {
	q := &s.row
	token, known := s.verifier.tokens[p.Token]
	bundle, err := s.verifier.bundles.compiledBundle(s.verifier.r, q.Bundle)
	if err != nil { // this version cannot compile the bundle, so its roles and names are unknown
		bundle = new(policy.Bundle)
	}

	switch {
	case s.asked == nil:
		return errors.New("a vote about a request that was not held")
	case q.Status != Pending:
		return fmt.Errorf("a vote about a request that is %s", q.Status)
	case !policy.IsBefore(e.At, q.Expires):
		return errors.New("a vote after the request had expired")
	case !p.approve && e.By == q.Actor:
		return s.checkWithdrawal(e, p)
	case bundle.SamePerson(e.By, q.Actor), q.OnBehalfOf != "" && bundle.SamePerson(e.By, q.OnBehalfOf):
		return errors.New("a vote about one's own request")
	case slices.ContainsFunc(s.votes, func(v policy.Vote) bool { return bundle.SamePerson(v.By, e.By) }):
		return errors.New("a second vote of one person")
	case err == nil && !bundle.Eligible(heldCall(q), e.By, p.Groups).Allows():
		return errors.New("a vote of a person who has none of the roles that may decide")
	case err == nil && !slices.Equal(p.Groups, bundle.RoleGroups(&policy.Identity{Groups: &p.Groups})):
		return errors.New("a vote with groups that no role names")
	case p.approve && p.Decides != (q.Agreed+1 >= max(q.Quorum, 1)):
		return fmt.Errorf("%d of %d people have approved with it, so its member decides is wrong", q.Agreed+1,
			max(q.Quorum, 1))
	case p.Token == "" && policy.HasSubject(e.By):
		return s.verifier.checkNotBlocked(e.Index, e.By)
	case !known || token.Name != e.By || token.Role != RoleApprover:
		return errors.New("the token of the vote is not one of the person as an approver")
	}

	return checkTokenAt(&token, e)
}

// checkSend checks that nobody whose block stops the call was blocked: the requester, the person
// for whom they act, or a voter.
func (s *runVerifier) checkSend(e *Event) error {
	names := []string{s.row.Actor, s.row.OnBehalfOf}
	for i := range s.votes {
		names = append(names, s.votes[i].By)
	}
	return s.verifier.checkNotBlocked(e.Index, names...)
}

// checkEnd compares an outcome with the events of the run.
func (s *runVerifier) checkEnd(p *runEnded) error {
	o := &p.Outcome
	switch o.Type {
	case states.TypeToolResult, states.TypeSummary:
		if s.returned == nil || o.Effect != states.EffectDone {
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

// storePayload stores the payloads that [runVerifier.compareSteps] compares with the steps.
func (s *runVerifier) storePayload(e *Event, p payload) error {
	switch p := p.(type) {
	case *requestCreated:
		s.first = p
		_, err := s.verifier.blobs.checkedText(p.Bundle, BlobBundle, "entries", entryKey(e.Index))
		return err
	case *riskScored:
		s.scored = p
	case *decisionMade:
		if s.judged == nil && s.scored != nil {
			s.judged = p
		}
		if s.asked != nil {
			s.judgedAgain = p
		}
	case *approvalRequested:
		s.asked, s.heldAt = p, len(s.inputs)
	case *approvalVote:
		s.votes = append(s.votes, p.asVote(e.At, e.By))
	case *proxySent:
		s.sent = p
	case *toolResult:
		s.returned = p
	case *runEnded:
		s.ended = p
	}
	return nil
}
