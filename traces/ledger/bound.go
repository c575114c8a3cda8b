package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

// Bound is everything that approvers see of a held call. Their votes bind to it.
type Bound struct {
	Row        RunRow
	Asked      canonical.Text  // the actor's request in their own words
	Args       jsontext.Value  // canonical JSON: the bytes that will be sent
	Definition jsontext.Value  // the tool's whole definition, as its server sent it
	Tool       *policy.Tool    // what the definition says; nil if it is not known
	Origins    *states.Origins // where the arguments come from; nil if that was not read
	Held       states.HeldFact
	Assessed   states.AssessedFact
	Votes      []policy.Vote
	Bundle     *policy.Bundle // the run's own bundle
	Connected  string         // when the person connected the account of the call; empty without one, or if it has ended
}

// BoundOf returns the bound of a held run. It executes the run's record again up to the hold, so
// that approvers see what their votes will be compared with. The error is [ErrUnknown] if there is
// no such run, and [ErrNotHeld] if the run was not held. Any other error means that the record was
// changed or cannot be read.
func BoundOf(r Reader, p *traces.Replayer, run string) (Bound, error) {
	rec, err := Load(r, run)
	if err != nil {
		return Bound{}, explainNotFound(run, err)
	}
	q := rec.Row
	if rec.held == 0 || q.Binding == "" {
		return Bound{}, &Refusal{Code: RefusedNotHeld,
			Message: fmt.Sprintf("the request was never held; it is %s", q.Status)}
	}
	if err := checkUnchanged(r, &q); err != nil {
		return Bound{}, fmt.Errorf("run %s: %w (%w)", run, traces.ErrTampered, err)
	}

	// Another build may word the reasons differently.
	resumption, err := p.Reexecute(&rec.Header, rec.Inputs[:rec.held])
	if err != nil {
		return Bound{}, err
	}
	if _, err := resumption.Advance(context.Background(), readOnly{}, readOnly{}); err != nil {
		return Bound{}, err
	}

	facts, plan := resumption.Run.Facts(), resumption.Run.Plan()
	if facts.Held == nil || facts.Assessed == nil || plan == nil {
		return Bound{}, fmt.Errorf("%w: run %s is not held by its record", traces.ErrTampered, run)
	}

	// Approvers see the bytes that would be sent and the definition that was listed.
	b := Bound{
		Row:      q,
		Asked:    rec.Header.Request.Text,
		Args:     plan.Args.Bytes(),
		Origins:  resumption.Run.Origins(),
		Held:     *facts.Held,
		Assessed: *facts.Assessed,
		Bundle:   resumption.Run.Bundle(),
	}

	if t, found := resumption.Run.Catalog().Find(plan.Server, plan.Tool); found.Allows() {
		b.Definition, b.Tool = t.Definition, t
	}

	if c, ended, err := accountEnded(r, &rec.Header.Request, plan.Server); err != nil {
		return Bound{}, err
	} else if ended == "" {
		b.Connected = c.Made
	}

	if b.Votes, err = Votes(r, run); err != nil {
		return Bound{}, err
	}

	return b, b.checkBinding()
}

// checkBinding returns an error if what approvers see differs from what they vote on.
func (b *Bound) checkBinding() error {
	q, bound := &b.Row, &b.Held.Bound
	switch {
	case b.Held.Binding != q.Binding, bound.Run != q.RunID, bound.Actor != q.Actor, bound.Server != q.Server,
		bound.Tool != q.Tool,
		bound.Arguments != q.Arguments, bound.Definition != q.Definition, b.Assessed.Bundle != q.Bundle,
		bound.Expires != q.Expires && !q.UsesApproval():
		return fmt.Errorf("%w: the request %s is not what its record binds", traces.ErrTampered, q.RunID)
	case b.Definition == nil:
		return errors.New("the record of the run holds no definition of its tool")
	}
	return nil
}
