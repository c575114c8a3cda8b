package hooks

import (
	"errors"
	"fmt"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// reminder returns the row of the reminder about a call that is held; nil if the call waits for less time than the reminder is before its
// expiry. The row waits in the ledger until the reminder is due, so that a restart does not lose it and several processes send it once.
func (s *Sender) reminder(r ledger.Reader, to *receiver, e *ledger.Event) (*ledger.Delivery, error) {
	q, err := r.Request(e.RunID)
	if errors.Is(err, ledger.ErrNotFound) { // pruned meanwhile
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	due, err := s.due(&q)
	if err != nil || s.remindBefore <= 0 || !policy.IsBefore(e.At, due) {
		return nil, err
	}
	return &ledger.Delivery{Entry: e.Index, Hook: to.remind, Next: due, State: waiting}, nil
}

// due is when the reminder about a held call is due.
func (s *Sender) due(q *ledger.Request) (string, error) {
	expires, err := time.Parse(timeForm, q.Expires)
	return expires.Add(-s.remindBefore).UTC().Format(timeForm), err
}

// planReminder takes up a reminder that is due.
func (s *Sender) planReminder(r ledger.Reader, to *receiver) (p plan, err error) {
	for d, err := range r.Deliveries(to.remind, s.timestamp(), 1) {
		if err != nil {
			return p, err
		}
		p = plan{write: true, more: true, delivery: &d}
		if p.message, err = s.newReminder(r, to, d.Entry); p.message == nil {
			d.State = done
		}
		return p, err
	}
	return p, nil
}

// newReminder returns the reminder about the call that an entry holds; nil if nobody needs one any more.
func (s *Sender) newReminder(r ledger.Reader, to *receiver, index int64) (*message, error) {
	for e, err := range r.Entries(index) {
		if err != nil || e.Index != index || !to.wants(Reminder) { // pruned, or configured otherwise since
			return nil, err
		}
		q, err := r.Request(e.RunID)
		if errors.Is(err, ledger.ErrNotFound) {
			return nil, nil
		}
		if err != nil || q.Status != ledger.Pending || !policy.IsBefore(s.timestamp(), q.Expires) {
			return nil, err
		}
		due, err := s.due(&q)
		if err != nil {
			return nil, err
		}
		body := canonical.MustSorted(&document{Type: "approval." + Reminder, Timestamp: due, Data: s.data(&q)})
		return &message{id: fmt.Sprintf("msg_%s_%d_%s", q.RunID, index, Reminder), body: body}, nil
	}
	return nil, nil
}
