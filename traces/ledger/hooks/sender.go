package hooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

const (
	// PollInterval is the time between two reads of the ledger for a hook.
	PollInterval = time.Second
	// Timeout bounds the time in which a receiver must answer a message. The receiver should store
	// the message and process it later.
	Timeout = 10 * time.Second
	// lease bounds how long a sending process owns a message: three times the longest attempt.
	lease = 3 * Timeout
	// maxAnswer bounds how many bytes of a receiver's answer are read, so that the connection can
	// be used again.
	maxAnswer = 4 << 10
	// maxEntries is the number of entries that are read before the progress is stored.
	maxEntries = 1000
	// maxError bounds the stored error of a receiver, in bytes.
	maxError = 200
)

// MaxAttempts is the number of attempts before a message is dropped.
const MaxAttempts = 8

// pauses are the times between attempts. Most receivers recover within minutes. Messages are sent
// in order, so a message that a receiver never accepts delays the others by the sum of the pauses:
// about two hours.
var pauses = [MaxAttempts - 1]time.Duration{
	5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour,
}

// States of a delivery.
const (
	waiting = "waiting"
	done    = "done"
	givenUp = "given_up"
)

// never is after every time: all waiting messages are due by then.
const never = "9999-12-31T23:59:59.999Z"

const timeForm = policy.TimeForm

// A Store is the part of a [ledger.Store] that a sender needs.
type Store interface {
	View(ctx context.Context, do func(ledger.Reader) error) error
	Update(ctx context.Context, do func(ledger.Tx) error, ahead ...func(ledger.Reader)) error
	Now() time.Time
}

// Options of a sender.
type Options struct {
	Hooks []Hook
	// Log writes one line about an undelivered message.
	Log func(line string)
	// RemindBefore is the time between a reminder and the expiry of the held call; 0: no reminder
	// is sent.
	RemindBefore time.Duration
	// DecideAt returns the URL where approvers decide about a run; empty if there is none.
	DecideAt func(run string) string
}

// A Sender sends messages about a ledger's events to hooks.
type Sender struct {
	options Options
	store   Store
	hooks   []*receiver
	clock   func() time.Time
	every   time.Duration
	client  *http.Client
}

// New returns a sender, or the error of an invalid hook.
func New(store Store, o Options) (*Sender, error) {
	s := &Sender{options: o, store: store, clock: store.Now, every: PollInterval}
	for i, h := range o.Hooks {
		hook, err := newReceiver(h)
		if err != nil {
			return nil, fmt.Errorf("hook %d: %w", i, err)
		}
		s.hooks = append(s.hooks, hook)
	}
	s.client = &http.Client{
		Timeout: Timeout,
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			MaxIdleConnsPerHost:    1,
			IdleConnTimeout:        time.Minute,
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: 64 << 10,
		},
		// The URL comes only from the configuration, so this client follows no redirects.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

// Begin makes sure that every hook gets the events from now on. Call it before Run.
func (s *Sender) Begin(ctx context.Context) error {
	if len(s.hooks) == 0 {
		return nil
	}
	return s.store.Update(ctx, func(tx ledger.Tx) error {
		end, err := tx.End()
		for _, hook := range s.hooks {
			if err != nil {
				return err
			}
			// A new hook gets no earlier events.
			if _, err = tx.NextDelivery(hook.id); errors.Is(err, ledger.ErrNotFound) {
				err = tx.SetNextDelivery(hook.id, end.Size)
			}
		}
		return err
	})
}

// Run sends messages to all hooks, each independently, until ctx is done.
func (s *Sender) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, hook := range s.hooks {
		group.Go(func() { s.deliverAll(ctx, hook) })
	}
	group.Wait()
	s.client.CloseIdleConnections()
}

// deliverAll sends messages to one hook.
func (s *Sender) deliverAll(ctx context.Context, hook *receiver) {
	lastFailure := "" // the last logged error of reading the ledger, which is logged once
	_ = ledger.Poll(ctx, s.every, func() (bool, error) {
		failure := ""
		if err := s.deliverDue(ctx, hook); err != nil && ctx.Err() == nil {
			failure = err.Error()
		}
		if failure != "" && failure != lastFailure {
			s.options.Log(fmt.Sprintf("hook %s: the ledger cannot be asked or written: %s", hook.logName(), failure))
		}
		lastFailure = failure
		return false, nil
	})
}

// deliverDue sends messages to a hook until none is due.
func (s *Sender) deliverDue(ctx context.Context, hook *receiver) error {
	for ctx.Err() == nil {
		more, err := s.deliverNext(ctx, hook)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// logName returns the receiver's name for logs, without the URL's path, which may be a secret.
func (r *receiver) logName() string {
	u, err := url.Parse(r.url)
	if err != nil {
		return r.id
	}
	return u.Scheme + "://" + u.Host
}

// deliverNext sends the next message of a hook if it is due, and reports whether the caller should
// continue at once.
func (s *Sender) deliverNext(ctx context.Context, hook *receiver) (more bool, err error) {
	d, m, more, err := s.claimNext(ctx, hook)
	if err != nil || m == nil {
		return more, err
	}
	failed := s.postMessage(ctx, hook, m)
	if failed != nil && ctx.Err() != nil {
		failed = nil
		// The attempt failed because the service is stopping, so it does not count and is repeated.
		d.Attempts--
		d.Next = s.timestamp()
		return false, s.recordAttempt(ctx, d)
	}

	switch {
	case failed == nil:
		d.State, d.Error = done, ""
	case d.Attempts >= MaxAttempts:
		d.State, d.Error = givenUp, visible.Clip(failed.Error(), maxError)
		s.options.Log(fmt.Sprintf("hook %s: the message %s about entry %d is given up after %d attempts: %s",
			hook.logName(), m.id, d.Entry, d.Attempts, d.Error))
	default:
		d.Error = visible.Clip(failed.Error(), maxError)
		d.Next = s.clock().Add(pauses[d.Attempts-1]).UTC().Format(timeForm)
		s.options.Log(fmt.Sprintf("hook %s: attempt %d of %d failed, the next is at %s: %s", hook.logName(), d.Attempts,
			MaxAttempts, d.Next, d.Error))
	}

	return true, s.recordAttempt(ctx, d)
}

func (s *Sender) timestamp() string { return s.clock().UTC().Format(timeForm) }

// recordAttempt records the result of an attempt, even during shutdown: the message was sent.
func (s *Sender) recordAttempt(ctx context.Context, d *ledger.Delivery) error {
	return s.store.Update(context.WithoutCancel(ctx), func(tx ledger.Tx) error {
		// If the attempt took longer than the lease, another process owns the message, and that
		// process's record stays.
		for current, err := range tx.Deliveries(d.Hook, never, math.MaxInt) {
			if err != nil {
				return err
			}
			if current.Entry == d.Entry {
				return tx.PutDelivery(*d)
			}
		}
		return nil
	})
}

// pendingDelivery returns the hook's message that waits or is being sent; nil if there is none.
func pendingDelivery(r ledger.Reader, hook string) (*ledger.Delivery, error) {
	for d, err := range r.Deliveries(hook, never, 1) {
		return &d, err
	}
	return nil, nil
}

// claimNext claims the message to send now: the waiting one, or one about the next event. There may
// be none. Reading takes no lock of the ledger, so an idle hook costs nothing.
func (s *Sender) claimNext(ctx context.Context, hook *receiver) (d *ledger.Delivery, m *message, more bool, err error) {
	// A look without the lock: most of the time there is nothing to send.
	var pending bool
	err = s.store.View(ctx, func(r ledger.Reader) error {
		p, err := s.planNext(r, hook)
		pending, more = p.write, p.more
		return err
	})
	if err != nil || !pending {
		return nil, nil, false, err
	}

	err = s.store.Update(ctx, func(tx ledger.Tx) error {
		p, err := s.planNext(tx, hook) // another process may have been faster
		d, m, more = nil, nil, p.more
		if err != nil || !p.write {
			return err
		}

		if p.moved {
			if err := tx.SetNextDelivery(hook.id, p.next); err != nil {
				return err
			}
		}

		if p.reminder != nil {
			if err := tx.PutDelivery(*p.reminder); err != nil {
				return err
			}
		}

		if p.delivery == nil {
			return nil
		}

		// Until the lease ends, no other process sends this message.
		if p.message != nil {
			d, m = p.delivery, p.message
			d.Attempts++
			d.Next = s.clock().Add(lease).UTC().Format(timeForm)
		}

		return tx.PutDelivery(*p.delivery)
	})

	return d, m, more, err
}

// A plan lists the writes for a hook and the message to send.
type plan struct {
	write    bool
	more     bool             // there may be more entries
	moved    bool             // next must be stored
	next     int64            // the entry after those that were read
	delivery *ledger.Delivery // the message's row
	message  *message
	reminder *ledger.Delivery // row of a reminder to send later
}

func (s *Sender) planNext(r ledger.Reader, hook *receiver) (p plan, err error) {
	if p, err = s.planReminder(r, hook); err != nil || p.write {
		return p, err
	}
	// Messages keep the order of the events, so a waiting one goes first.
	pending, err := pendingDelivery(r, hook.id)
	if err != nil {
		return p, err
	}
	if pending != nil {
		return s.planRetry(r, hook, pending)
	}

	begin, err := r.NextDelivery(hook.id)
	if err != nil {
		return p, err
	}

	for e, err := range r.Entries(max(begin, hook.read)) {
		if err != nil {
			return p, err
		}
		p.moved, p.next = true, e.Index+1
		if p.message, p.reminder, err = s.messageOf(r, hook, &e); err != nil {
			return p, err
		}
		if p.message != nil {
			p.delivery = &ledger.Delivery{Entry: e.Index, Hook: hook.id, State: waiting}
		}
		if p.message != nil || p.reminder != nil {
			p.write, p.more = true, true
			return p, nil
		}
		if p.next-begin >= maxEntries {
			p.write, p.more = true, true
			return p, nil
		}
		hook.read = p.next
	}

	return p, nil // the progress of few entries is not stored: this process does not read them again
}

// messageOf returns the message about an entry, and the reminder that follows it; nil if there is
// none.
func (s *Sender) messageOf(r ledger.Reader, hook *receiver, e *ledger.Entry) (m *message, reminder *ledger.Delivery,
	err error) {
	// Most entries do not belong to an approval, or a prune.
	if !bytes.Contains(e.Body, []byte(`"type":"approval.`)) && e.Type != ledger.LedgerPruned {
		return nil, nil, nil
	}
	list, err := e.ReadEvents()
	if err != nil {
		return nil, nil, err
	}
	for i := range list {
		if list[i].Type == ledger.ApprovalRequested && hook.subscribesTo(Reminder) {
			if reminder, err = s.reminderDelivery(r, hook, &list[i]); err != nil {
				return nil, nil, err
			}
		}
		if m == nil && hook.subscribesTo(kindOf(list[i].Type)) {
			if m, err = s.newMessage(r, &list[i]); err != nil {
				return nil, nil, err
			}
		}
	}
	return m, reminder, nil
}

// planRetry plans the next attempt for a waiting message if it is due.
func (s *Sender) planRetry(r ledger.Reader, hook *receiver, d *ledger.Delivery) (p plan, err error) {
	if d.Next > s.timestamp() {
		return p, nil
	}
	for e, err := range r.Entries(d.Entry) {
		if err != nil {
			return p, err
		}
		if e.Index == d.Entry {
			p.message, _, err = s.messageOf(r, hook, &e)
		}
		if err != nil {
			return p, err
		}
		break
	}
	p.write, p.more, p.delivery = true, true, d
	if p.message == nil { // the ledger no longer has its event
		d.State, d.Error = givenUp, "the entry was pruned"
	}
	return p, nil
}

// postMessage makes one attempt. A receiver accepts a message with a 2xx status.
func (s *Sender) postMessage(ctx context.Context, hook *receiver, m *message) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.url, bytes.NewReader(m.body))
	if err != nil {
		return errors.New("its URL is none")
	}

	sentAt := s.clock().Unix()
	q.Header = http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {"pgfsm"},
		"Webhook-Id": {m.id}, "Webhook-Timestamp": {strconv.FormatInt(sentAt, 10)},
		"Webhook-Signature": {hook.signatureOf(m.id, sentAt, m.body)},
	}

	response, err := s.client.Do(q)
	if err != nil {
		var urlErr *url.Error // its text holds the URL
		if errors.As(err, &urlErr) {
			err = urlErr.Err
		}
		return err
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswer) // only the status counts
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("it answered with status %d", response.StatusCode)
	}

	return nil
}
