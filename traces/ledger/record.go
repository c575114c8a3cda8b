package ledger

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

// A RunRecorder records one run in a ledger. It implements [states.Recorder]: its steps are in the
// ledger at the latest when the run is held or its call is sent. One goroutine owns it. The
// recorder ends with Finish, with Abandon, or when the run is held or delegated.
type RunRecorder struct {
	ledger     *Ledger
	header     traces.Header
	run        *states.Run
	chain      *traces.Chain // nil: the chain of resumption is used
	resumption *traces.Resumption
	lastAt     string // when the last step happened; the time of the request if there is none
	pending    record // the steps that are not recorded yet
	blobs      []Blob // blobs that pending refers to
	// The request after the last commit; zero before the first. If another process adds an event,
	// it owns the run.
	row    RunRow
	judged bool // the first decision of risk and policy is recorded

	requester Caller     // who made the request; zero if the credentials are not checked again
	account   Connection // whose credentials the call uses, as the last check read it
	attaches  bool       // the call may repeat a held one
	earlier   map[lookback]*rememberedCalls
}

// Begin begins the record of a run. The ledger contains nothing of the run until the run is held,
// dispatched or ended. A run that is lost before that has called nothing.
func (l *Ledger) Begin(h traces.Header, run *states.Run) *RunRecorder {
	l.beginWork(h.RunID)
	return &RunRecorder{ledger: l, header: h, run: run, chain: traces.NewChain(&h), lastAt: h.Request.At}
}

// continueRecord continues the record of a run that this process has claimed. resumption executes
// the record again; nil if this build judges the run differently.
func (l *Ledger) continueRecord(rec *Record, run *states.Run, resumption *traces.Resumption) *RunRecorder {
	q := &rec.Row
	r := &RunRecorder{
		ledger:     l,
		header:     rec.Header,
		run:        run,
		resumption: resumption,
		lastAt:     rec.lastAt,
		row:        *q,
		judged:     q.Status != Proposed,
	}
	if resumption == nil {
		r.chain = traces.NewChain(&rec.Header)
		r.chain.Continue(rec.held, rec.last, r.lastAt)
	}
	return r
}

// Append links a step to the step before. A step that holds or dispatches the run is committed with
// all steps before it. When Append returns nil, they are durable. Its errors say that nothing
// happened, and what the operator can do.
func (r *RunRecorder) Append(ctx context.Context, s states.Step) error {
	r.linkStep(s)
	switch s.On {
	case states.Hold:
		if err := r.commitSteps(ctx, r.addHold); err != nil {
			return err
		}
		r.ledger.endWork(r.header.RunID) // a held run has no owner
	case states.Dispatch:
		return r.commitSteps(ctx, r.addDispatch)
	case states.Delegate:
		if err := r.commitSteps(ctx, r.addDelegate); err != nil {
			return err
		}
		r.ledger.endWork(r.header.RunID)
	}
	return nil
}

// linkStep adds a step to the run's trace, and its input to the inputs of the next commit.
func (r *RunRecorder) linkStep(s states.Step) {
	step := r.traceChain().Link(s, r.ledger.clock().UTC().Format(timeForm))
	after := int64(0)
	if step.At != r.lastAt {
		r.lastAt, after = step.At, millisecondsBetween(r.lastAt, step.At)
	}
	if step.Event.Kind() == 'n' {
		r.pending.addStep(step.Trigger, after, nil)
		return
	}

	in := &input{Event: step.Event.Clone()}
	if isListing := s.From == states.Screened || s.From == states.Approved; isListing && len(in.Event) > minShared {
		r.blobs = append(r.blobs, in.shareListing())
	}
	r.pending.addStep(step.Trigger, after, in)
}

// traceChain returns the chain of the run's steps.
func (r *RunRecorder) traceChain() *traces.Chain {
	if r.chain == nil {
		return r.resumption.Chain()
	}
	return r.chain
}

// Finish records the outcome with all steps that are not recorded yet, and returns the head of the
// run's trace.
func (r *RunRecorder) Finish(ctx context.Context, o states.Outcome) (canonical.Digest, error) {
	head := r.Head(o)
	err := r.commitSteps(ctx, func(b *batch, q *RunRow) error { return r.addEnd(b, q, o, head) })
	if err != nil {
		return "", err
	}
	r.ledger.endWork(r.header.RunID)
	return head, nil
}

// Head returns the head that the run's trace would have if the run ended now.
func (r *RunRecorder) Head(o states.Outcome) canonical.Digest {
	return traces.Head(r.traceChain().Last(), o)
}

// Abandon gives the run up. Steps that are not recorded are lost. If the call was sent, the next
// recovery ends the run as indeterminate.
func (r *RunRecorder) Abandon() { r.ledger.endWork(r.header.RunID) }

// commitSteps records the steps that are not recorded yet together with the events that do adds, or
// records nothing. Cancelling ctx does not stop it: a call that happened is recorded even if its
// client is gone.
func (r *RunRecorder) commitSteps(ctx context.Context, do func(*batch, *RunRow) error) error {
	ctx = context.WithoutCancel(ctx)
	var row RunRow
	err := r.ledger.commitAhead(ctx, r.readAhead, func(b *batch) error {
		put := b.PutRun
		row = r.row // a retry starts from the committed row
		if err := r.checkOwnership(b); err != nil {
			return err
		}
		if err := r.advanceBatchTime(b); err != nil {
			return err
		}

		b.wrote = true
		if row.RunID == "" {
			put = b.AddRun
			if err := r.addCreated(b, &row); err != nil {
				return err
			}
		}

		for i := range r.blobs {
			if err := b.PutBlob(r.blobs[i]); err != nil {
				return err
			}
		}

		if err := do(b, &row); err != nil {
			return err
		}

		return put(row)
	})
	if err != nil {
		return fmt.Errorf("the ledger did not take it: %w", r.explainAddFailure(ctx, err, &row))
	}

	r.row, r.pending, r.blobs = row, record{}, nil
	r.judged = r.judged || r.run.Facts().Assessed != nil

	return nil
}

// explainAddFailure replaces the error of a commit that added a run: if the row exists, another
// process owns the run. If the row is the one that the commit wanted to add, the commit succeeded
// although the store reported an error, and the error stays.
func (r *RunRecorder) explainAddFailure(ctx context.Context, commitErr error, row *RunRow) error {
	if r.row.RunID != "" || errors.As(commitErr, new(*AttachError)) || errors.As(commitErr, new(*Refusal)) {
		return commitErr
	}
	var q RunRow
	err := r.ledger.ReadCommitted(ctx, func(look Reader) (err error) {
		q, err = look.Run(r.header.RunID)
		return err
	})
	if err != nil || reflect.DeepEqual(q, *row) {
		return commitErr
	}
	return &ClaimError{Row: q, Err: ErrTaken}
}

// checkOwnership returns an error if another process owns the run or has ended it. Either would
// have added an event. So a run whose last event is this process's is unchanged. For an approved
// call that is about to be sent, it checks the clock and the tokens once more, in the transaction
// that records the dispatch. It writes nothing.
func (r *RunRecorder) checkOwnership(b *batch) error {
	if r.row.RunID == "" { // the run has no row, so no process can own it; see explainAddFailure
		return r.checkFirst(b)
	}
	last, err := b.LastIndexOf(r.header.RunID)
	switch {
	case err != nil:
		return err
	case last != r.row.Entry || !r.owns() || r.row.Ended != "":
		q, err := b.Run(r.header.RunID)
		if err != nil {
			return err
		}
		return &ClaimError{Row: q, Err: ErrTaken}
	}

	// Just before an approved call is sent, the clock and the tokens are checked once more.
	f := r.run.Facts()
	if (f.Dispatched != nil || f.Delegated != nil) && r.row.Sent == "" && f.Approved != nil {
		if err := r.checkAskingCall(b, f.Delegated); err != nil {
			return err
		}
		if err := r.checkAccount(b); err != nil {
			return err
		}
		return checkApproval(b, &r.row)
	}
	return r.checkRequester(b)
}

// checkAskingCall returns an error if the client's id of the call that asked again is that of another run: one id
// gets one answer.
func (r *RunRecorder) checkAskingCall(b Reader, f *states.DelegatedFact) error {
	if f == nil || f.Call == "" {
		return nil
	}
	for q, err := range b.Runs(Filter{Actor: r.row.Actor, Session: r.row.Session, ClientCall: f.Call, Limit: 2}) {
		if err != nil {
			return err
		}
		if q.RunID != r.row.RunID {
			return &ClaimError{Row: q, Err: ErrTaken}
		}
	}
	return nil
}

// owns reports whether this process may continue the run. Any process may record the report about a
// delegated call; the first one does.
func (r *RunRecorder) owns() bool {
	return r.row.Owner == r.ledger.owner || r.row.Owner == "" && r.row.State == states.Delegated
}

// checkRequester returns [ErrBlocked] or [ErrCredentials] if the call is about to be held or sent, and its requester
// is blocked, or its connection is not the requester's any more.
func (r *RunRecorder) checkRequester(b Reader) error {
	f, q := r.run.Facts(), &r.header.Request
	leaves := f.Dispatched != nil || f.Delegated != nil
	if (f.Held == nil || r.row.Binding != "") && (!leaves || r.row.Sent != "") {
		return nil
	}
	if err := checkNotBlocked(b, q.Actor, onBehalfOf(q)); err != nil {
		return err
	}
	return r.checkAccount(b)
}

// advanceBatchTime moves the batch's time forward to that of the step that holds the run, because
// the clock may have been set back since. No vote may have a time before that step.
func (r *RunRecorder) advanceBatchTime(b *batch) (err error) {
	if n := len(r.pending.Steps); n > 0 && r.pending.Steps[n-1] == states.Hold && b.now < r.lastAt {
		b.now, err = r.ledger.timeAfter(r.lastAt)
	}
	return err
}

// checkApproval returns an error if an approved call must not be sent any more.
func checkApproval(b *batch, q *RunRow) error {
	if !policy.IsBefore(b.now, q.Expires) {
		return &ClaimError{Row: *q, Err: ErrTooLate}
	}
	switch reason, err := revocationReason(b, q); {
	case err != nil:
		return err
	case reason != "":
		return &ClaimError{Row: *q, Err: fmt.Errorf("%w: %s", ErrRevoked, reason)}
	}
	return nil
}

// addEvents adds events about the run, in the name of this process. It leaves out those that are nil.
func (r *RunRecorder) addEvents(b *batch, q *RunRow, events ...payload) error {
	for _, p := range events {
		if isAbsent(p) {
			continue
		}
		if err := b.addEvent(q, r.header.RunID, r.ledger.owner, p); err != nil {
			return err
		}
	}
	return nil
}

// addCreated adds the run's first event: its header and its call, if it has one.
func (r *RunRecorder) addCreated(b *batch, q *RunRow) error {
	h := &r.header
	index, g, err := b.findGeneration(r.run.Bundle(), h.Machine)
	if err != nil {
		return err
	}
	p := &requestCreated{Gen: index, Request: h.Request, Token: r.requester.TokenID, generation: g}
	p.Call = plannedCallOf(r.run)
	p.shorten()

	return r.addEvents(b, q, p)
}

// addAssessment adds the decision of risk and policy, once.
func (r *RunRecorder) addAssessment(b *batch, q *RunRow) error {
	if r.judged {
		return nil
	}
	f := r.run.Facts()
	scored, decided := assessmentOf(&f)
	return r.addEvents(b, q, scored, decided)
}

// addHold parks the run: the ledger asks approvers for a decision, and no process owns the run.
func (r *RunRecorder) addHold(b *batch, q *RunRow) error {
	if err := r.addAssessment(b, q); err != nil {
		return err
	}
	f := r.run.Facts()
	hold := holdOf(&f)
	if hold == nil {
		return errors.New("a run is held without an assessment")
	}
	hold.record, hold.Last = r.pending, r.traceChain().Last()
	return r.addEvents(b, q, hold)
}

// addDispatch records that the call is sent next. The decision, its reasons and the permit become
// durable with it, in the commit before the call.
func (r *RunRecorder) addDispatch(b *batch, q *RunRow) error {
	if err := r.addAssessment(b, q); err != nil {
		return err
	}
	f := r.run.Facts()
	again, sent := dispatchOf(&f, r.header.Bundle.Digest)
	if sent == nil {
		return errors.New("a call is dispatched that nothing permits")
	}
	sent.record = r.pending
	if err := r.touchAccount(b); err != nil {
		return err
	}
	return r.addEvents(b, q, again, sent)
}

// addDelegate records that the permit is handed out next, as addDispatch does for a call. No process owns the
// run from then on: any may record the report.
func (r *RunRecorder) addDelegate(b *batch, q *RunRow) error {
	if err := r.addAssessment(b, q); err != nil {
		return err
	}
	f := r.run.Facts()
	again, handed := delegateOf(&f, r.header.Bundle.Digest)
	if handed == nil {
		return errors.New("a permit is handed out that nothing permits")
	}
	handed.record = r.pending
	return r.addEvents(b, q, again, handed)
}

// addEnd adds the events since the last commit, and the outcome.
func (r *RunRecorder) addEnd(b *batch, q *RunRow, o states.Outcome, head canonical.Digest) error {
	if err := r.addAssessment(b, q); err != nil {
		return err
	}
	f := r.run.Facts()
	var expired *approvalExpired
	if o.Code == policy.CodeApprovalExpired && (q.Status == Pending || q.Status == Approved) {
		expired = &approvalExpired{Binding: q.Binding, Expires: q.Expires}
	}
	reported, rewritten, unreported := reportsOf(&f)
	return r.addEvents(b, q, stopOf(&f, r.header.Bundle.Digest, q.Policy), expired, resultOf(&f), reported, rewritten, unreported,
		&runEnded{record: r.pending, Head: head, Outcome: o})
}

// Effects returns the handler that the run must use. It parks a held run, which no process owns
// until one claims it. It answers questions about earlier calls from the ledger.
func (r *RunRecorder) Effects(h states.EffectHandler) states.EffectHandler {
	return ledgerEffects{h, r}
}

type ledgerEffects struct {
	states.EffectHandler
	run *RunRecorder
}

// Do parks a held run, answers questions about earlier calls from the ledger, and passes every
// other effect on.
func (e ledgerEffects) Do(ctx context.Context, command states.Command) (states.Event, error) {
	switch command.(type) {
	case *states.AwaitDecision:
		return nil, states.ErrParked
	case *states.ReadHistory:
		return (&states.Live{History: e.run}).Do(ctx, command)
	}
	return e.EffectHandler.Do(ctx, command)
}
