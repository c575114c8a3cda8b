package prove

import (
	"maps"
	"math/big"
	"slices"
)

// A tree collects what conditions ask about one value: an argument, a member of an object, the
// elements of a list. Two values that agree in all of it are in one cell.
type tree struct {
	literals []string   // texts that it is compared with
	patterns []string   // patterns that it is searched for
	numbers  []*big.Rat // numbers that it is compared with
	sizes    []int      // sizes that it is compared with
	members  map[string]*tree
	element  *tree // nil: no condition asks about elements
	loops    bool  // a loop asks about the elements, or of an object about the names of its members
}

// maxSize is the greatest size of a text or a list that is told apart from others.
const maxSize = 10_000

// addTo adds an element to a list that does not have it.
func addTo[T comparable](list *[]T, one T) {
	if !slices.Contains(*list, one) {
		*list = append(*list, one)
	}
}

// treeOf returns the tree of what atoms ask about their place.
func treeOf(atoms []*atom) *tree {
	root := new(tree)
	for _, a := range atoms {
		for _, feature := range a.features {
			feature(root)
		}
	}
	return root
}

func (t *tree) member(name string) *tree {
	if t.members == nil {
		t.members = map[string]*tree{}
	}
	if t.members[name] == nil {
		t.members[name] = new(tree)
	}
	return t.members[name]
}

// names returns the names of members, in order.
func (t *tree) names() []string { return slices.Sorted(maps.Keys(t.members)) }

// elements returns the tree of a list's elements.
func (t *tree) elements() *tree {
	if t.element == nil {
		t.element = new(tree)
	}
	return t.element
}

// descend returns the tree at a path of members.
func (t *tree) descend(path []string) *tree {
	for _, name := range path {
		t = t.member(name)
	}
	return t
}

// dividesKeys reports whether objects are divided by what loops ask about the names of their
// members. They are not if sizes are asked, too: a name that is alike cannot always be added.
func (t *tree) dividesKeys() bool {
	return t.loops && !slices.ContainsFunc(t.sizes, func(size int) bool { return size > 0 })
}
