package traces

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/fsm"
	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/states"
)

// Format names the shape of a trace.
const Format = "pgfsm.trace/v1"

// Kinds of digest in a trace.
const (
	kindHeader = "trace header"
	kindStep   = "trace step"
	kindHead   = "trace head"
)

// head computes the head over the last hash and the outcome, which must be canonical.
func head(last canonical.Digest, outcome []byte) canonical.Digest {
	h := canonical.NewHasher(kindHead)
	h.Write([]byte(`{"last":"` + string(last) + `","outcome":`))
	h.Write(outcome)
	h.Write([]byte{'}'})
	return h.Digest()
}

// Header is all of a trace that is known before the first step. Its members stand in canonical order.
type Header struct {
	Bundle  Bundle           `json:"bundle"`
	Format  string           `json:"format"`
	Machine canonical.Digest `json:"machine"`
	Request states.Request   `json:"request"`
	RunID   string           `json:"run_id"`
}

// Bundle is what the operator had decided, and its digest.
type Bundle struct {
	Content jsontext.Value   `json:"content"` // a policy.Content in canonical form
	Digest  canonical.Digest `json:"digest"`
}

// canonical returns the header's canonical form. The bundle's content is canonical already and is not read again.
func (h *Header) canonical() ([]byte, error) {
	small, err := canonical.Sorted(struct {
		Format  string           `json:"format"`
		Machine canonical.Digest `json:"machine"`
		Request states.Request   `json:"request"`
		RunID   string           `json:"run_id"`
	}{h.Format, h.Machine, h.Request, h.RunID})
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(h.Bundle.Content)+len(small)+128)
	b = append(append(b, `{"bundle":{"content":`...), h.Bundle.Content...)
	b = append(append(b, `,"digest":`...), quote(h.Bundle.Digest)...)
	b = append(b, `},`...)
	return append(b, small[1:]...), nil
}

// NewHeader makes the header of a run that starts now.
func NewHeader(m *states.Machine, r *states.Run) Header {
	return Header{
		Bundle:  Bundle{Content: r.Bundle().Canonical(), Digest: r.Bundle().Digest()},
		Format:  Format,
		Machine: m.Digest(),
		Request: r.Request(),
		RunID:   r.ID(),
	}
}

// Step is one recorded transition. Command, Event and Facts are canonical; null where there is none.
type Step struct {
	At      string // RFC 3339, UTC: when it was recorded
	Command jsontext.Value
	Event   jsontext.Value
	Facts   jsontext.Value
	From    fsm.State
	Hash    canonical.Digest
	Prev    canonical.Digest
	Seq     int
	To      fsm.State
	Trigger fsm.Trigger
}

// Name returns the file name of a run's trace.
func Name(runID string) string { return "trace_" + runID + ".json" }

// content decodes the bundle's content and holds it to its digest.
func (b *Bundle) content() (policy.Content, error) {
	var c policy.Content
	if got := canonical.Sum("bundle", b.Content); got != b.Digest {
		return c, fmt.Errorf("the bundle's digest is %s, its content has %s", b.Digest, got)
	}
	return c, canonical.Unmarshal(b.Content, &c)
}
