package traces

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
)

// A Replayer executes traces again. It is safe for concurrent use. It compiles each bundle once and
// decodes each large event once.
type Replayer struct {
	machine *states.Machine
	compile func(policy.Content) (*policy.Bundle, error)

	mu      sync.Mutex
	bundles map[canonical.Digest]*policy.Bundle
	events  map[string]states.Event
}

// Bounds of a replayer's caches.
const (
	maxBundles    = 256
	maxEvents     = 256
	minEventBytes = 1 << 10
	maxEventBytes = 1 << 20
)

// NewReplayer returns a replayer for traces of m. compile makes a bundle of a trace's content; nil
// means [policy.Compile].
func NewReplayer(m *states.Machine, compile func(policy.Content) (*policy.Bundle, error)) *Replayer {
	if compile == nil {
		compile = policy.Compile
	}
	return &Replayer{
		machine: m,
		compile: compile,
		bundles: make(map[canonical.Digest]*policy.Bundle),
		events:  make(map[string]states.Event),
	}
}

// Replay executes a trace again, from its first step to its last. The error is a [*DivergenceError]
// for the first difference; the returned run then ends there.
func (p *Replayer) Replay(t *Trace) (*states.Run, error) {
	run, err := p.newRun(&t.Header)
	if err != nil {
		return nil, err
	}
	if err := p.checkPath(t); err != nil {
		return run, err
	}

	c := &cursor{
		steps:  t.Steps,
		lastAt: t.Header.Request.At,
		decode: p.decodeEvent,
		parked: t.Outcome.Waits(),
	}

	outcome, err := p.machine.Advance(context.Background(), run, c, c)
	if err != nil {
		return run, err
	}
	if c.seq < len(t.Steps) {
		s := t.Steps[c.seq]
		return run, &DivergenceError{c.seq, Missing, "step", fmt.Sprintf("%s --%s--> %s", s.From, s.Trigger, s.To),
			"the end of the run"}
	}
	if produced := jsontext.Value(canonical.MustSorted(outcome)); !bytes.Equal(produced, t.outcome) {
		return run, &DivergenceError{c.seq, Different, "outcome", string(t.outcome), string(produced)}
	}

	return run, nil
}

// SameMachine reports whether the trace was recorded with today's table. A different table is only
// worth a note: a replay fails only if today's table does not permit the path or leads to other
// facts.
func (p *Replayer) SameMachine(t *Trace) bool { return t.Header.Machine == p.machine.Digest() }

// newRun makes the run that a header describes.
func (p *Replayer) newRun(h *Header) (*states.Run, error) {
	b, err := p.cachedBundle(&h.Bundle)
	if err != nil {
		return nil, &TamperError{Place: "header", What: "bundle: " + err.Error()}
	}

	switch kind := h.Request.Kind; {
	case !slices.Contains(states.Kinds(), kind):
		return nil, &TamperError{Place: "header",
			What: fmt.Sprintf("the request is of kind %q, none of %s", kind, strings.Join(states.Kinds(), ", "))}
	case !isTime(h.Request.At):
		return nil, &TamperError{Place: "header",
			What: fmt.Sprintf("the request's time %q has not the form %s", h.Request.At, policy.TimeForm)}
	}

	if large := h.Request.Large; large != nil {
		if _, err := canonical.ParseDigest(string(large.Digest)); err != nil || h.Request.Kind == states.KindAsk ||
			!b.TooLarge(large) {
			return nil, &TamperError{Place: "header", What: "the request lacks arguments that are not too large"}
		}
	}

	if err := h.Request.CheckSession(b); err != nil {
		return nil, &TamperError{Place: "header", What: "the request: " + err.Error()}
	}

	if err := h.Request.Trace.Check(); err != nil {
		return nil, &TamperError{Place: "header", What: "the request's trace context: " + err.Error()}
	}

	return states.NewRun(h.RunID, h.Request, b), nil
}

func (p *Replayer) cachedBundle(recorded *Bundle) (*policy.Bundle, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// The cached digest is of checked bytes: a bundle with that digest and other bytes is checked
	// again.
	if b := p.bundles[recorded.Digest]; b != nil && bytes.Equal(b.Canonical(), recorded.Content) {
		return b, nil
	}
	var content policy.Content
	if err := canonical.Unmarshal(recorded.Content, &content); err != nil {
		return nil, err
	}

	b, err := p.compile(content)
	if err != nil {
		return nil, err
	}
	if b.Digest() != recorded.Digest {
		return nil, errors.New("the content is not complete: this version writes it otherwise")
	}

	if len(p.bundles) >= maxBundles {
		clear(p.bundles)
	}

	p.bundles[recorded.Digest] = b
	return b, nil
}

// checkPath checks the recorded path against today's table before anything is executed.
func (p *Replayer) checkPath(t *Trace) error {
	spec := p.machine.Spec()
	state := states.Received
	for i, s := range t.Steps {
		if s.From != state {
			return &DivergenceError{i, Different, "transition", string(s.From), string(state)}
		}
		if !spec.Allows(s.From, s.Trigger, s.To) {
			return &DivergenceError{
				i, Different, "transition", fmt.Sprintf("%s --%s--> %s", s.From, s.Trigger, s.To),
				"no such row in the table",
			}
		}
		state = s.To
	}
	return nil
}

// decodeEvent decodes a recorded event, and caches large ones: many traces share a catalog.
func (p *Replayer) decodeEvent(raw jsontext.Value) (states.Event, error) {
	if len(raw) < minEventBytes || len(raw) > maxEventBytes {
		return states.DecodeEvent(raw)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if ev, ok := p.events[string(raw)]; ok {
		return ev, nil
	}
	ev, err := states.DecodeShared(raw)
	if err != nil {
		return nil, err
	}
	if len(p.events) >= maxEvents {
		clear(p.events)
	}
	p.events[string(raw)] = ev
	return ev, nil
}
