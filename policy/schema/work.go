package schema

import (
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// What evaluations cost, in units of DocWork, and what a byte of text costs, in units divided by
// textScale.
const (
	costNode   = 5  // a node applied to a value, or a look at one member or item of it
	costEqual  = 4  // comparing with one value of an enum or const
	costFormat = 8  // a byte under format
	costRegex  = 64 // a byte under format: regex, which is compiled
	costLength = 2  // a byte under minLength or maxLength
	costUnique = 4  // a value at any depth under uniqueItems, and a byte of text there
	textScale  = 8

	plainNumberBytes = 19 // a longer number counts as bigNumber values: exact arithmetic on it is slower
	bigNumber        = 8
	saturated        = 1 << 50 // every larger number
)

// A nodeCost holds the cost of a node for one value.
type nodeCost struct {
	work uint64 // units
	text uint64 // units a byte of a string or member name, times textScale
}

func addSaturated(a, b uint64) uint64 { return min(a+b, saturated) }

func (r nodeCost) add(o nodeCost) nodeCost {
	return nodeCost{addSaturated(r.work, o.work), addSaturated(r.text, o.text)}
}

// costs holds the costs of judging a document by a graph.
type costs struct {
	nodes []linkedNode
	at    map[*node]int // position in nodes
	root  int
}

// A linkedNode is a node with its edges as positions in costs.nodes.
type linkedNode struct {
	*node
	ownCost                                     nodeCost
	lookCost                                    uint64   // the cost of reading one member or item
	deepCost                                    nodeCost // the cost for every value further down
	inPlace, everyMember, name, item, everyItem []int
}

func (g *graph) computeCosts() *costs {
	c := &costs{nodes: make([]linkedNode, len(g.order)), at: make(map[*node]int, len(g.order))}
	for i, n := range g.order {
		c.at[n] = i
	}

	positions := func(nodes []*node) []int {
		p := make([]int, len(nodes))
		for i, n := range nodes {
			p[i] = c.at[n]
		}
		return p
	}

	// The edges become positions once, so that judging looks nothing up in maps.
	for i, n := range g.order {
		e := edgesOf(n)
		c.nodes[i] = linkedNode{
			node:        n,
			ownCost:     costOf(n),
			lookCost:    costNode + uint64(len(n.PatternProperties)),
			deepCost:    uniqueCost(n),
			inPlace:     positions(inPlace(n)),
			everyMember: positions(e.everyMember),
			name:        positions(e.name),
			item:        positions(e.item),
			everyItem:   positions(e.everyItem),
		}
	}

	c.root = c.at[g.root]
	return c
}

// checkExpansion refuses a graph in which one value is held against too many nodes: shared nodes
// are counted as often as they are reached, as the judge does.
func (g *graph) checkExpansion() *RefusedError {
	count := make(map[*node]uint64, len(g.order))
	for _, n := range g.order {
		count[n] = 1
		for _, next := range inPlace(n) {
			count[n] = addSaturated(count[n], count[next])
		}
		if count[n] > uint64(max(0, g.lim.Expansion)) {
			return &RefusedError{CodeExpansionTooLarge, clipVisible(pointerOf(n), maxPointer),
				fmt.Sprintf("one value would be held against more than %d subschemas", g.lim.Expansion)}
		}
	}
	return nil
}

// costOf returns the cost of holding n itself against one value.
func costOf(n *node) nodeCost {
	r := nodeCost{work: costNode + uint64(len(n.Required)+len(n.Dependencies)+len(n.DependentRequired)+
		len(n.DependentSchemas))}
	if n.Enum != nil {
		r.work += costEqual * countValues(n.Enum.Values)
	}

	if n.Const != nil {
		r.work += costEqual * countValues(*n.Const)
	}

	for _, names := range n.DependentRequired { // a sum: the order is of no consequence
		r.work += uint64(len(names))
	}

	for _, dependency := range n.Dependencies { // a sum, in any order
		if names, ok := dependency.([]string); ok {
			r.work += uint64(len(names))
		}
	}

	if n.Pattern != nil {
		r.text += patternSteps(n.Pattern)
	}

	for re := range n.PatternProperties { // a sum, in any order
		r.text += patternSteps(re)
	}

	if n.Format != nil {
		r.text += costFormat
		if n.Format.Name == "regex" {
			r.text += costRegex * textScale
		}
	}

	if n.MinLength != nil || n.MaxLength != nil {
		r.text += costLength
	}

	return r.add(uniqueCost(n))
}

// uniqueCost returns the cost of uniqueItems for a value at any depth of the array.
func uniqueCost(n *node) nodeCost {
	if len(n.Extensions) == 0 {
		return nodeCost{}
	}
	return nodeCost{work: costUnique, text: costUnique * textScale}
}

func patternSteps(re jsonschema.Regexp) uint64 {
	if p, ok := re.(*pattern); ok {
		return uint64(p.steps)
	}
	return saturated
}

// countValues counts the values in v.
func countValues(v any) uint64 {
	var n uint64 = 1
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			n += countValues(item)
		}
	case map[string]any:
		for _, member := range v { // a sum, in any order
			n += countValues(member)
		}
	}
	return n
}
