package gates

import (
	"fmt"

	"pgfsm/policy"
)

// groundingFuzz makes summaries of generated payloads: true ones, which must pass, and ones with something wrong, which must
// not.
func groundingFuzz(e *evaluation) (Suite, error) {
	b, err := policy.Compile(content())
	if err != nil {
		return Suite{}, err
	}
	classes := groundClasses()
	n := max(e.options.Plans/groundingShare, 1)
	parts := make([]count, (n+chunk-1)/chunk)
	e.each(n, chunk, func(part, from, to int) { parts[part] = e.countGrounded(b, classes, from, to) })
	s := Suite{Cases: n, Seed: &e.options.Seed, Counted: fmt.Sprintf("generated summaries in %d classes", len(classes))}
	for _, c := range classes {
		s.Classes = append(s.Classes, Class{Class: c.name})
	}
	var slipped []int
	for i := range parts {
		for j := range parts[i].classes {
			s.Classes[j].sum(&parts[i].classes[j])
		}
		slipped = append(slipped, parts[i].slipped...)
	}
	s.total()
	for _, i := range slipped[:min(len(slipped), maxSlipped)] {
		c := &classes[i%len(classes)]
		payload, summary := c.make(newGen(e.options.Seed, i))
		t := e.grounded(b, fmt.Sprintf("%s-%d", c.name, i), c.want, payload, summary)
		s.Slipped = append(s.Slipped, t.slip(t.got(summary)))
	}
	return s, nil
}

func (e *evaluation) countGrounded(b *policy.Bundle, classes []groundClass, from, to int) count {
	c := count{classes: make([]Class, len(classes))}
	for i := from; i < to; i++ {
		at := i % len(classes)
		payload, summary := classes[at].make(newGen(e.options.Seed, i))
		n, got := &c.classes[at], refused
		v := e.subject.lock(b, payload, summary)
		if v.Allows() {
			got = locked
			n.add(permitted, "")
		} else {
			n.add(refused, v.Code)
		}
		if got == classes[at].want {
			continue
		}
		if n.Slips++; len(c.slipped) < maxSlipped {
			c.slipped = append(c.slipped, i)
		}
	}
	return c
}
