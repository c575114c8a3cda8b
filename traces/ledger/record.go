package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/risk"
	"pgfsm/states"
	"pgfsm/traces"
)

// A RunRecorder records one run in a ledger. It implements [states.Recorder]: its steps are in the
// ledger at the latest when the run is held or its call is sent. One goroutine owns it. The recorder
// ends with Finish, with Abandon, or when the run is held.
type RunRecorder struct {
	l      *Ledger
	header traces.Header
	run    *states.Run
	chain  *traces.Chain // nil: the chain of again is used
	again  *traces.Resumption
	now    instant
	at     string         // when the last step happened; the time of the request if there is none
	inputs []traces.Input // inputs of the steps that are not recorded yet
	blobs  []Blob         // blobs that inputs refers to
	// The request after the last commit; zero before the first. If another process adds an event,
	// it owns the run.
	last   RunRow
	judged bool // the first decision of risk and policy is recorded
}

// Begin begins the record of a run. The ledger contains nothing of the run until the run is held,
// dispatched or ended. A run that is lost before that has called nothing.
func (l *Ledger) Begin(h traces.Header, run *states.Run) *RunRecorder {
	l.take(h.RunID)
	return &RunRecorder{l: l, header: h, run: run, chain: traces.NewChain(&h), at: h.Request.At}
}

// continueRecord continues the record of a run that this process has claimed. again is the run that
// executes the record again; nil if this build judges the run differently.
func (l *Ledger) continueRecord(rec *Record, run *states.Run, again *traces.Resumption) *RunRecorder {
	q := &rec.Row
	r := &RunRecorder{
		l:      l,
		header: rec.Header,
		run:    run,
		again:  again,
		at:     rec.Header.Request.At,
		last:   *q,
		judged: q.Status != Proposed,
	}
	for _, in := range rec.Inputs {
		r.at = cmp.Or(in.At, r.at)
	}
	if again == nil {
		r.chain = traces.NewChain(&rec.Header)
		r.chain.Continue(rec.held, rec.last, r.at)
	}
	return r
}

// Append links a step to the step before. A step that holds or dispatches the run is committed with
// all steps before it. When Append returns nil, they are durable. Its errors say that nothing
// happened, and what the operator can do.
func (r *RunRecorder) Append(ctx context.Context, s states.Step) error {
	r.link(s)
	switch s.On {
	case states.Hold:
		if err := r.commit(ctx, r.hold); err != nil {
			return err
		}
		r.l.endWork(r.header.RunID) // a held run has no owner
	case states.Dispatch:
		return r.commit(ctx, r.dispatch)
	}
	return nil
}

// link adds a step to the run's trace, and its input to the inputs of the next commit.
func (r *RunRecorder) link(s states.Step) {
	step := r.trace().Link(s, r.now.text(r.l.clock()))
	in := traces.Input{Trigger: step.Trigger}
	if step.At != r.at {
		r.at, in.At = step.At, step.At
	}
	// Many runs have the same listing, so it is stored once.
	listing := s.From == states.Screened || s.From == states.Approved
	switch {
	case step.Event.Kind() == 'n':
	case len(step.Event) > MaxInline || listing && len(step.Event) > minShared:
		b := Blob{Digest: canonical.Sum(BlobValue, step.Event), Kind: BlobValue, Text: string(step.Event)}
		in.Event = canonical.AppendText(nil, Ref(b.Digest))
		r.blobs = append(r.blobs, b)
	default:
		in.Event = step.Event.Clone()
	}
	r.inputs = append(r.inputs, in)
}

// trace returns the chain of the run's steps.
func (r *RunRecorder) trace() *traces.Chain {
	if r.chain == nil {
		return r.again.Chain()
	}
	return r.chain
}

// minShared is the size in bytes from which a listing of tools is stored as a blob.
const minShared = 256

// Finish records the outcome with all steps that are not recorded yet, and returns the head of the
// run's trace.
func (r *RunRecorder) Finish(ctx context.Context, o states.Outcome) (canonical.Digest, error) {
	head := r.Head(o)
	err := r.commit(ctx, func(b *batch, q *RunRow) error { return r.end(b, q, o, head) })
	if err != nil {
		return "", err
	}
	r.l.endWork(r.header.RunID)
	return head, nil
}

// Head returns the head that the run's trace would have if the run ended now.
func (r *RunRecorder) Head(o states.Outcome) canonical.Digest {
	return traces.Head(r.trace().Last(), o)
}

// Abandon gives the run up. Steps that are not recorded are lost. If the call was sent, the next
// recovery ends the run as indeterminate.
func (r *RunRecorder) Abandon() { r.l.endWork(r.header.RunID) }

// commit records the steps that are not recorded yet together with the events that do adds, or
// records nothing. Cancelling ctx does not stop it: a call that happened is recorded even if its
// client is gone.
func (r *RunRecorder) commit(ctx context.Context, do func(*batch, *RunRow) error) error {
	ctx = context.WithoutCancel(ctx)
	var stands RunRow
	err := r.l.commit(ctx, func(b *batch) error {
		put := b.PutRun
		stands = r.last // a retry starts from the committed row
		if err := r.checkOwnership(b); err != nil {
			return err
		}
		if err := r.advanceBatchTime(b); err != nil {
			return err
		}

		b.wrote = true
		if stands.RunID == "" {
			put = b.AddRun
			if err := r.create(b, &stands); err != nil {
				return err
			}
		}

		for i := range r.blobs {
			if err := b.PutBlob(r.blobs[i]); err != nil {
				return err
			}
		}

		if err := do(b, &stands); err != nil {
			return err
		}

		return put(stands)
	})
	if err != nil {
		return fmt.Errorf("the ledger did not take it: %w", r.explainAddFailure(ctx, err, &stands))
	}

	r.last, r.inputs, r.blobs = stands, nil, nil
	r.judged = r.judged || r.run.Facts().Assessed != nil

	return nil
}

// explainAddFailure replaces the error of a commit that added a run: if the row exists, another
// process owns the run. If the row is the one that the commit wanted to add, the commit succeeded
// although the store reported an error, and the error stays.
func (r *RunRecorder) explainAddFailure(ctx context.Context, broke error, stands *RunRow) error {
	if r.last.RunID != "" {
		return broke
	}
	var q RunRow
	err := r.l.ReadCommitted(ctx, func(look Reader) (err error) {
		q, err = look.Run(r.header.RunID)
		return err
	})
	if err != nil || reflect.DeepEqual(q, *stands) {
		return broke
	}
	return &ClaimError{Row: q, Err: ErrTaken}
}

// checkOwnership returns an error if another process owns the run or has ended it. Either would
// have added an event. So a run whose last event is this process's is unchanged. For an approved
// call that is about to be sent, it checks the clock and the tokens once more, in the transaction
// that records the dispatch. It writes nothing.
func (r *RunRecorder) checkOwnership(b *batch) error {
	if r.last.RunID == "" { // the run has no row, so no process can own it; see explainAddFailure
		return errors.Join(checkCountable(r.header.Request.Task), r.notBlocked(b))
	}
	last, err := b.Reached(r.header.RunID)
	switch {
	case err != nil:
		return err
	case last != r.last.Entry || r.last.Owner != r.l.owner || r.last.Ended != "":
		q, err := b.Run(r.header.RunID)
		if err != nil {
			return err
		}
		return &ClaimError{Row: q, Err: ErrTaken}
	}
	f := r.run.Facts()
	if f.Dispatched != nil && r.last.Sent == "" && f.Approved != nil {
		return checkApproval(b, &r.last)
	}
	return r.notBlocked(b)
}

// notBlocked returns [ErrBlocked] if the call is about to be held or sent, and its requester is
// blocked.
func (r *RunRecorder) notBlocked(b *batch) error {
	f, q := r.run.Facts(), &r.header.Request
	if (f.Held == nil || r.last.Binding != "") && (f.Dispatched == nil || r.last.Sent != "") {
		return nil
	}
	if q.Identity == nil {
		return unblocked(b, q.Actor)
	}
	return unblocked(b, q.Actor, q.Identity.OnBehalfOf)
}

// advanceBatchTime moves the batch's time forward to that of the step that holds the run, because
// the clock may have been set back since. No vote may have a time before that step.
func (r *RunRecorder) advanceBatchTime(b *batch) (err error) {
	if n := len(r.inputs); n > 0 && r.inputs[n-1].Trigger == states.Hold && b.now < r.at {
		b.now, err = r.l.timeAfter(r.at)
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

// create adds the run's first event: its header and its call, if it has one.
func (r *RunRecorder) create(b *batch, q *RunRow) error {
	h := &r.header
	if err := b.PutBlob(Blob{Digest: h.Bundle.Digest, Kind: BlobBundle, Text: r.run.Bundle().Text()}); err != nil {
		return err
	}

	p := &created{
		Build:   r.l.build,
		Bundle:  h.Bundle.Digest,
		Env:     r.run.Bundle().Content().Env,
		Format:  h.Format,
		Machine: h.Machine,
		Request: h.Request,
	}

	if f := r.run.Facts(); f.Validated != nil {
		args := r.run.Plan().Args
		p.Call = &call{
			Args:       args,
			Definition: f.Validated.Definition,
			Server:     f.Validated.Server,
			Tool:       f.Validated.Tool,
		}
		if _, err := inline(args, b.PutBlob); err != nil {
			return err
		}
	}

	return b.add(q, h.RunID, r.l.owner, p)
}

// assess adds the decision of risk and policy, once.
func (r *RunRecorder) assess(b *batch, q *RunRow) error {
	f := r.run.Facts()
	a := f.Assessed
	if a == nil && f.Stopped != nil {
		a = f.Stopped.Assessment
	}
	if a == nil || r.judged {
		return nil
	}
	rules := (&risk.Assessment{Contributions: a.Risk}).Risk().Rules
	if err := b.add(q, r.header.RunID, r.l.owner, &scored{Mode: a.Mode, Rules: rules, Score: a.Score}); err != nil {
		return err
	}
	return r.decide(b, q, r.header.Bundle.Digest, a.Verdict, a.Policy, a.Condition)
}

func (r *RunRecorder) decide(b *batch, q *RunRow, bundle canonical.Digest, v policy.Verdict, id, condition string) error {
	if bundle == r.header.Bundle.Digest {
		bundle = ""
	}
	return b.add(q, r.header.RunID, r.l.owner, &decision{
		Bundle:    bundle,
		Code:      string(v.Code),
		Condition: condition,
		Gate:      string(v.Gate),
		Outcome:   string(v.Outcome),
		Policy:    id,
		Reason:    v.Reason,
	})
}

func (r *RunRecorder) record() record { return recordOf(r.inputs) }

// hold parks the run: the ledger asks approvers for a decision, and no process owns the run.
func (r *RunRecorder) hold(b *batch, q *RunRow) error {
	if err := r.assess(b, q); err != nil {
		return err
	}
	f := r.run.Facts()
	if f.Held == nil || f.Assessed == nil {
		return errors.New("a run is held without an assessment")
	}
	return b.add(q, r.header.RunID, r.l.owner, &asked{
		record:    r.record(),
		Approvers: append([]string{}, f.Assessed.Approvers...),
		Binding:   f.Held.Binding,
		Expires:   f.Held.Bound.Expires,
		Last:      r.trace().Last(),
		Quorum:    max(f.Assessed.Quorum, 1),
	})
}

// dispatch records that the call is sent.
func (r *RunRecorder) dispatch(b *batch, q *RunRow) error {
	if err := r.assess(b, q); err != nil {
		return err
	}
	f := r.run.Facts()
	if f.Permitted == nil || f.Dispatched == nil {
		return errors.New("a call is dispatched that nothing permits")
	}
	p := &sent{record: r.record(), Permit: f.Dispatched.Permit}
	if f.Approved != nil {
		p.Trace = f.Permitted.Trace.TraceID()
		if err := r.decide(b, q, f.Permitted.Bundle, f.Permitted.Assessed, f.Assessed.Policy,
			f.Assessed.Condition); err != nil {
			return err
		}
	}
	return b.add(q, r.header.RunID, r.l.owner, p)
}

// end adds the events since the last commit, and the outcome.
func (r *RunRecorder) end(b *batch, q *RunRow, o states.Outcome, head canonical.Digest) error {
	if err := r.assess(b, q); err != nil {
		return err
	}
	f := r.run.Facts()
	if s := f.Stopped; s != nil && decides(s) {
		if err := r.decide(b, q, cmp.Or(s.Bundle, r.header.Bundle.Digest), s.Verdict, q.Policy, ""); err != nil {
			return err
		}
	}
	if o.Code == policy.CodeApprovalExpired && (q.Status == Pending || q.Status == Approved) {
		if err := b.add(q, r.header.RunID, r.l.owner, &expired{Binding: q.Binding, Expires: q.Expires}); err != nil {
			return err
		}
	}
	if f.Executed != nil {
		err := b.add(q, r.header.RunID, r.l.owner, &returned{Bytes: f.Executed.Bytes})
		if err != nil {
			return err
		}
	}
	return b.add(q, r.header.RunID, r.l.owner, &ended{record: r.record(), Head: head, Outcome: o})
}

// decides reports whether a gate stopped the run with a verdict that no other event records: the
// first decision of risk and policy. Votes and expiries have their own events, and an interruption
// is no decision.
func decides(s *states.StoppedFact) bool {
	switch v := s.Verdict; {
	case s.Assessment != nil, v.Gate == policy.GateRun:
		return false
	default:
		return v.Code != policy.CodeApprovalDenied && v.Code != policy.CodeApprovalExpired
	}
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
func (e ledgerEffects) Do(ctx context.Context, wanted states.Command) (states.Event, error) {
	switch wanted.(type) {
	case *states.AwaitDecision:
		return nil, states.ErrParked
	case *states.ReadHistory:
		return (&states.Live{History: e.run}).Do(ctx, wanted)
	}
	return e.EffectHandler.Do(ctx, wanted)
}
