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

// Step is one recorded transition. Its members stand in canonical order.
type Step struct {
	At      string           `json:"at"` // RFC 3339, UTC: when it was recorded
	Command jsontext.Value   `json:"command"`
	Event   jsontext.Value   `json:"event"`
	Facts   jsontext.Value   `json:"facts"`
	From    fsm.State        `json:"from"`
	Hash    canonical.Digest `json:"hash"`
	Prev    canonical.Digest `json:"prev"`
	Seq     int              `json:"seq"`
	To      fsm.State        `json:"to"`
	Trigger fsm.Trigger      `json:"trigger"`
}

// hashed is a step without its hash: what the hash covers.
type hashed struct {
	At      string           `json:"at"`
	Command jsontext.Value   `json:"command"`
	Event   jsontext.Value   `json:"event"`
	Facts   jsontext.Value   `json:"facts"`
	From    fsm.State        `json:"from"`
	Prev    canonical.Digest `json:"prev"`
	Seq     int              `json:"seq"`
	To      fsm.State        `json:"to"`
	Trigger fsm.Trigger      `json:"trigger"`
}

// digest computes the step's hash. The raw values must be canonical.
func (s *Step) digest() (canonical.Digest, error) {
	return canonical.SumSorted(kindStep, hashed{
		s.At, s.Command, s.Event, s.Facts, s.From, s.Prev, s.Seq, s.To, s.Trigger,
	})
}

// head computes the head over the last hash and the outcome.
func head(last canonical.Digest, outcome jsontext.Value) (canonical.Digest, error) {
	return canonical.SumSorted(kindHead, struct {
		Last    canonical.Digest `json:"last"`
		Outcome jsontext.Value   `json:"outcome"`
	}{last, outcome})
}

// chain extends a trace: it numbers steps and links each to the one before.
type chain struct {
	prev canonical.Digest
	next int
}

// link completes a step.
func (c *chain) link(s states.Step, at string) (*Step, error) {
	step := &Step{
		At: at, Command: s.Command, Event: s.Event, Facts: s.Facts, From: s.From, Prev: c.prev, Seq: c.next, To: s.To,
		Trigger: s.On,
	}
	hash, err := step.digest()
	if err != nil {
		return nil, err
	}
	step.Hash = hash
	c.prev, c.next = hash, c.next+1
	return step, nil
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
