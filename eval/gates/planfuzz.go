package gates

import (
	"fmt"
	"slices"

	"pgfsm/policy"
	"pgfsm/states"
)

// chunk is how many generated cases one job takes at a time.
const chunk = 512

// A fuzzer plays plans through the machine, in one world, and compares with the second reader. It is safe for concurrent use.
type fuzzer struct {
	machine *states.Machine
	subject *subject
	bundle  *policy.Bundle
	listed  []*states.ToolsListed
	seed    uint64
	classes []planClass
	order   []int // the class of each plan, over and over
}

func newFuzzer(m *states.Machine, s *subject, seed uint64) (*fuzzer, error) {
	b, err := policy.Compile(content())
	if err != nil {
		return nil, err
	}
	f := &fuzzer{
		machine: m, subject: s, bundle: b, seed: seed,
		listed: []*states.ToolsListed{listed(pageKB, pageDesk)}, classes: planClasses(),
	}
	for i, c := range f.classes {
		for range c.shares {
			f.order = append(f.order, i)
		}
	}
	return f, nil
}

// plan makes the ith plan.
func (f *fuzzer) plan(i int) (class int, doc []byte) {
	class = f.order[i%len(f.order)]
	return class, []byte(f.classes[class].make(newGen(f.seed, i)))
}

// A played plan is what came of it.
type played struct {
	got  string // permitted, refused, askedBack, or what is none of these
	code policy.Code
}

// play takes a plan through the machine. reads is what the second reader makes of it.
func (f *fuzzer) play(doc []byte, reads *reading) played {
	w := world{listed: f.listed, plan: doc, result: plainResult}
	o, err := f.subject.play(f.machine, questionRun(f.bundle), &w)
	switch {
	case err != nil:
		return played{got: "an error: " + err.Error()}
	case o.State == string(states.Answered) && len(w.calls) == 1:
		if c := &w.calls[0]; reads.want == permitted && !reads.calls(c.Server, c.Tool, c.Bytes) {
			return played{got: "another call than the plan's"}
		}
		return played{got: permitted}
	case len(w.calls) > 0:
		return played{got: fmt.Sprintf("%d calls, and %s", len(w.calls), o.State)}
	case o.State == string(states.NeedsInfo):
		return played{got: askedBack}
	case o.State == string(states.Blocked):
		return played{got: refused, code: o.Code}
	}
	return played{got: "ended as " + o.State}
}

// A count is what a part of the plans came to.
type count struct {
	classes []Class
	slipped []int // numbers of plans, the first ones
}

func (f *fuzzer) count(from, to int) count {
	c := count{classes: make([]Class, len(f.classes))}
	for i := from; i < to; i++ {
		class, doc := f.plan(i)
		reads := read(doc)
		p := f.play(doc, &reads)
		n := &c.classes[class]
		n.add(p.got, p.code)
		if want := f.classes[class].want; p.got == reads.want && (want == "" || want == reads.want) {
			continue
		}
		if n.Slips++; len(c.slipped) < maxSlipped {
			c.slipped = append(c.slipped, i)
		}
	}
	return c
}

// add counts one case.
func (c *Class) add(got string, code policy.Code) {
	c.Cases++
	switch got {
	case permitted:
		c.Allowed++
	case askedBack:
		c.Asked++
	case refused:
		c.Blocked++
		if c.ByCode == nil {
			c.ByCode = make(map[string]int)
		}
		c.ByCode[string(code)]++
	}
}

// sum adds a part's counts to the whole.
func (c *Class) sum(part *Class) {
	c.Cases, c.Allowed, c.Asked = c.Cases+part.Cases, c.Allowed+part.Allowed, c.Asked+part.Asked
	c.Blocked, c.Slips = c.Blocked+part.Blocked, c.Slips+part.Slips
	if len(part.ByCode) > 0 && c.ByCode == nil {
		c.ByCode = make(map[string]int)
	}
	for code, n := range part.ByCode { // a sum, in any order
		c.ByCode[code] += n
	}
}

// planFuzz plays generated plans through the machine.
func planFuzz(e *evaluation) (Suite, error) {
	f, err := newFuzzer(e.machine, &e.subject, e.options.Seed)
	if err != nil {
		return Suite{}, err
	}
	parts := make([]count, (e.options.Plans+chunk-1)/chunk)
	e.each(e.options.Plans, chunk, func(part, from, to int) { parts[part] = f.count(from, to) })
	s := Suite{
		Cases: e.options.Plans, Seed: &e.options.Seed, BlockedByAllowlist: new(int),
		Counted: fmt.Sprintf("generated plans in %d classes", len(f.classes)),
	}
	for _, c := range f.classes {
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
		if e.ctx.Err() != nil {
			break
		}
		s.Slipped = append(s.Slipped, f.slip(i))
	}
	return s, nil
}

// total adds the classes up.
func (s *Suite) total() {
	for i := range s.Classes {
		s.Slips += s.Classes[i].Slips
		if s.BlockedByAllowlist != nil {
			*s.BlockedByAllowlist += s.Classes[i].ByCode[string(policy.CodeToolNotAllowed)]
		}
	}
	s.Passed = s.Cases - s.Slips
}

// slip is the ith plan as a slip.
func (f *fuzzer) slip(i int) Slip {
	class, doc := f.plan(i)
	reads := read(doc)
	want := f.classes[class].want
	id := fmt.Sprintf("%s-%d", f.classes[class].name, i)
	if want != "" && want != reads.want { // the generator or the second reader is wrong: nothing is known of smaller ones
		return Slip{ID: id, Input: string(doc), Want: want, Got: "the second reader says " + reads.want, Bytes: slices.Clone(doc)}
	}
	t := trial{
		id: id, want: reads.want, input: doc,
		got: func(in []byte) string {
			reads := read(in)
			return f.play(in, &reads).says()
		},
		known: func(in []byte, _ string) bool { return read(in).want == reads.want },
	}
	return t.slip(t.got(doc))
}

// says is what came of a plan, with its code.
func (p played) says() string {
	if p.code != "" {
		return p.got + ": " + string(p.code)
	}
	return p.got
}
