package ledger

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/traces/ledger/checkpoint"
)

// encodeBody returns a body in canonical form. Its events are canonical already.
func encodeBody(by string, events [][]byte, run string, salt []byte) jsontext.Value {
	b := canonical.AppendText([]byte(`{"by":`), by)
	b = append(append(b, `,"events":[`...), bytes.Join(events, []byte{','})...)
	b = append(b, ']')
	if run != "" {
		b = canonical.AppendText(append(b, `,"run":`...), run)
	}
	b = append(b, `,"salt":"`...)
	b = base64.StdEncoding.AppendEncode(b, salt)
	return append(b, `"}`...)
}

// readBody decodes the body strictly: only its canonical form is accepted.
func (e *Entry) readBody() (*checkpoint.Body, error) {
	b, err := checkpoint.ParseBody(e.Body)
	if err != nil {
		return nil, ruleForm.Broken("entry %d: its body: %w", e.Index, err)
	}
	if b.Run != e.RunID {
		return nil, ruleHeader.Broken("entry %d: %w: its body is of run %q", e.Index, ErrChanged, b.Run)
	}
	return b, nil
}

// Leaf returns the bytes of the entry's leaf, its header in canonical form.
func (e *Entry) Leaf() jsontext.Value {
	if e.Pruned() {
		return e.Header
	}

	var stored struct {
		Events []typed `json:"events"`
	}
	// A malformed body has a leaf that is not the tree's.
	_ = json.Unmarshal(e.Body, &stored)

	types := make([]Type, len(stored.Events))
	for i := range stored.Events {
		types[i] = stored.Events[i].Type
	}

	return e.leafOf(types)
}

// leafOf returns the leaf of an entry whose events have these types.
func (e *Entry) leafOf(types []Type) jsontext.Value {
	digest := sha256.Sum256(e.Body)
	b := canonical.AppendText([]byte(`{"at":`), e.At)
	b = base64.StdEncoding.AppendEncode(append(b, `,"body":"`...), digest[:])
	b = canonical.AppendText(append(b, `","class":`...), string(classOf(types)))
	b = strconv.AppendInt(append(b, `,"n":`...), int64(e.N), 10)
	b = canonical.AppendText(append(b, `,"prev":`...), e.Prev)
	b = append(b, `,"types":[`...)
	for i, t := range types {
		if i > 0 {
			b = append(b, ',')
		}
		b = canonical.AppendText(b, string(t))
	}
	return append(b, "]}"...)
}

// Pruned reports whether the entry has only a header.
func (e *Entry) Pruned() bool { return len(e.Body) == 0 }

// readHeader decodes the header of a pruned entry strictly, and compares it with the entry.
func (e *Entry) readHeader() (*checkpoint.Header, error) {
	h, err := checkpoint.ParseHeader(e.Header)
	if err != nil {
		return nil, ruleForm.Broken("its header: %w", err)
	}
	if h.At != e.At || h.N != e.N || h.Prev != e.Prev {
		return nil, ruleHeader.Broken("its header is that of another entry")
	}
	return h, nil
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
	p, err := e.singleEvent()
	if err != nil {
		return "", err
	}
	return p.payload.(*logCreated).Origin, nil
}

// ReadEvents returns the entry's events. A pruned entry has none.
func (e *Entry) ReadEvents() ([]Event, error) {
	if e.Pruned() {
		return nil, nil
	}
	b, err := e.readBody()
	if err != nil {
		return nil, err
	}
	list, err := e.splitEvents(b)
	if err != nil {
		return nil, fmt.Errorf("entry %d: %w", e.Index, err)
	}
	return list, nil
}

// splitEvents returns the events of a body, each with its type.
func (e *Entry) splitEvents(b *checkpoint.Body) (list []Event, err error) {
	var values []jsontext.Value
	if err := json.Unmarshal(b.Events, &values); err != nil {
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
			By:      b.By,
			Payload: v,
		})
	}

	if len(list) == 0 {
		return nil, ruleClass.Broken("it has no event")
	}

	return list, nil
}

// A decodedEvent is an event with its payload.
type decodedEvent struct {
	event   Event
	payload payload
}

// decodeEvents returns the entry's events, decoded. An entry that belongs to no run has the type of
// its only event.
func (e *Entry) decodeEvents() ([]decodedEvent, error) {
	list, err := e.ReadEvents()
	if err != nil {
		return nil, err
	}

	decoded := make([]decodedEvent, len(list))
	for i := range list {
		p, err := list[i].decodePayload()
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", e.Index, err)
		}
		decoded[i] = decodedEvent{list[i], p}
	}

	if !e.Pruned() && e.RunID == "" && (len(list) != 1 || list[0].Type != e.Type) {
		return nil, ruleClass.Broken("entry %d: %w: it belongs to no run, and is not one event of type %s", e.Index,
			ErrChanged, e.Type)
	}

	return decoded, nil
}

// singleEvent returns the only event of an entry that belongs to no run.
func (e *Entry) singleEvent() (decodedEvent, error) {
	decoded, err := e.decodeEvents()
	switch {
	case err != nil:
		return decodedEvent{}, err
	case len(decoded) != 1 || e.RunID != "":
		return decodedEvent{}, ruleClass.Broken("entry %d: %w: it is not one event about no run", e.Index, ErrChanged)
	}
	return decoded[0], nil
}

// eventsOfTypes returns the events about no run of some types, oldest first.
func eventsOfTypes(r Reader, types ...Type) (list []decodedEvent, err error) {
	for _, t := range types {
		for e, err := range r.EntriesOfType(t, 0) {
			if err != nil {
				return nil, err
			}
			event, err := e.singleEvent()
			if err != nil {
				return nil, err
			}
			list = append(list, event)
		}
	}
	slices.SortFunc(list, func(a, b decodedEvent) int { return cmp.Compare(a.event.Index, b.event.Index) })
	return list, nil
}

// blobReferences returns the blobs that the entry refers to.
func (e *Entry) blobReferences() (refs []canonical.Digest, err error) {
	decoded, err := e.decodeEvents()
	for i := range decoded {
		refs = append(refs, payloadReferences(decoded[i].payload)...)
	}
	return refs, err
}

// Events returns the events of the entries from an index on, oldest first.
func Events(r Reader, from int64) iter.Seq2[Event, error] { return flattenEntries(r.Entries(from)) }

// EventsOf returns the events of one run, oldest first.
func EventsOf(r Reader, run string) iter.Seq2[Event, error] { return flattenEntries(r.EntriesOf(run)) }

func flattenEntries(entries iter.Seq2[Entry, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for e, err := range entries {
			if err != nil {
				yield(Event{}, err)
				return
			}
			list, err := e.ReadEvents()
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
		return nil, ruleForm.Wrap(err)
	}
	if err := canonical.Unmarshal(e.Payload, p); err != nil {
		return nil, ruleForm.Broken("the event is not one of %s: %w", e.Type, err)
	}
	encoded, err := encodePayload(p)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(encoded, e.Payload) {
		return nil, ruleForm.Broken("the event is not in the one form that %s has", e.Type)
	}
	if part, ok := p.(recording); ok {
		return p, part.runRecord().checkInputs()
	}
	return p, nil
}

func isNegative(n int64) bool { return n < 0 }

// checkInputs validates a part of a run's record.
func (r *record) checkInputs() error {
	if len(r.Steps) == 0 {
		return ruleSteps.Broken("it records no step")
	}
	if n := len(r.After); n > len(r.Steps) || n > 0 && r.After[n-1] == 0 || slices.ContainsFunc(r.After, isNegative) {
		return ruleSteps.Broken("its times are of other steps, or fall")
	}
	next := 0
	for _, stored := range r.Inputs {
		switch k := stored.Event.Kind(); {
		case stored.Step < next || stored.Step >= len(r.Steps):
			return ruleSteps.Broken("its inputs are not in the order of its steps, or of a step %d that it does not record",
				stored.Step)
		case stored.Age < 0 || stored.Age > 0 && eventRef(stored.Event) == "":
			return ruleSteps.Broken("the age of the input of its step %d is negative, or that of no listing", stored.Step)
		case k != '{' && eventRef(stored.Event) == "":
			return ruleSteps.Broken("the event of its step %d is neither an object nor a reference", stored.Step)
		}
		next = stored.Step + 1
	}
	return nil
}
