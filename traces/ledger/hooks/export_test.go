package hooks

import "context"

// Look does what each look of each hook does, one after the other.
func (s *Sender) Look(ctx context.Context) error {
	for _, to := range s.to {
		for more := true; more; {
			var err error
			if more, err = s.step(ctx, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// Sign signs with a secret.
func Sign(secret, id string, at int64, body []byte) (string, error) {
	to, err := receivers([]Hook{{URL: "https://example.com", Secret: secret}})
	if err != nil {
		return "", err
	}
	return to[0].sign(id, at, body), nil
}

// What the tests go to the limits of.
const (
	Lease      = lease
	MaxEntries = maxEntries
	MaxHooks   = maxHooks
)

// Pauses are those between attempts.
var Pauses = pauses
