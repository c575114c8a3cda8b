package ledger

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"
	"unicode/utf8"

	"pgfsm/internal/visible"
	"pgfsm/policy"
)

// Bounds of refusals that are recorded: any agent with a valid token can cause them.
const (
	maxRefusedText  = 1024        // in bytes, for the endpoint and for the scope; longer text is cut
	refusedInterval = time.Minute // a process records the same refusal once in this time
	maxRefusals     = 256         // different refusals that a process records in this time
)

// refusals holds the refusals that this process recorded within the last minute.
type refusals struct {
	mu   sync.Mutex
	last map[accessKey]time.Time
}

type accessKey struct{ actor, endpoint, scope string }

// mustRecord reports whether this process must record a refusal: it recorded no equal one within
// the last minute, and not too many others.
func (r *refusals) mustRecord(k accessKey, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.last, func(_ accessKey, at time.Time) bool { return now.Sub(at) >= refusedInterval })
	if _, recorded := r.last[k]; recorded || len(r.last) >= maxRefusals {
		return false
	}
	if r.last == nil {
		r.last = make(map[accessKey]time.Time)
	}
	r.last[k] = now
	return true
}

// RecordRefusedAccess records that the gateway refused a request of an identity provider's agent,
// because the agent's token lacks a scope. It records the same refusal once a minute, and at most
// 256 different ones in that time.
func (l *Ledger) RecordRefusedAccess(ctx context.Context, actor, endpoint, scope string) error {
	p := &accessRefused{Endpoint: visible.Cut(endpoint, maxRefusedText, ""),
		Scope: visible.Cut(scope, maxRefusedText, "")}
	if err := p.checkValues(actor); err != nil {
		return err
	}
	if !l.refusals.mustRecord(accessKey{actor, p.Endpoint, p.Scope}, l.clock()) {
		return nil
	}
	return l.commit(ctx, func(b *batch) error { return b.addEvent(nil, "", actor, p) })
}

// checkValues validates a refusal without the ledger.
func (p *accessRefused) checkValues(actor string) error {
	if !policy.HasSubject(actor) {
		return fmt.Errorf("%q is not a subject of an identity provider, so no scope was missing", actor)
	}
	for _, text := range []string{p.Endpoint, p.Scope} {
		if text == "" || len(text) > maxRefusedText || !utf8.ValidString(text) {
			return fmt.Errorf("a refusal has an endpoint and a scope of 1 to %d bytes", maxRefusedText)
		}
	}
	return nil
}
