package hooks

import (
	"errors"
	"fmt"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// reminderDelivery returns the row of the reminder about a held call. It returns nil if the call
// expires too soon for a reminder. The row waits in the ledger until the reminder is due, so that
// it survives a restart and only one process sends it.
func (s *Sender) reminderDelivery(r ledger.Reader, hook *receiver, e *ledger.Event) (*ledger.Delivery, error) {
	q, err := r.Run(e.RunID)
	if errors.Is(err, ledger.ErrNotFound) { // pruned meanwhile
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	due, err := s.reminderTime(&q)
	if err != nil || s.options.RemindBefore <= 0 || !policy.IsBefore(e.At, due) {
		return nil, err
	}
	return &ledger.Delivery{Entry: e.Index, Hook: hook.remind, Next: due, State: waiting}, nil
}

// reminderTime returns the time of the reminder about a held call.
func (s *Sender) reminderTime(q *ledger.RunRow) (string, error) {
	expires, err := time.Parse(timeForm, q.Expires)
	return expires.Add(-s.options.RemindBefore).UTC().Format(timeForm), err
}

// planReminder plans a reminder that is due.
func (s *Sender) planReminder(r ledger.Reader, hook *receiver) (p plan, err error) {
	for d, err := range r.Deliveries(hook.remind, s.timestamp(), 1) {
		if err != nil {
			return p, err
		}
		p = plan{write: true, more: true, delivery: &d}
		if p.message, err = s.reminderMessage(r, hook, d.Entry); p.message == nil {
			d.State = done
		}
		return p, err
	}
	return p, nil
}

// reminderMessage returns the reminder about the call that an entry holds; nil if the reminder is
// no longer needed.
func (s *Sender) reminderMessage(r ledger.Reader, hook *receiver, index int64) (*message, error) {
	for e, err := range r.Entries(index) {
		// The entry was pruned, or the configuration changed.
		if err != nil || e.Index != index || !hook.subscribesTo(Reminder) {
			return nil, err
		}
		q, err := r.Run(e.RunID)
		if errors.Is(err, ledger.ErrNotFound) {
			return nil, nil
		}
		if err != nil || q.Status != ledger.Pending || !policy.IsBefore(s.timestamp(), q.Expires) {
			return nil, err
		}
		due, err := s.reminderTime(&q)
		if err != nil {
			return nil, err
		}
		body := canonical.MustSorted(&document{Type: "approval." + Reminder, Timestamp: due, Data: s.newData(&q)})
		return &message{id: fmt.Sprintf("msg_%s_%d_%s", q.RunID, index, Reminder), body: body}, nil
	}
	return nil, nil
}
