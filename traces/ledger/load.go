package ledger

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
	"pgfsm/traces"
)

// Load returns the record of one run: its trace's header, its steps, and its request. It compares blobs with their digests; the
// chain is for [traces.CheckChain] to check. The error is [ErrNotFound] if there is no such run.
func Load(r Reader, run string) (traces.Header, []traces.Step, Request, error) {
	request, err := r.Request(run)
	if err != nil {
		return traces.Header{}, nil, Request{}, err
	}
	header, err := loadHeader(r, run)
	if err != nil {
		return traces.Header{}, nil, request, fmt.Errorf("run %s: %w", run, err)
	}
	steps, err := loadSteps(r, run)
	if err != nil {
		return traces.Header{}, nil, request, fmt.Errorf("run %s: %w", run, err)
	}
	return header, steps, request, nil
}

// loadHeader builds a run's header from its first event and the bundle that it names.
func loadHeader(r Reader, run string) (traces.Header, error) {
	for e, err := range r.EventsOf(run) {
		if err != nil {
			return traces.Header{}, err
		}
		p, err := readPayload(r, &e)
		if err != nil {
			return traces.Header{}, fmt.Errorf("event %d: %w", e.Seq, err)
		}
		first, ok := p.(*created)
		if !ok {
			return traces.Header{}, fmt.Errorf("event %d: a run begins with %s, not with %s", e.Seq, RequestCreated, e.Type)
		}
		content, err := blob(r, first.Bundle, BlobBundle)
		if err != nil {
			return traces.Header{}, err
		}
		h := first.header(run)
		h.Bundle.Content = []byte(content)
		return h, nil
	}
	return traces.Header{}, errors.New("it has no event")
}

// header is the run's header, without the bundle's content.
func (p *created) header(run string) traces.Header {
	return traces.Header{
		Bundle: traces.Bundle{Digest: p.Bundle}, Format: p.Format, Machine: p.Machine, Request: p.Request, RunID: run,
	}
}

// loadSteps reads a run's steps with all their values.
func loadSteps(r Reader, run string) ([]traces.Step, error) {
	get := func(value string) (jsontext.Value, error) { return resolve(r, value) }
	var steps []traces.Step
	for s, err := range r.Steps(run) {
		if err != nil {
			return nil, err
		}
		step, err := s.whole(get)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", s.Seq, err)
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// A resolver returns the value of a column, or of the blob that it refers to.
type resolver func(value string) (jsontext.Value, error)

// whole is the step with all its values.
func (s *Step) whole(get resolver) (traces.Step, error) {
	t := traces.Step{At: s.At, From: s.From, Hash: s.Hash, Prev: s.Prev, Seq: s.Seq, To: s.To, Trigger: s.Trigger}
	var err error
	if t.Facts, err = get(s.Facts); err != nil {
		return t, fmt.Errorf("facts: %w", err)
	}
	if t.Command, err = get(s.Command); err != nil {
		return t, fmt.Errorf("command: %w", err)
	}
	if t.Event, err = get(s.Event); err != nil {
		return t, fmt.Errorf("event: %w", err)
	}
	return t, nil
}

// readPayload decodes the payload of an event.
func readPayload(r Reader, e *Event) (payload, error) {
	value, err := resolve(r, string(e.Payload))
	if err != nil {
		return nil, err
	}
	return parsePayload(e.Type, value)
}

// parsePayload decodes a payload strictly: only its canonical form is accepted.
func parsePayload(t Type, value jsontext.Value) (payload, error) {
	p, err := newPayload(t)
	if err != nil {
		return nil, err
	}
	if err := canonical.Unmarshal(value, p); err != nil {
		return nil, fmt.Errorf("the payload is not one of %s: %w", t, err)
	}
	again, err := encode(p)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, value) {
		return nil, fmt.Errorf("the payload is not in the one form that %s has", t)
	}
	return p, nil
}

// Call returns the arguments of the request's call whole, in canonical form; nil if there is no call.
func (q *Request) Call(r Reader) (jsontext.Value, error) {
	if q.Args == "" {
		return nil, nil
	}
	v, err := resolve(r, q.Args)
	if err != nil {
		return nil, fmt.Errorf("run %s: arguments: %w", q.RunID, err)
	}
	return v, nil
}
