package traces

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"pgfsm/fsm"
	"pgfsm/internal/canonical"
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

// headOf computes the head over the last hash and the outcome, which must be canonical.
func headOf(last canonical.Digest, outcome jsontext.Value) canonical.Digest {
	return canonical.Sum(kindHead, canonical.MustSorted(&struct {
		Last    canonical.Digest `json:"last"`
		Outcome jsontext.Value   `json:"outcome"`
	}{last, outcome}))
}

// Header is the part of a trace that is known before the first step. Its members are in canonical
// order.
type Header struct {
	Bundle  Bundle           `json:"bundle"`
	Format  string           `json:"format"`
	Machine canonical.Digest `json:"machine"`
	Request states.Request   `json:"request"`
	RunID   string           `json:"run_id"`
}

// Bundle holds the content of a policy bundle and its digest.
type Bundle struct {
	Content jsontext.Value   `json:"content"` // a policy.Content in canonical form
	Digest  canonical.Digest `json:"digest"`
}

// chainDigest returns the digest that step 0 is chained to: that of the header with the bundle's
// digest instead of the bundle. A bundle that many runs share is therefore hashed once.
func (h *Header) chainDigest() canonical.Digest {
	return canonical.Sum(kindHeader, canonical.MustSorted(&struct {
		Bundle  canonical.Digest `json:"bundle"`
		Format  string           `json:"format"`
		Machine canonical.Digest `json:"machine"`
		Request *states.Request  `json:"request"`
		RunID   string           `json:"run_id"`
	}{h.Bundle.Digest, h.Format, h.Machine, &h.Request, h.RunID}))
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

// Step is one recorded transition. Its members are in canonical order. Command, Event and Facts are
// canonical, or null if the step has none.
type Step struct {
	At      string           `json:"at"` // time of recording, as RFC 3339 in UTC
	Command jsontext.Value   `json:"command"`
	Event   jsontext.Value   `json:"event"`
	Facts   jsontext.Value   `json:"facts"`
	From    fsm.State        `json:"from"`
	Hash    canonical.Digest `json:"hash,omitzero"`
	Prev    canonical.Digest `json:"prev"`
	Seq     int              `json:"seq"`
	To      fsm.State        `json:"to"`
	Trigger fsm.Trigger      `json:"trigger"`
}

// Name returns the file name of a run's trace.
func Name(runID string) string { return "trace_" + runID + ".json" }

// checkRunID returns an error unless id is a UUIDv7 (RFC 9562) in its usual form: run ids become
// file names.
func checkRunID(id string) error {
	u, err := uuid.Parse(id)
	if err != nil || u.Version() != 7 || u.String() != id {
		return fmt.Errorf("the run id %s is not a UUIDv7", clipText(id))
	}
	return nil
}

// checkDigest compares the content with its digest.
func (b *Bundle) checkDigest() error {
	if computed := canonical.Sum("bundle", b.Content); computed != b.Digest {
		return fmt.Errorf("the bundle's digest is %s, its content has %s", b.Digest.Short(), computed.Short())
	}
	return nil
}
