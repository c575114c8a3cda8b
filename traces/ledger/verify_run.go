package ledger

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

// checkRunEntry adds an entry to the history of its run. A run whose last entry it is, is compared
// with its row.
func (v *verifier) checkRunEntry(e *Entry) error {
	s := v.runs[e.RunID]
	if s == nil {
		s = &runVerifier{verifier: v}
		v.runs[e.RunID] = s
	}
	if err := s.addEntry(e); err != nil {
		return err
	}
	if !s.row.isFinal() {
		return nil
	}
	delete(v.runs, e.RunID)
	return s.finish()
}

// checkOpenRuns compares the runs that may get further entries with their rows.
func (v *verifier) checkOpenRuns() error {
	for _, run := range slices.Sorted(maps.Keys(v.runs)) {
		if err := v.runs[run].finish(); err != nil {
			return err
		}
	}
	return nil
}

// checkExtraRuns returns a fault for a row of a run that has no entries.
func (v *verifier) checkExtraRuns() error {
	last, rows := "the first", int64(0)
	for q, err := range v.r.Runs(Filter{}) {
		if err != nil {
			return unreadFault("requests", last, err)
		}
		begins, err := beginsRun(v.r, &q)
		switch {
		case err != nil:
			return unreadFault("requests", q.RunID, err)
		case !begins:
			return newFault("requests", q.RunID, rowOfNothing)
		}
		last, rows = q.RunID, rows+1
	}
	if rows != v.report.Requests {
		return newFault("requests", last, fmt.Sprintf("the table has %d rows, and looking each up finds %d: the index is damaged",
			rows, v.report.Requests))
	}
	return nil
}

// A runVerifier computes the history of one run from its entries, and checks it.
type runVerifier struct {
	verifier  *verifier
	prev      string // the link to the previous entry
	row       RunRow // the projection of the entries so far
	first     *requestCreated
	scored    *riskScored
	decisions []*decisionMade
	asked     *approvalRequested
	heldAt    int // how many steps lead to the hold
	votes     []policy.Vote
	sent      *proxySent
	returned  *toolResult
	delegated *callDelegated
	reported  *callReported
	rewritten *callRewritten
	silent    *callUnreported
	ended     *runEnded
	inputs    []traces.Input
	lastAt    string // the time of the last input
	earlier   [3]int // prompts and calls of its session, and calls of its requester, before it
}

// finish compares the history with the row of the run, and executes the run again.
func (s *runVerifier) finish() error {
	run := s.row.RunID
	if id, err := uuid.Parse(run); err != nil || id.String() != run {
		return faultOf(ruleClass, "requests", run, "the run id is not a UUID")
	}
	have, err := s.verifier.r.Run(run)
	switch {
	case errors.Is(err, ErrNotFound):
		return newFault("requests", run, fmt.Sprintf("it is missing, and entry %d tells of it", s.row.First))
	case err != nil:
		return unreadFault("requests", run, err)
	}
	if name := differingColumn(s.row, have); name != "" {
		return newFault("requests", run, "its "+name+" is not what its entries say")
	}
	s.verifier.report.Requests++
	return s.reexecute()
}

// addEntry adds one entry to the history.
func (s *runVerifier) addEntry(e *Entry) error {
	key := entryKey(e.Index)
	if e.N != s.row.Entries || e.Prev != s.prev {
		return faultOf(ruleChain, "entries", key, "it is linked to another entry of its run")
	}

	decoded, err := e.decodeEvents()
	if err != nil {
		return asFault("entries", key, err)
	}

	for i := range decoded {
		one := &decoded[i]
		s.verifier.blobs.noteUsed(payloadReferences(one.payload))
		if err := s.verifier.generations.resolve(s.verifier.r, one); err != nil {
			return asFault("entries", key, err)
		}
		if err := s.addEvent(&one.event, one.payload); err != nil {
			return asFault("entries", key, err)
		}
	}

	s.row.Entry, s.row.Entries, s.prev = e.Index, e.N+1, encodeLink(e.computeHash())
	return nil
}

// addEvent adds one event to the history.
func (s *runVerifier) addEvent(e *Event, p payload) error {
	if p.class() != ClassRun {
		return ruleClass.Broken("%s is about no run", e.Type)
	}
	if err := s.checkEvent(e, p); err != nil {
		return err
	}
	if err := projectEvent(&s.row, e, p); err != nil {
		return err
	}
	switch p := p.(type) {
	case *requestCreated:
		s.lastAt = p.Request.At
		s.earlier[0], s.earlier[1], s.earlier[2] = s.verifier.counts.countsBefore(&p.Request)
	case *proxySent, *callDelegated:
		s.verifier.counts.addCall(&s.first.Request)
	}
	if part, ok := p.(recording); ok {
		if err := s.addInputs(e, part.runRecord()); err != nil {
			return err
		}
	}
	s.storePayload(e, p)
	return nil
}

// addInputs adds a part of the run's record.
func (s *runVerifier) addInputs(e *Event, r *record) error {
	key := entryKey(e.Index)
	read := func(d canonical.Digest) (string, error) {
		return s.verifier.blobs.checkedText(d, BlobValue, "entries", key)
	}
	for i := range r.Inputs {
		if err := r.Inputs[i].checkForm(read); err != nil {
			return asFault("entries", key, err)
		}
	}
	inputs, err := r.resolveInputs(&s.lastAt, read)
	if err != nil {
		return asFault("entries", key, err)
	}
	s.inputs = append(s.inputs, inputs...)
	return asFault("entries", key, s.checkOrigins(r))
}

// checkEvent returns an error for an event that is not allowed, besides the checks of
// [projectEvent]. It finds calls without a decision, decisions without the required votes, and
// repeated events.
func (s *runVerifier) checkEvent(e *Event, p payload) error {
	q := &s.row
	switch p := p.(type) {
	case *requestCreated:
		if err := s.verifier.checkRequestAccount(p); err != nil {
			return err
		}
		if err := s.verifier.checkSession(p); err != nil {
			return err
		}
		return s.checkRequester(e, p)
	case *decisionMade:
		switch {
		// Only an approved call is judged again, by the active bundle.
		case p.Bundle != "" && q.Status != Approved:
			return ruleDecision.Broken("it was decided by another bundle than the run's")
		case policy.Outcome(p.Outcome) != policy.Block && q.Status != Proposed && q.Status != Approved:
			return ruleDecision.Broken("a policy decided %s about a request that is %s", p.Outcome, q.Status)
		}
	case *approvalRequested:
		if s.asked != nil {
			return ruleHold.Broken("people are asked twice")
		}
		for _, digest := range []canonical.Digest{p.Binding, p.Last} {
			if _, err := canonical.ParseDigest(string(digest)); err != nil {
				return ruleForm.Wrap(err)
			}
		}
	case *approvalVote:
		return s.checkVote(e, p)
	case *approvalExpired:
		if p.Binding != q.Binding || p.Expires != q.Expires || policy.IsBefore(e.At, q.Expires) {
			return ruleExpiry.Broken("an expiry that is not that of the request, or is before it")
		}
	case *proxySent:
		if q.Owner == "" {
			return ruleCall.Broken("a call of a run that no process has")
		}
		return s.checkSend(e, p.decidedAt())
	case *callDelegated:
		if q.Owner == "" {
			return ruleCall.Broken("a permit is handed out for a run that no process has")
		}
		return s.checkSend(e, p.decidedAt())
	case *toolResult:
		if s.returned != nil {
			return ruleResult.Broken("a second result")
		}
	case *callRewritten:
		if s.rewritten != nil {
			return ruleResult.Broken("a call is rewritten twice")
		}
	case *runEnded:
		return s.checkEnd(p)
	}
	return nil
}

// checkVote checks one vote.
func (s *runVerifier) checkVote(e *Event, p *approvalVote) error {
	q := &s.row
	bundle, err := s.verifier.bundles.compiledBundle(s.verifier.r, q.Bundle)
	if err != nil { // this version cannot compile the bundle, so its roles and names are unknown
		bundle = new(policy.Bundle)
	}

	switch {
	case s.asked == nil:
		return ruleVote.Broken("a vote about a request that was not held")
	case q.Status != Pending:
		return ruleVote.Broken("a vote about a request that is %s", q.Status)
	case !policy.IsBefore(e.At, q.Expires):
		return ruleVote.Broken("a vote after the request had expired")
	case p.Expires != s.approvalExpires(e, p):
		return ruleExpiry.Broken("a vote after which the approval expires at %q, should be %q", p.Expires, s.approvalExpires(e, p))
	case !p.approve && e.By == q.Actor:
		return s.checkWithdrawal(e, p)
	case bundle.SamePerson(e.By, q.Actor), q.OnBehalfOf != "" && bundle.SamePerson(e.By, q.OnBehalfOf):
		return ruleVoter.Broken("a vote about one's own request")
	case slices.ContainsFunc(s.votes, func(v policy.Vote) bool { return bundle.SamePerson(v.By, e.By) }):
		return ruleVoter.Broken("a second vote of one person")
	case err == nil && !bundle.Eligible(heldCall(q), e.By, p.Groups).Allows():
		return ruleVoter.Broken("a vote of a person who has none of the roles that may decide")
	case err == nil && s.verifier.stated != nil && !slices.Equal(p.Groups, s.votingGroups(bundle, p)):
		return ruleVoteRight.Broken("a vote with groups on which it does not depend")
	case p.approve && p.Decides != (q.Agreed+1 >= max(q.Quorum, 1)):
		return ruleQuorum.Broken("%d of %d people have approved with it, so its member decides is wrong", q.Agreed+1,
			max(q.Quorum, 1))
	case (p.Credential != nil) != policy.HasSubject(e.By) || p.Credential != nil && (p.Token != "" || !p.Credential.Valid()):
		return ruleVoteRight.Broken("a vote without a token, or with one of another kind")
	case p.Credential != nil && s.verifier.stated != nil:
		if err := checkVoteRight(e.By, p.Groups, &s.first.generation.Settings, &s.verifier.stated.Settings); err != nil {
			return err
		}
		return ruleVoteRight.Wrap(s.verifier.checkNotBlocked(e.Index, e.By))
	case p.Credential != nil:
		return ruleVoteRight.Wrap(s.verifier.checkNotBlocked(e.Index, e.By))
	}

	return ruleVoteRight.Wrap(s.verifier.checkToken(p.Token, e.By, ActVote, e))
}

// approvalExpires returns until when the client may use the approval if this vote decides; empty for other votes.
func (s *runVerifier) approvalExpires(e *Event, p *approvalVote) string {
	if !p.approve || !p.Decides || !s.row.Delegates() {
		return ""
	}
	return s.first.generation.approvalExpires(e.At)
}

// votingGroups returns those of the groups of a vote on which it depends.
func (s *runVerifier) votingGroups(bundle *policy.Bundle, p *approvalVote) []string {
	return votingGroups(bundle, &policy.Identity{Groups: &p.Groups}, &s.first.generation.Settings, &s.verifier.stated.Settings)
}

// checkRequester checks that the requester's token was valid when the run began, or is one of an identity
// provider that the run's configuration has, if the log states any.
func (s *runVerifier) checkRequester(e *Event, p *requestCreated) error {
	actor, id := p.Request.Actor, p.Request.Identity
	isSubject := policy.HasSubject(actor)
	switch {
	case p.Token != "":
		return ruleRequester.Wrap(s.verifier.checkToken(p.Token, actor, actionOf(p.Request.Kind), e))
	case id != nil && !slices.Contains([]string{"", policy.ActorAgent, policy.ActorPerson}, id.Kind):
		return ruleRequester.Broken("a request of an actor of an unknown kind")
	case id != nil && (id.Groups != nil && !slices.IsSorted(*id.Groups) || !slices.IsSortedFunc(id.Claims, compareClaims)):
		return ruleRequester.Broken("a request with groups or claims that are not in order")
	case !policy.HasNoToken(actor):
		return ruleRequester.Broken("a request without a token by %s, whose name is that of a token", actor)
	case isSubject && (id == nil || id.Credential == nil || !id.Credential.Valid()):
		return ruleRequester.Broken("a request without the token of a subject of an identity provider")
	case isSubject && !p.generation.knows(actor):
		return ruleRequester.Broken("a request by a subject of an issuer that the configuration does not have")
	}
	return nil
}

// decidedAt returns when the run read the decision; empty if these steps read none.
func (r *record) decidedAt() (at string) {
	for i := range r.Inputs {
		var d struct {
			At       string `json:"at"`
			Happened string `json:"happened"`
		}
		if json.Unmarshal(r.Inputs[i].Event, &d) == nil && d.Happened == "decided" {
			at = d.At
		}
	}
	return at
}

// compareClaims orders claims by their names.
func compareClaims(a, b policy.Claim) int { return strings.Compare(a.Name, b.Name) }

// checkSend checks that nobody whose block stops the call was blocked: the requester, the person
// for whom they act, or a voter.
func (s *runVerifier) checkSend(e *Event, decidedAt string) error {
	if s.asked != nil && !policy.IsBefore(decidedAt, s.asked.Expires) {
		return ruleCall.Broken("a call that was decided about after its expiry")
	}
	if s.asked != nil && !policy.IsBefore(e.At, s.row.Expires) {
		return ruleCall.Broken("a call after its approval had expired")
	}
	names := []string{s.row.Actor, s.row.OnBehalfOf}
	for i := range s.votes {
		names = append(names, s.votes[i].By)
	}
	if err := s.verifier.checkNotBlocked(e.Index, names...); err != nil {
		return ruleCall.Wrap(err)
	}
	return s.checkSentAccount()
}

// checkEnd compares an outcome with the events of the run.
func (s *runVerifier) checkEnd(p *runEnded) error {
	o := &p.Outcome
	switch o.Type {
	case states.TypeToolResult, states.TypeSummary:
		if s.returned == nil || o.Effect != states.EffectDone {
			return ruleOutcome.Broken("an answer without a result")
		}
	case states.TypeBlocked, states.TypeFinalAnswer:
		if s.sent != nil || s.delegated != nil || o.Effect != states.NotSent {
			return ruleOutcome.Broken("a run whose call left ends as if nothing was sent")
		}
	case states.TypeReported:
		if s.reported == nil || (o.Code == policy.CodeRewritten) != (s.rewritten != nil) || o.Effect == states.NotSent {
			return ruleOutcome.Broken("a run ends as reported without such a report")
		}
	case states.TypeUnreported:
		if s.silent == nil || o.Effect != states.EffectUnknown {
			return ruleOutcome.Broken("a run ends as unreported, and no permit was handed out")
		}
	case states.TypeFailed:
		switch {
		case s.delegated != nil:
			return ruleOutcome.Broken("a run whose permit was handed out ends as failed")
		case s.sent == nil && o.Effect != states.NotSent:
			return ruleOutcome.Broken("a run whose call did not leave ends as if it had")
		}
	default:
		return ruleOutcome.Broken("a run cannot end as %q", o.Type)
	}
	return nil
}

// storePayload stores the payloads that [runVerifier.compareEvents] compares with those of another execution.
func (s *runVerifier) storePayload(e *Event, p payload) {
	switch p := p.(type) {
	case *requestCreated:
		s.first = p
	case *riskScored:
		s.scored = p
	case *decisionMade:
		s.decisions = append(s.decisions, p)
	case *approvalRequested:
		s.asked, s.heldAt = p, len(s.inputs)
	case *approvalVote:
		s.votes = append(s.votes, p.asVote(e.At, e.By))
	case *proxySent:
		s.sent = p
	case *toolResult:
		s.returned = p
	case *callDelegated:
		s.delegated = p
	case *callReported:
		s.reported = p
	case *callRewritten:
		s.rewritten = p
	case *callUnreported:
		s.silent = p
	case *runEnded:
		s.ended = p
	}
}

// differingColumn names the first column in which two rows differ, with both values; empty if they
// are equal.
func differingColumn[T any](want, have T) string {
	w, h := reflect.ValueOf(want), reflect.ValueOf(have)
	for i := range w.NumField() {
		a, b := w.Field(i), h.Field(i)
		bothEmpty := a.Kind() == reflect.Slice && a.Len() == 0 && b.Len() == 0 // a nil list equals an empty one
		if !bothEmpty && !reflect.DeepEqual(a.Interface(), b.Interface()) {
			return fmt.Sprintf("%s (%.100q, should be %.100q)", strings.ToLower(w.Type().Field(i).Name),
				fmt.Sprint(b), fmt.Sprint(a))
		}
	}
	return ""
}
