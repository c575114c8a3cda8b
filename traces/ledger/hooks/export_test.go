package hooks

import (
	"context"
	"time"
)

// Look does what each look of each hook does, one after the other.
func (s *Sender) Look(ctx context.Context) error {
	for _, hook := range s.hooks {
		for more := true; more; {
			var err error
			if more, err = s.deliverNext(ctx, hook); err != nil {
				return err
			}
		}
	}
	return nil
}

// Set changes what is fixed in a service: the clock, the time between two reads and that of an attempt.
func (s *Sender) Set(clock func() time.Time, every, timeout time.Duration) {
	s.clock, s.every, s.client.Timeout = clock, every, timeout
}

// Kinds returns the kinds of message.
func Kinds() []string { return []string{Requested, Reminder, Decided} }

// Sign signs with a secret.
func Sign(secret, id string, at int64, body []byte) (string, error) {
	hook, err := newReceiver(Hook{URL: "https://example.com", Secret: secret})
	if err != nil {
		return "", err
	}
	return hook.signatureOf(id, at, body), nil
}

// What the tests go to the limits of.
const (
	Lease      = lease
	MaxEntries = maxEntries
)

// Pauses are those between attempts.
var Pauses = pauses
