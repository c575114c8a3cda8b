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

type accessKey struct{ actor, endpoint, scope, server string }

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
	if !l.refusals.mustRecord(accessKey{actor, p.Endpoint, p.Scope, ""}, l.clock()) {
		return nil
	}
	return l.commit(ctx, func(b *batch) error { return b.addEvent(nil, "", actor, p) })
}

// RecordUnconnected records that the gateway refused a call of an agent, because its person has no connection to the
// server. The limits of [Ledger.RecordRefusedAccess] hold.
func (l *Ledger) RecordUnconnected(ctx context.Context, by Caller, server string) error {
	p := &accessRefused{Server: server, Token: by.TokenID}
	if err := p.checkValues(by.Name); err != nil {
		return err
	}
	if !l.refusals.mustRecord(accessKey{actor: by.Name, scope: by.OnBehalfOf(), server: server}, l.clock()) {
		return nil
	}
	return l.commit(ctx, func(b *batch) error {
		if err := by.recheckCalls(b, ActCall); err != nil {
			return err
		}
		return b.addEvent(nil, "", by.Name, p)
	})
}

// checkValues validates a refusal without the ledger.
func (p *accessRefused) checkValues(actor string) error {
	fits := func(text string, most int) bool { return text != "" && len(text) <= most && utf8.ValidString(text) }
	switch {
	case p.Server != "" && (p.Endpoint+p.Scope != "" || !fits(p.Server, MaxServerName)):
		return fmt.Errorf("a refusal of a call without a connection has only a server, of 1 to %d bytes", MaxServerName)
	case p.Server != "" && policy.HasNoToken(actor) != (p.Token == ""):
		return fmt.Errorf("%q has another credential than a token of the ledger, or none", actor)
	case p.Server != "":
		return nil
	case !policy.HasSubject(actor):
		return fmt.Errorf("%q is not a subject of an identity provider, so no scope was missing", actor)
	case !fits(p.Endpoint, maxRefusedText) || !fits(p.Scope, maxRefusedText):
		return fmt.Errorf("a refusal has an endpoint and a scope of 1 to %d bytes", maxRefusedText)
	}
	return nil
}

// checkRefusal checks a recorded refusal.
func (v *verifier) checkRefusal(e *Event, p *accessRefused) error {
	if err := p.checkValues(e.By); err != nil || p.Token == "" {
		return err
	}
	return v.checkToken(p.Token, e.By, ActCall, e)
}
