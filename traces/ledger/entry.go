package ledger

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
)

// Leaf returns the bytes of the entry's leaf: canonical JSON. If a [Ref] replaces the events, the
// leaf contains it as a string.
func (e *Entry) Leaf() []byte {
	events := e.Events
	if isRef(events) {
		events = canonical.AppendText(nil, string(events))
	}
	b := canonical.AppendText([]byte(`{"at":`), e.At)
	b = canonical.AppendText(append(b, `,"by":`...), e.By)
	b = append(append(b, `,"events":`...), events...)
	b = strconv.AppendInt(append(b, `,"n":`...), int64(e.N), 10)
	b = canonical.AppendText(append(b, `,"prev":`...), e.Prev)
	b = canonical.AppendText(append(b, `,"run":`...), e.RunID)
	return append(b, '}')
}

// computeHash returns the leaf's hash (RFC 6962, section 2.1).
func (e *Entry) computeHash() tlog.Hash { return tlog.RecordHash(e.Leaf()) }

// Intact returns the hash of the entry in the tree, and reports whether it equals the hash of the
// entry's leaf.
func (e *Entry) Intact(r tlog.HashReader) (h tlog.Hash, intact bool, err error) {
	if h, err = leafHash(r, e.Index); err != nil {
		return h, false, err
	}
	return h, h == e.computeHash(), nil
}

// Referred reports whether the entry contains a reference to its events instead of the events.
func (e *Entry) Referred() bool { return isRef(e.Events) }

// leafHash reads the hash of a leaf in the tree.
func leafHash(r tlog.HashReader, index int64) (tlog.Hash, error) {
	hashes, err := r.ReadHashes([]int64{tlog.StoredHashIndex(0, index)})
	if err != nil {
		return tlog.Hash{}, fmt.Errorf("the hash of entry %d: %w", index, err)
	}
	return hashes[0], nil
}

// encodeLink encodes a leaf's hash for the member prev of the run's next entry.
func encodeLink(h tlog.Hash) string { return base64.StdEncoding.EncodeToString(h[:]) }

// Origin returns the name of the log, which the first entry records.
func Origin(r Reader) (string, error) {
	e, err := r.LastOfType(LogCreated)
	if err != nil {
		return "", err
	}
	p, err := e.singleEvent(r)
	if err != nil {
		return "", err
	}
	return p.(*logCreated).Origin, nil
}

// splitEvents returns the events of a list in canonical form, each with its type.
func (e *Entry) splitEvents(events jsontext.Value) (list []Event, err error) {
	var values []jsontext.Value
	if err := json.Unmarshal(events, &values); err != nil {
		return nil, canonical.Explain(err)
	}

	for _, v := range values {
		var member typed
		if err := json.Unmarshal(v, &member); err != nil {
			return nil, canonical.Explain(err)
		}
		list = append(list, Event{
			Index:   e.Index,
			RunID:   e.RunID,
			Type:    member.Type,
			At:      e.At,
			By:      e.By,
			Payload: v,
		})
	}

	if len(list) == 0 {
		return nil, errors.New("it has no event")
	}

	return list, nil
}

// ReadEvents returns the entry's events.
func (e *Entry) ReadEvents(r Reader) (list []Event, err error) {
	events, err := resolveRef(r, string(e.Events))
	if err != nil {
		return nil, fmt.Errorf("entry %d: %w", e.Index, err)
	}
	if list, err = e.splitEvents(events); err != nil {
		return nil, fmt.Errorf("entry %d: %w", e.Index, err)
	}
	return list, nil
}

// decodePayloads returns the entry's events, decoded.
func (e *Entry) decodePayloads(r Reader) ([]payload, error) {
	list, err := e.ReadEvents(r)
	if err != nil {
		return nil, err
	}
	decoded, err := e.decodeEvents(list)
	if err != nil {
		return nil, fmt.Errorf("entry %d: %w", e.Index, err)
	}
	return decoded, nil
}

// decodeEvents decodes the entry's events. The last event must have the entry's type.
func (e *Entry) decodeEvents(list []Event) (_ []payload, err error) {
	decoded := make([]payload, len(list))
	for i := range list {
		if decoded[i], err = list[i].decodePayload(); err != nil {
			return nil, err
		}
	}
	if last := list[len(list)-1].Type; last != e.Type {
		return nil, fmt.Errorf("%w: it is of type %s, and its last event of type %s", ErrChanged, e.Type, last)
	}
	return decoded, nil
}

// singleEvent returns the only event of an entry that belongs to no run.
func (e *Entry) singleEvent(r Reader) (payload, error) {
	decoded, err := e.decodePayloads(r)
	if err != nil {
		return nil, err
	}
	if len(decoded) != 1 {
		return nil, fmt.Errorf("entry %d: %w: it belongs to no run and has several events", e.Index, ErrChanged)
	}
	return decoded[0], nil
}

// A logEvent is an event about no run, decoded.
type logEvent struct {
	event   Event // without its payload
	payload payload
}

// eventsOfTypes returns the events about no run of some types, oldest first.
func eventsOfTypes(r Reader, types ...Type) (list []logEvent, err error) {
	for _, t := range types {
		for e, err := range r.EntriesOfType(t) {
			if err != nil {
				return nil, err
			}
			p, err := e.singleEvent(r)
			if err != nil {
				return nil, err
			}
			list = append(list, logEvent{Event{Index: e.Index, At: e.At, By: e.By}, p})
		}
	}
	slices.SortFunc(list, func(a, b logEvent) int { return cmp.Compare(a.event.Index, b.event.Index) })
	return list, nil
}

// blobReferences returns the blobs that the entry refers to.
func (e *Entry) blobReferences(r Reader) ([]canonical.Digest, error) {
	decoded, err := e.decodePayloads(r)
	if err != nil {
		return nil, err
	}
	return e.referencesOf(decoded), nil
}

// referencesOf returns the blobs that the entry refers to. payloads holds the entry's decoded
// events.
func (e *Entry) referencesOf(payloads []payload) (refs []canonical.Digest) {
	if isRef(e.Events) {
		refs = append(refs, canonical.Digest(e.Events[1:]))
	}
	for _, p := range payloads {
		refs = append(refs, payloadReferences(p)...)
	}
	return refs
}

// Events returns the events of the entries from an index on, oldest first.
func Events(r Reader, from int64) iter.Seq2[Event, error] { return flattenEntries(r, r.Entries(from)) }

// EventsOf returns the events of one run, oldest first.
func EventsOf(r Reader, run string) iter.Seq2[Event, error] {
	return flattenEntries(r, r.EntriesOf(run))
}

func flattenEntries(r Reader, entries iter.Seq2[Entry, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for e, err := range entries {
			if err != nil {
				yield(Event{}, err)
				return
			}
			list, err := e.ReadEvents(r)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, event := range list {
				if !yield(event, nil) {
					return
				}
			}
		}
	}
}

// decodePayload decodes the event's payload strictly: only its canonical form is accepted.
func (e *Event) decodePayload() (payload, error) {
	p, err := newPayload(e.Type)
	if err != nil {
		return nil, err
	}
	if err := canonical.Unmarshal(e.Payload, p); err != nil {
		return nil, fmt.Errorf("the event is not one of %s: %w", e.Type, err)
	}
	encoded, err := encodePayload(p)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(encoded, e.Payload) {
		return nil, fmt.Errorf("the event is not in the one form that %s has", e.Type)
	}
	if part, ok := p.(recording); ok {
		return p, part.runRecord().checkInputs()
	}
	return p, nil
}

// checkInputs validates a part of a run's record.
func (r *record) checkInputs() error {
	if len(r.Steps) == 0 {
		return errors.New("it records no step")
	}
	next := 0
	for _, stored := range r.Inputs {
		switch k := stored.Event.Kind(); {
		case stored.Step < next || stored.Step >= len(r.Steps):
			return fmt.Errorf("its inputs are not in the order of its steps, or of a step %d that it does not record",
				stored.Step)
		case stored.At == "" && stored.Event == nil:
			return fmt.Errorf("the input of its step %d is empty", stored.Step)
		case stored.Event != nil && k != '{' && eventRef(stored.Event) == "":
			return fmt.Errorf("the event of its step %d is neither an object nor a reference", stored.Step)
		}
		next = stored.Step + 1
	}
	return nil
}
