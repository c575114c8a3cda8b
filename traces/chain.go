package traces

import (
	"pgfsm/internal/canonical"
	"pgfsm/states"
)

// A Chain numbers the steps of one run and links each to the one before.
type Chain struct {
	prev   canonical.Digest
	next   int
	lastAt string // time of the previous step; before the first step, the arrival of the request
}

// NewChain begins the chain of a run at its header.
func NewChain(h *Header) *Chain { return &Chain{prev: h.chainDigest(), lastAt: h.Request.At} }

// Continue moves the chain past n linked steps, the last of which has this hash and time.
func (c *Chain) Continue(n int, last canonical.Digest, at string) {
	c.prev, c.next, c.lastAt = last, n, at
}

// Link completes a step. A step's time is never before that of the previous step, even if the clock
// was set back. Link does not copy the values of s, so they must not change as long as the result
// is used.
func (c *Chain) Link(s states.Step, at string) Step {
	c.lastAt = max(c.lastAt, at)
	step := Step{
		At:      c.lastAt,
		Command: s.Command,
		Event:   s.Event,
		Facts:   s.Facts,
		From:    s.From,
		Prev:    c.prev,
		Seq:     c.next,
		To:      s.To,
		Trigger: s.On,
	}
	step.Hash = step.computeHash()
	c.prev, c.next = step.Hash, c.next+1
	return step
}

// Last returns the hash of the last step; without a step, the digest of the header.
func (c *Chain) Last() canonical.Digest { return c.prev }

// computeHash returns the step's hash: over its canonical form without the hash. The values of the
// step must be canonical.
func (s *Step) computeHash() canonical.Digest {
	unhashed := *s
	unhashed.Hash = ""
	return canonical.Sum(kindStep, unhashed.canonicalLine())
}

// canonicalLine returns the step's canonical form. The values of the step must be canonical.
func (s *Step) canonicalLine() []byte { return canonical.MustSorted(s) }

// Head returns the head of a trace that ends with a step of this hash and in this outcome.
func Head(last canonical.Digest, o states.Outcome) canonical.Digest {
	return headOf(last, canonical.MustSorted(o))
}
