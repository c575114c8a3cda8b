package ledger

import (
	"bytes"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
)

// Export writes all events, oldest first, one a line, in canonical form and with whole payloads. A payload of more than
// [MaxInline] bytes is a [Ref] in the event's row, and its hash is over the Ref. Export returns how many events it wrote.
func Export(r Reader, to io.Writer) (n int64, err error) {
	for e, err := range r.Events(0) {
		if err != nil {
			return n, err
		}
		value, err := resolve(r, string(e.Payload))
		if err != nil {
			return n, fmt.Errorf("event %d: %w", e.Seq, err)
		}
		line, err := e.Encode(value)
		if err != nil {
			return n, err
		}
		if _, err := to.Write(append(line, '\n')); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// encodedEvent is an event as it is exported and, without its hash, hashed.
type encodedEvent struct {
	At      string           `json:"at"`
	By      string           `json:"by"`
	Hash    canonical.Digest `json:"hash,omitempty"`
	Payload jsontext.Value   `json:"payload"`
	Prev    canonical.Digest `json:"prev"`
	Run     string           `json:"run"`
	RunPrev canonical.Digest `json:"run_prev"`
	Seq     int64            `json:"seq"`
	Type    Type             `json:"type"`
}

// Encode returns the event in canonical form, with the given payload. An error means that the payload is not in canonical form.
func (e *Event) Encode(payload jsontext.Value) ([]byte, error) {
	if c, err := canonical.JSON(payload); err != nil || !bytes.Equal(c, payload) {
		return nil, fmt.Errorf("the payload of event %d is not in canonical form", e.Seq)
	}
	return canonical.Sorted(&encodedEvent{e.At, e.By, e.Hash, payload, e.Prev, e.RunID, e.RunPrev, e.Seq, e.Type})
}

// Whole returns the payload of an event, also if it is a blob.
func (e *Event) Whole(r Reader) (jsontext.Value, error) {
	v, err := resolve(r, string(e.Payload))
	if err != nil {
		return nil, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	return v, nil
}
