package gates

import (
	"fmt"
	"math/rand/v2"

	"pgfsm/policy"
)

// A gen draws one case. The draw depends on the seed and the case's number, and on no other case.
type gen struct{ *rand.Rand }

func newGen(seed uint64, i int) *gen {
	return &gen{rand.New(rand.NewPCG(seed, uint64(i)))}
}

// pick draws one of several values.
func pick[T any](g *gen, from ...T) T { return from[g.IntN(len(from))] }

func (g *gen) chance(oneIn int) bool { return g.IntN(oneIn) == 0 }

// A sample is a generated case.
type sample struct {
	input   []byte
	payload []byte // that a summary is about
	want    string // the right answer by construction; "" leaves it to the second reader
}

// A class makes cases of one kind.
type class struct {
	name   string
	shares int // of the cases, relative to the other classes
	draw   func(*gen) sample
}

// A judgement compares a gate's answer with the right one.
type judgement struct {
	want, got string
	code      policy.Code
}

// A fuzzer generates cases class by class, and judges them.
type fuzzer struct {
	seed    uint64
	classes []class
	order   []int // the class of each case, over and over
	judge   func(*sample) judgement
}

func newFuzzer(seed uint64, classes []class, judge func(*sample) judgement) *fuzzer {
	f := &fuzzer{seed: seed, classes: classes, judge: judge}
	for i, c := range classes {
		for range c.shares {
			f.order = append(f.order, i)
		}
	}
	return f
}

// sample makes the ith case.
func (f *fuzzer) sample(i int) (class int, s sample) {
	class = f.order[i%len(f.order)]
	return class, f.classes[class].draw(newGen(f.seed, i))
}

// chunk is how many generated cases are one part.
const chunk = 512

// A count is the result of one part of the cases.
type count struct {
	classes []Class
	slipped []int // the numbers of the first slips
}

func (f *fuzzer) count(from, to int) count {
	c := count{classes: make([]Class, len(f.classes))}
	for i := from; i < to; i++ {
		class, s := f.sample(i)
		j := f.judge(&s)
		n := &c.classes[class]
		n.add(j.got, j.code)
		if j.got == j.want {
			continue
		}
		if n.Slips++; len(c.slipped) < maxSlipped {
			c.slipped = append(c.slipped, i)
		}
	}
	return c
}

// fuzz judges n generated cases.
func (e *evaluation) fuzz(f *fuzzer, n int, counted string) Suite {
	parts := make([]count, (n+chunk-1)/chunk)
	e.each(n, chunk, func(part, from, to int) { parts[part] = f.count(from, to) })
	s := Suite{Cases: n, Seed: &e.options.Seed, Counted: fmt.Sprintf("%s in %d classes", counted, len(f.classes))}
	for _, c := range f.classes {
		s.Classes = append(s.Classes, Class{Class: c.name})
	}
	slips := 0
	for i := range parts {
		for j := range parts[i].classes {
			s.Classes[j].sum(&parts[i].classes[j])
			slips += parts[i].classes[j].Slips
		}
		for _, i := range parts[i].slipped {
			class, sample := f.sample(i)
			j := f.judge(&sample)
			s.slip(fmt.Sprintf("%s-%d", f.classes[class].name, i), sample.input, j.want, j.got)
		}
	}
	s.Slips, s.Passed = slips, n-slips
	return s
}
