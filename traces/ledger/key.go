package ledger

import (
	"context"
	"errors"
	"slices"

	"pgfsm/internal/visible"
	"pgfsm/traces/ledger/checkpoint"
)

// A Key is a verifier key of the log.
type Key struct {
	Key     string `json:"key"`
	Added   string `json:"added"`
	Removed string `json:"removed"` // when the key was removed; empty if it was not
}

// Origin returns the name of the log. It begins the log if the store is empty.
func (l *Ledger) Origin(ctx context.Context) (origin string, err error) {
	err = l.commit(ctx, func(b *batch) (err error) {
		if b.size == 0 {
			if err := errors.Join(b.addEvent(nil, "", l.owner, &logCreated{Origin: l.origin}), b.flushEntry()); err != nil {
				return err
			}
		}
		origin, err = Origin(b)
		return err
	})
	return origin, err
}

// AddKey records that a verifier key belongs to the log. The rules of [Ledger.CreateToken] say who
// may add one.
func (l *Ledger) AddKey(ctx context.Context, by Caller, vkey string) error {
	return l.changeKey(ctx, by, &keyAdded{Key: vkey})
}

// RemoveKey records that a key no longer signs for the log. The rules of [Ledger.CreateToken] say
// who may remove one.
func (l *Ledger) RemoveKey(ctx context.Context, by Caller, vkey string) error {
	return l.changeKey(ctx, by, &keyRemoved{Key: vkey})
}

func (l *Ledger) changeKey(ctx context.Context, by Caller, p payload) error {
	return l.commit(ctx, func(b *batch) error {
		if err := mayManage(b, by, b.now); err != nil {
			return err
		}
		origin, err := Origin(b)
		if err != nil {
			return err
		}
		keys, err := Keys(b)
		if err != nil {
			return err
		}
		if _, err := projectKey(keys, origin, b.now, p); err != nil {
			return err
		}
		return b.addEvent(nil, "", by.Name, p)
	})
}

// Keys returns the keys of the log, also removed ones, oldest first.
func Keys(r Reader) (keys []Key, err error) {
	events, err := eventsOfTypes(r, KeyAdded, KeyRemoved)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	origin, err := Origin(r)
	if err != nil {
		return nil, err
	}
	for i := range events {
		if keys, err = projectKey(keys, origin, events[i].event.At, events[i].payload); err != nil {
			return keys, err
		}
	}
	return keys, nil
}

// projectKey applies an event to the keys of the log with this origin. Writers and Verify both use
// it.
func projectKey(keys []Key, origin, at string, p payload) ([]Key, error) {
	indexOf := func(vkey string) int { return slices.IndexFunc(keys, func(k Key) bool { return k.Key == vkey }) }
	switch p := p.(type) {
	case *keyAdded:
		v, err := checkpoint.LogVerifier(p.Key)
		switch {
		case err != nil:
			return keys, err
		case v.Name() != origin:
			return keys, ruleKeys.Broken("the key is of the log %s, and this log is %s", visible.Text(v.Name()),
				visible.Text(origin))
		case indexOf(p.Key) >= 0:
			return keys, ruleKeys.Broken("the key %s was added before", p.Key)
		}
		return append(keys, Key{Key: p.Key, Added: at}), nil
	case *keyRemoved:
		i := indexOf(p.Key)
		if i < 0 || keys[i].Removed != "" {
			return keys, ruleKeys.Broken("%s is no key of the log, or was removed before; pgfsm ledger key list shows all",
				visible.Clip(p.Key, maxKeyText))
		}
		keys[i].Removed = at
	}
	return keys, nil
}

// maxKeyText bounds, in bytes, how much of an invalid key an error shows.
const maxKeyText = 300
