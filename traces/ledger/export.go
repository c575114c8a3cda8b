package ledger

import (
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
)

// Export writes all events, oldest first, one a line, in canonical form and with their payloads whole. A payload of more
// than [MaxInline] bytes stood in the event as its [Ref]; its hash is over that. It returns how many events it wrote.
func Export(r Reader, to io.Writer) (n int64, err error) {
	var line []byte
	for e, err := range r.Events(0) {
		if err != nil {
			return n, err
		}
		value, err := resolve(r, string(e.Payload))
		if err != nil {
			return n, fmt.Errorf("event %d: %w", e.Seq, err)
		}
		line = append(e.Spell(line[:0], value), '\n')
		if _, err := to.Write(line); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Spell appends the event in canonical form, with its payload as it is given.
func (e *Event) Spell(b []byte, payload jsontext.Value) []byte {
	o := canonical.NewObject(b)
	o.Text("at", e.At)
	o.Text("by", e.By)
	o.Digest("hash", e.Hash)
	o.Raw("payload", payload)
	o.Digest("prev", e.Prev)
	o.Text("run", e.RunID)
	o.Digest("run_prev", e.RunPrev)
	o.Raw("seq", strconv.AppendInt(nil, e.Seq, 10))
	o.Text("type", string(e.Type))
	return o.Bytes()
}

// Whole returns what an event says, also where it stands in a blob.
func (e *Event) Whole(r Reader) (jsontext.Value, error) {
	v, err := resolve(r, string(e.Payload))
	if err != nil {
		return nil, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	return v, nil
}
