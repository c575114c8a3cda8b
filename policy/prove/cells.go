package prove

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"pgfsm/policy/condition"
)

// Limits of one argument. Beyond them its conditions are free.
const (
	maxValues   = 20_000 // values before those that conditions judge alike are merged
	maxSubsets  = 4096   // sets of elements
	maxListSize = maxSize + 1
	maxNesting  = 6 // levels of a value that a schema requires
)

// A divider divides the values of one argument.
type divider struct {
	atoms   []*atom
	root    *tree
	in      *condition.Input
	known   map[string]vector
	problem string // why the argument is not divided
}

// A wrapper puts a value into the arguments. It is nil within the elements of a list.
type wrapper func(value) value

// outcomes returns the outcomes of the atoms.
func (d *divider) outcomes(arguments value) vector {
	if out, ok := d.known[arguments.json]; ok {
		return out
	}
	d.in.Args = []byte(arguments.json)
	out := []byte(ask(d.atoms, d.in))
	for i, a := range d.atoms {
		if a.loop && arguments.isObjectAt(a.path) && !d.root.descend(a.path[1:]).dividesKeys() {
			out[i] = byte(anything)
		}
	}
	d.known[arguments.json] = vector(out)
	return vector(out)
}

// merge merges values that no condition tells apart, and prefers values that conform to the schema.
func (d *divider) merge(values []value, s *shape, wrap wrapper) (merged []value) {
	if len(d.atoms) == 0 || wrap == nil {
		return values
	}
	known, valid := map[vector]int{}, map[vector]bool{}
	for _, v := range values {
		key := d.outcomes(wrap(v))
		i, ok := known[key]
		switch {
		case !ok:
			known[key], valid[key] = len(merged), s.conforms(&v)
			merged = append(merged, v)
		case !valid[key] && s.conforms(&v):
			merged[i], valid[key] = v, true
		}
	}
	return merged
}

func (d *divider) fail(problem string) []value {
	d.problem = cmp.Or(d.problem, problem)
	return nil
}

// divide returns values of every cell of a tree, without the absent one. The values that wrap puts
// into the argument are complete: whatever value the shape allows, one of these satisfies the same
// conditions.
func (d *divider) divide(t *tree, s *shape, wrap wrapper, level int) (values []value) {
	if level > maxNesting {
		return d.fail("its values are nested too deep")
	}
	if listed, ok := s.listed(); ok {
		return d.merge(listed, s, wrap)
	}

	if s.hasKind(text) {
		values = append(values, d.divideText(t, s)...)
	}
	if s.hasKind(number) {
		values = append(values, divideNumbers(t.numbers, s)...)
	}
	if s.hasKind(boolean) {
		values = append(values, boolValue(true), boolValue(false))
	}
	if s.hasKind(object) {
		values = append(values, d.divideObject(t, s, wrap, level)...)
	}
	if s.hasKind(list) {
		values = append(values, d.divideList(t, s, wrap, level)...)
	}
	if s.hasKind(null) {
		values = append(values, nullValue)
	}

	if len(values) > maxValues {
		return d.fail("its conditions tell too many values apart")
	}
	return d.merge(values, s, wrap)
}

// divideText divides texts by what they are compared with, by the patterns and by the sizes.
func (d *divider) divideText(t *tree, s *shape) (values []value) {
	excludes, patterns, sizes := s.textKeywords()
	texts, ok := divideAmong(t.literals, slices.Concat(t.patterns, patterns), slices.Concat(t.sizes, sizes))
	if !ok { // with the schema's own keywords there are too many states, so the cells stay
		excludes = nil
		if texts, ok = divideAmong(t.literals, t.patterns, t.sizes); !ok {
			return d.fail(tooManyStates)
		}
	}
	for _, candidate := range texts {
		if !slices.ContainsFunc(excludes, func(excluded func(string) bool) bool { return excluded(candidate) }) {
			values = append(values, textValue(candidate))
		}
	}
	return values
}

// divideAmong divides texts. A text that equals a literal is a cell of its own.
func divideAmong(literals, patterns []string, sizes []int) (texts []string, ok bool) {
	var confused []string // the literals that the product tells apart from other texts
	for again := true; again; {
		again = false
		if texts, ok = divideTexts(patterns, sizes); !ok {
			return nil, false
		}
		for _, candidate := range texts {
			if slices.Contains(literals, candidate) && !slices.Contains(confused, candidate) {
				confused, again = append(confused, candidate), true
				patterns = append(slices.Clip(patterns), `\A`+regexp.QuoteMeta(candidate)+`\z`)
			}
		}
	}
	for _, literal := range literals {
		addTo(&texts, literal)
	}
	return texts, true
}

// divideObject returns objects with every combination of what their members can be, and with more
// members where a size is asked.
func (d *divider) divideObject(t *tree, s *shape, wrap wrapper, level int) []value {
	names := t.names()
	for _, name := range s.Required() {
		addTo(&names, name)
	}

	objects := []members{{}}
	for _, name := range names {
		choices := d.divideMember(t, s, name, wrap, level)
		if len(objects)*len(choices) > maxValues {
			return d.fail("its members have too many combinations")
		}
		var longer []members
		for _, o := range objects {
			for _, choice := range choices {
				longer = append(longer, o.appendMember(name, choice))
			}
		}
		objects = longer
	}

	if wrap != nil && t.dividesKeys() {
		return d.addKeys(t, names, objects, wrap)
	}
	return d.fillObjects(t, objects)
}

// addKeys adds members that no condition names, with every set of names that loops tell apart. A
// loop over an object sees the names of its members as it sees the elements of a list.
func (d *divider) addKeys(t *tree, names []string, objects []members, wrap wrapper) (all []value) {
	texts, ok := divideAmong(slices.Concat(t.element.literals, names), t.element.patterns, t.element.sizes)
	if !ok {
		return d.fail("the patterns for its names have too many states together")
	}
	texts = slices.DeleteFunc(texts, func(name string) bool { return slices.Contains(names, name) })
	keys := make([]value, len(texts))
	for i, name := range texts {
		keys[i] = textValue(name)
	}

	sets := d.subsets(keys, wrap)
	if len(sets)*len(objects) > maxValues {
		return d.fail("its names have too many combinations")
	}
	for _, o := range objects {
		for _, set := range sets {
			longer := o
			for _, i := range set.elements {
				longer = longer.appendMember(texts[i], boolValue(true))
			}
			all = append(all, longer.value())
		}
	}
	return all
}

// divideMember returns what a member of an object can be.
func (d *divider) divideMember(t *tree, s *shape, name string, wrap wrapper, level int) (choices []value) {
	part, possible := s.member(name)
	required := s.requires(name)
	asked := t.members[name]
	if possible && asked != nil {
		inner := func(v value) value { return wrap(members{}.appendMember(name, v).value()) }
		if wrap == nil {
			inner = nil
		}
		choices = d.divide(asked, &part, inner, level+1)
	} else if possible { // no condition asks about it, so one value stands for all
		choices = sample(&part, level+1)
	}
	if !required || len(choices) == 0 { // an object that lacks what is required stays, for the validator
		choices = append(choices, value{})
	}
	return choices
}

// fillObjects adds members that no condition names, up to the sizes that conditions ask.
func (d *divider) fillObjects(t *tree, objects []members) (filled []value) {
	for _, o := range objects {
		for _, size := range sizesAround(t.sizes, len(o.parts)) {
			if size > maxListSize || len(filled) > maxValues {
				return d.fail("an object has a size that is too great to try")
			}
			longer := members{slices.Clone(o.names), slices.Clone(o.parts)}
			for i := 0; len(longer.parts) < size; i++ {
				if name := fmt.Sprint("member", i); t.members[name] == nil && !slices.Contains(o.names, name) {
					longer.names, longer.parts = append(longer.names, name), append(longer.parts, boolValue(true))
				}
			}
			filled = append(filled, longer.value())
		}
	}
	return filled
}

// sizesAround returns the sizes, from a least one on, for every way in which they can compare with
// the given ones.
func sizesAround(sizes []int, least int) []int {
	around := []int{least}
	for _, n := range sizes {
		for _, near := range []int{n - 1, n, n + 1} {
			if near > least {
				around = append(around, near)
			}
		}
	}
	slices.Sort(around)
	return slices.Compact(around)
}

// A subset is a set of elements: which outcomes each condition has for some element.
type subset struct {
	seen     vector
	elements []int
}

// divideList returns lists with every set of elements that conditions tell apart, and every size.
func (d *divider) divideList(t *tree, s *shape, wrap wrapper, level int) []value {
	inner := shape{s.Element()}
	var elements []value
	if t.element == nil {
		elements = sample(&inner, level+1)
	} else if wrap == nil {
		return d.fail("a list within a list is asked about its elements")
	} else {
		elements = d.merge(d.divide(t.element, &inner, nil, level+1), &inner, func(v value) value { return wrap(listOf(v)) })
	}

	sizes := slices.Clone(t.sizes)
	for _, n := range s.All {
		for _, size := range []*int{n.MinItems, n.MaxItems} {
			if counted(size) {
				sizes = append(sizes, *size)
			}
		}
	}

	var lists []value
	for _, set := range d.subsets(elements, wrap) {
		for _, size := range sizesAround(sizes, len(set.elements)) {
			if len(set.elements) == 0 && size > 0 || !s.allowsItems(size) {
				continue
			}
			if size > maxListSize {
				return d.fail("a list has a size that is too great to try")
			}
			parts := make([]value, size)
			for i := range parts {
				parts[i] = elements[set.elements[min(i, len(set.elements)-1)]]
			}
			lists = append(lists, listOf(parts...))
		}
	}
	return lists
}

// subsets returns the sets of elements, each with as few elements as possible. A loop sees of a
// list only which outcomes its body has for some element, so two lists with the same outcomes and
// the same size are alike.
func (d *divider) subsets(elements []value, wrap wrapper) []subset {
	if wrap == nil { // nothing asks about the elements
		sets := []subset{{}}
		if len(elements) > 0 {
			sets = append(sets, subset{elements: []int{0}})
		}
		return sets
	}

	seen := make([]vector, len(elements))
	for i := range elements {
		seen[i] = d.outcomes(wrap(listOf(elements[i])))
	}

	sets, known := []subset{{}}, map[vector]bool{"": true}
	for next := 0; next < len(sets); next++ {
		for i := range elements {
			joined := sets[next].seen.join(seen[i])
			if known[joined] {
				continue
			}
			if len(sets) == maxSubsets {
				d.fail("its elements have too many combinations")
				return nil
			}
			known[joined] = true
			sets = append(sets, subset{joined, append(slices.Clone(sets[next].elements), i)})
		}
	}
	return sets
}

// sample returns one value, which the shape allows if such a value is found easily.
func sample(s *shape, level int) []value {
	d := divider{}
	candidates := d.divide(&tree{}, s, nil, level)
	for i := range candidates {
		if s.conforms(&candidates[i]) {
			return candidates[i : i+1]
		}
	}
	if len(candidates) == 0 { // the cell stays, although no value of it is known
		return []value{nullValue}
	}
	return candidates[:1]
}
