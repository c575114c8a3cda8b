package gates

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"pgfsm/fsm"
	"pgfsm/policy"
	"pgfsm/states"
)

// mutationPairs is how many mutants have two things broken at once.
const mutationPairs = 400

// mutating holds the compiler of the machine to broken copies of its table: every one must be refused (INV-6, and the order of
// all the others).
func mutating(e *evaluation) (Suite, error) {
	singles := mutations()
	known := make(map[string]mutation, len(singles))
	for _, m := range singles {
		known[m.name] = m
	}
	if len(known) != len(singles) {
		return Suite{}, errors.New("two mutations have one name")
	}
	if err := e.subject.compile(states.Table()); err != nil {
		return Suite{}, fmt.Errorf("the table itself is refused: %w", err)
	}
	mutants := make([][]string, 0, len(singles)+mutationPairs)
	for _, m := range singles {
		mutants = append(mutants, []string{m.name})
	}
	mutants = append(mutants, pairs(newGen(e.options.Seed, 0), singles)...)

	refusedBy := make([]string, len(mutants))
	e.each(len(mutants), 16, func(_, from, to int) {
		for i := from; i < to; i++ {
			refusedBy[i] = e.refuses(known, mutants[i])
		}
	})
	s := Suite{Cases: len(mutants), Seed: &e.options.Seed, Counted: "broken copies of the machine's table, one or two things broken in each"}
	for i, names := range mutants {
		class := known[names[0]].class
		if len(names) > 1 {
			class = "two_at_once"
		}
		at := slices.IndexFunc(s.Classes, func(c Class) bool { return c.Class == class })
		if at < 0 {
			at = len(s.Classes)
			s.Classes = append(s.Classes, Class{Class: class})
		}
		c := &s.Classes[at]
		if refusedBy[i] != "" {
			c.add(refused, policy.Code(refusedBy[i]))
			continue
		}
		c.add(permitted, "")
		if c.Slips++; len(s.Slipped) < maxSlipped {
			s.Slipped = append(s.Slipped, e.mutantTrial(known, names).slip(compiles))
		}
	}
	s.total()
	return s, nil
}

const compiles = "compiles"

// mutantTrial is a mutant as a trial: its input is the list of what is broken.
func (e *evaluation) mutantTrial(known map[string]mutation, names []string) *trial {
	input, err := json.Marshal(names)
	if err != nil {
		return &trial{}
	}
	return &trial{
		id: names[0], want: refused, input: input,
		got: func(in []byte) string {
			if names, ok := listOf(in, known); ok && e.refuses(known, names) == "" {
				return compiles
			}
			return refused
		},
		known: func(in []byte, _ string) bool {
			_, ok := listOf(in, known)
			return ok
		},
	}
}

// listOf reads a list of names that are known; an empty one is none.
func listOf[T any](in []byte, known map[string]T) (names []string, ok bool) {
	if json.Unmarshal(in, &names) != nil || len(names) == 0 {
		return nil, false
	}
	for _, name := range names {
		if _, ok := known[name]; !ok {
			return nil, false
		}
	}
	return names, true
}

// refuses breaks the table in each of the ways and returns the first proof that refuses what comes of it, or nothing.
func (e *evaluation) refuses(known map[string]mutation, names []string) string {
	t := states.Table()
	for _, name := range names {
		known[name].apply(&t)
	}
	err := e.subject.compile(t)
	if err == nil {
		return ""
	}
	var mistake *fsm.Mistake
	if errors.As(err, &mistake) {
		return mistake.Rule
	}
	return "error"
}

// pairs draws pairs of mutations that concern different states, so that neither can make the other good.
func pairs(g *gen, singles []mutation) (all [][]string) {
	for len(all) < mutationPairs {
		a, b := pick(g, singles...), pick(g, singles...)
		if a.at != "" && b.at != "" && a.at != b.at {
			all = append(all, []string{a.name, b.name})
		}
	}
	return all
}

// A mutation breaks one thing of a table.
type mutation struct {
	class, name string
	at          fsm.State // whose row it breaks; empty if it is about something else than a row
	apply       func(*fsm.Table[*states.Run])
}

// rowMutation breaks one row, found by where it begins and on what: another mutation may have moved it.
func rowMutation(class, name string, r fsm.Row[*states.Run], change func(t *fsm.Table[*states.Run], i int)) mutation {
	return mutation{class, name, r.From, func(t *fsm.Table[*states.Run]) {
		i := slices.IndexFunc(t.Rows, func(o fsm.Row[*states.Run]) bool { return o.From == r.From && o.On == r.On })
		if i >= 0 {
			change(t, i)
		}
	}}
}

func rowName(r fsm.Row[*states.Run]) string { return fmt.Sprintf("%s -%s-> %s", r.From, r.On, r.To) }
