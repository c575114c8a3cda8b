package prove

import (
	"math/big"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// A tree collects what conditions ask about one value: an argument, a member of an object, the
// elements of a list. Two values that agree in all of it are in one cell.
type tree struct {
	literals []string       // texts that it is compared with
	patterns []*syntax.Prog // patterns that it is searched for
	sources  []string       // the patterns, as they are written
	numbers  []*big.Rat     // numbers that it is compared with
	sizes    []int          // sizes that it is compared with
	names    []string       // the names of members, in order
	members  map[string]*tree
	element  *tree // nil: no condition asks about elements
	loops    bool  // a loop asks about the elements, or of an object about the names of its members
}

func (t *tree) member(name string) *tree {
	if m := t.members[name]; m != nil {
		return m
	}
	if t.members == nil {
		t.members = map[string]*tree{}
	}
	m := new(tree)
	t.members[name] = m
	i, _ := slices.BinarySearch(t.names, name)
	t.names = slices.Insert(t.names, i, name)
	return m
}

// elements returns the tree of a list's elements.
func (t *tree) elements() *tree {
	if t.element == nil {
		t.element = new(tree)
	}
	return t.element
}

func (t *tree) addLiteral(text string) bool {
	if !slices.Contains(t.literals, text) {
		t.literals = append(t.literals, text)
	}
	return utf8.ValidString(text)
}

func (t *tree) addPattern(pattern string) bool {
	if slices.Contains(t.sources, pattern) {
		return true
	}
	prog, err := compilePattern(pattern)
	if err != nil {
		return false
	}
	t.sources, t.patterns = append(t.sources, pattern), append(t.patterns, prog)
	return true
}

func (t *tree) addNumber(n *big.Rat) bool {
	if !slices.ContainsFunc(t.numbers, func(x *big.Rat) bool { return x.Cmp(n) == 0 }) {
		t.numbers = append(t.numbers, n)
	}
	return true
}

// maxSize is the greatest size of a text or a list that is told apart from others.
const maxSize = 10_000

// addSize adds a size that a condition compares with. Sizes are never negative.
func (t *tree) addSize(n int64) bool {
	if n > maxSize {
		return false
	}
	if size := int(max(n, 0)); !slices.Contains(t.sizes, size) {
		t.sizes = append(t.sizes, size)
		slices.Sort(t.sizes)
	}
	return true
}

// descend returns the tree at a path of members; nil if no condition asks about it.
func (t *tree) descend(path []string) *tree {
	for _, name := range path {
		if t = t.members[name]; t == nil {
			return nil
		}
	}
	return t
}

// dividesKeys reports whether objects are divided by what loops ask about the names of their
// members. They are not if sizes are asked, too: a name that is alike cannot always be added.
func (t *tree) dividesKeys() bool {
	return t.loops && !slices.ContainsFunc(t.sizes, func(size int) bool { return size > 0 })
}
