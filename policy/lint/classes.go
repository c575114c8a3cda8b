package lint

import (
	"slices"
	"unicode/utf8"

	"pgfsm/policy/condition"
)

// maxClasses bounds the classes of one name's texts. Beyond it nothing is said of policies that differ in them.
const maxClasses = 512

// A texts is a set of texts: those that a glob matches, or those that a condition asks for.
type texts struct {
	glob *pattern // nil: asked
	asks condition.Texts
}

func (t *texts) has(s string) bool {
	if t.glob != nil {
		return t.glob.Match(s)
	}
	return t.asks.Has(s)
}

// single returns the only text of the set.
func (t *texts) single() (string, bool) {
	if t.glob != nil {
		return t.glob.text, t.glob.plain
	}
	return t.asks.Part, !t.asks.Before && !t.asks.More
}

func (t *texts) machine() machine {
	if t.glob != nil {
		return newMachine(t.glob.String())
	}
	var m machine
	if t.asks.Before {
		m.tokens = append(m.tokens, star)
	}
	m.tokens = append(m.tokens, []rune(t.asks.Part)...)
	if t.asks.More {
		m.tokens = append(m.tokens, star)
	}
	return m
}

// A class is texts that no set tells apart: of each set whether it has them. There may be none, but each text that
// there is stands in a class.
type class struct {
	in   []bool
	long bool // they are longer than a condition takes (condition.MaxName), which then fails
}

// classesWithin returns the classes of the texts that own matches, or false if the search is too large.
func classesWithin(own *pattern, sets []*texts, work *int) (all []class, ok bool) {
	var wild []*texts
	var singles []string
	if own.plain {
		singles = []string{own.text}
	} else {
		for _, t := range sets {
			if s, ok := t.single(); !ok {
				wild = append(wild, t)
			} else if own.Match(s) {
				singles = append(singles, s)
			}
		}
	}
	slices.Sort(singles)
	for _, s := range slices.Compact(singles) {
		c := class{in: make([]bool, len(sets)), long: len(s) > condition.MaxName}
		for i, t := range sets {
			c.in[i] = t.has(s)
		}
		all = append(all, c)
	}
	if own.plain {
		return all, true
	}
	machines := []machine{newMachine(own.String())}
	for _, t := range wild {
		if !utf8.ValidString(t.asks.Part) {
			return nil, false
		}
		machines = append(machines, t.machine())
	}
	combinations, ok := combine(machines, work)
	if !ok || len(all)+len(combinations) > maxClasses {
		return nil, false
	}
	for _, has := range combinations {
		c := class{in: make([]bool, len(sets))}
		k := 0
		for i, t := range sets {
			if _, single := t.single(); !single {
				c.in[i] = has.has(k)
				k++
			}
		}
		all = append(all, c)
	}
	return all, true
}

// combine returns, for the texts that the first machine matches, every set of the others that match one and the same.
func combine(machines []machine, work *int) ([]set, bool) {
	if len(machines) == 1 {
		return []set{newSet(0)}, true
	}
	w := &walk{machines: machines, seen: map[string]bool{}, all: true}
	if !w.run(maxOwnClasses, work) || len(w.found) > maxClasses {
		return nil, false
	}
	return w.found, true
}
