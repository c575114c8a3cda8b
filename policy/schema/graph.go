package schema

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// documentURL is the base URL of the schema. Nothing is ever fetched from it; relative references
// and identifiers resolve against it.
const (
	baseURL     = "https://schema.pgfsm.invalid/"
	documentURL = baseURL + "tool"
	shellURL    = baseURL + "shell" // the part that closing the world adds; see shell
)

type node = jsonschema.Schema

// pointerOf returns the JSON pointer of n in its document.
func pointerOf(n *node) string {
	_, fragment, _ := strings.Cut(n.Location, "#")
	pointer, err := url.PathUnescape(fragment)
	if err != nil {
		return fragment
	}
	return pointer
}

// A graph holds the compiled subschemas that the validator walks as nodes and edges. An edge is in
// place if both ends apply to the same value; the other edges descend into members or items.
type graph struct {
	root  *node
	lim   Limits
	order []*node // every reachable node, behind the nodes that apply in its place
}

// newGraph collects the nodes that are reachable from root. It refuses references to meta-schemas,
// which the compiler has without loading them, and nodes that apply in place of themselves.
func newGraph(root *node, lim Limits) (*graph, error) {
	g := &graph{root: root, lim: lim}
	var nodes []*node
	visited := map[*node]bool{}
	isOwn := true

	var collect func(n *node)
	collect = func(n *node) {
		if visited[n] {
			return
		}
		visited[n] = true
		nodes = append(nodes, n)
		if isOwn = isOwn && strings.HasPrefix(n.Location, baseURL); !isOwn {
			return
		}
		for _, next := range slices.Concat(inPlace(n), edgesOf(n).nodes()) {
			collect(next)
		}
	}

	collect(root)

	if !isOwn {
		return nil, unresolved
	}

	return g, g.sortNodes(nodes)
}

// inPlace lists the nodes that are held against the same value as n.
func inPlace(n *node) []*node {
	var to []*node
	add := func(next *node) {
		if next != nil {
			to = append(to, next)
		}
	}
	add(n.Ref)
	to = slices.Concat(to, n.AllOf, n.AnyOf, n.OneOf)
	for _, next := range []*node{n.Not, n.If, n.Then, n.Else} {
		add(next)
	}
	for _, name := range slices.Sorted(maps.Keys(n.DependentSchemas)) {
		add(n.DependentSchemas[name])
	}
	for _, name := range slices.Sorted(maps.Keys(n.Dependencies)) {
		if next, ok := n.Dependencies[name].(*node); ok {
			add(next)
		}
	}
	return to
}

// sortNodes puts the nodes into order and refuses in-place cycles and long in-place chains.
func (g *graph) sortNodes(nodes []*node) error {
	const entered, left = 1, 2
	state := map[*node]int{}
	chain := map[*node]int{}
	var visit func(n *node) *RefusedError
	visit = func(n *node) *RefusedError {
		state[n] = entered
		for _, next := range inPlace(n) {
			if state[next] == entered {
				return &RefusedError{CodeReferenceCycle, clipVisible(pointerOf(n), maxPointer),
					"it stands for itself, by way of " + quoteText(pointerOf(next))}
			}
			if state[next] != left {
				if refused := visit(next); refused != nil {
					return refused
				}
			}
			chain[n] = max(chain[n], chain[next])
		}
		state[n] = left
		if chain[n]++; chain[n] > g.lim.Chain {
			return &RefusedError{CodeExpansionTooLarge, clipVisible(pointerOf(n), maxPointer),
				fmt.Sprintf("more than %d subschemas stand for one another, one behind the other", g.lim.Chain)}
		}
		g.order = append(g.order, n)
		return nil
	}

	for _, n := range nodes {
		if state[n] == left {
			continue
		}
		if refused := visit(n); refused != nil {
			return refused
		}
	}

	return nil
}

// edges are the nodes that a node holds against the members or items of its value.
type edges struct {
	member      []*node // at most one of them applies to a member
	everyMember []*node // all of them may apply to a member
	name        []*node // all of them apply to a member's name
	item        []*node // at most one of them applies to an item
	everyItem   []*node // all of them may apply to an item
}

func (e edges) nodes() []*node {
	return slices.Concat(e.member, e.everyMember, e.name, e.item, e.everyItem)
}

func edgesOf(n *node) edges {
	var e edges
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		e.member = append(e.member, n.Properties[name])
	}
	e.member = appendNode(e.member, n.AdditionalProperties)
	for _, re := range sortedPatterns(n) {
		e.everyMember = append(e.everyMember, n.PatternProperties[re])
	}
	e.everyMember = appendNode(e.everyMember, n.UnevaluatedProperties)
	e.name = appendNode(e.name, n.PropertyNames)
	e.item = slices.Concat(e.item, n.PrefixItems)
	if items, ok := n.Items.([]*node); ok {
		e.item = slices.Concat(e.item, items)
	}
	e.item = appendNode(e.item, n.Items)
	e.item = appendNode(e.item, n.AdditionalItems)
	e.item = appendNode(e.item, n.Items2020)
	e.everyItem = appendNode(e.everyItem, n.Contains)
	e.everyItem = appendNode(e.everyItem, n.UnevaluatedItems)
	return e
}

func sortedPatterns(n *node) []jsonschema.Regexp {
	return slices.SortedFunc(maps.Keys(n.PatternProperties), func(a, b jsonschema.Regexp) int {
		return cmp.Compare(a.String(), b.String())
	})
}

// appendNode appends v if it is a node: the compiler keeps booleans and lists in the same fields.
func appendNode(to []*node, v any) []*node {
	if n, ok := v.(*node); ok && n != nil {
		return append(to, n)
	}
	return to
}
