package schema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// documentURL is the base URL of the schema. Nothing is ever fetched from it; relative references and
// identifiers resolve against it.
const (
	documentURL = "https://schema.pgfsm.invalid/tool"
	shellURL    = "https://schema.pgfsm.invalid/shell" // of what the closed world adds; see shell
)

type node = jsonschema.Schema

// own reports whether n belongs to the document, and not to a meta-schema of the compiler.
func own(n *node) bool { return strings.HasPrefix(n.Location, documentURL+"#") }

// pointerOf returns the JSON pointer of n in its document.
func pointerOf(n *node) string {
	_, fragment, _ := strings.Cut(n.Location, "#")
	return percentDecoded(fragment)
}

func percentDecoded(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	hex := func(c byte) int { return strings.IndexByte("0123456789ABCDEF", c) }
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && hex(s[i+1]) >= 0 && hex(s[i+2]) >= 0 {
			out = append(out, byte(hex(s[i+1])<<4|hex(s[i+2])))
			i += 2
			continue
		}
		out = append(out, s[i])
	}
	return string(out)
}

// A graph holds the compiled subschemas that the validator walks as nodes and edges. An edge is in place if both ends
// apply to the same value; the other edges descend into members or items.
type graph struct {
	root    *node
	top     *node // the schema as compiled
	notes   *guard
	foreign []*node // nodes of meta-schemas
	order   []*node // every reachable node, behind the nodes that apply in its place
}

// newGraph collects the nodes that are reachable from root: the compiled schema, or its closed world. It refuses
// references whose target depends on the path to them, and nodes that apply in place of themselves.
func newGraph(root, top *node, notes *guard) (*graph, error) {
	g := &graph{root: root, top: top, notes: notes}
	var nodes []*node
	seen := map[*node]bool{}
	var collect func(n *node)
	collect = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		nodes = append(nodes, n)
		if !own(n) {
			g.foreign = append(g.foreign, n)
		}
		for _, next := range slices.Concat(g.inPlace(n), descending(n).all()) {
			collect(next)
		}
	}
	collect(root)
	return g, g.sort(nodes)
}

// inPlace lists the nodes that are held against the same value as n.
func (g *graph) inPlace(n *node) []*node {
	var to []*node
	add := func(next *node) {
		if next != nil {
			to = append(to, next)
		}
	}
	add(n.Ref)
	add(g.recursiveTarget(n))
	add(g.dynamicTarget(n))
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

// recursiveTarget follows $recursiveRef (2019-09). With $recursiveAnchor it leads to the outermost schema on the way,
// which is the top whenever the top is marked too; check refuses everything else.
func (g *graph) recursiveTarget(n *node) *node {
	target := n.RecursiveRef
	switch {
	case target == nil || !target.RecursiveAnchor:
		return target
	case own(n):
		return g.top
	default:
		return g.meta(func(m *node) bool { return m.RecursiveAnchor }, target)
	}
}

// dynamicTarget follows $dynamicRef (2020-12). With one anchor of its name there is one target; check refuses more.
func (g *graph) dynamicTarget(n *node) *node {
	if n.DynamicRef == nil {
		return nil
	}
	target := n.DynamicRef.Ref
	if !isDynamic(n.DynamicRef) || own(n) {
		return target
	}
	return g.meta(func(m *node) bool { return m.DynamicAnchor == n.DynamicRef.Anchor }, target)
}

func isDynamic(ref *jsonschema.DynamicRef) bool {
	return ref.Anchor != "" && ref.Ref.DynamicAnchor == ref.Anchor
}

// meta finds the whole meta-schema among the nodes of meta-schemas: the schemas of its vocabularies extend one another
// through it, and it costs at least as much as any of them.
func (g *graph) meta(is func(*node) bool, otherwise *node) *node {
	for _, m := range g.foreign {
		if strings.HasSuffix(m.Location, "/schema#") && is(m) {
			return m
		}
	}
	return otherwise
}

// check refuses a node whose references cannot be followed without knowing the way to it.
func (g *graph) check(n *node) *RefusedError {
	refuse := func(keyword string) *RefusedError {
		return &RefusedError{CodeReferenceDynamic, visible(pointerOf(n), maxPointer),
			"where its " + keyword + " leads depends on the way to it"}
	}
	if target := n.RecursiveRef; target != nil && target.RecursiveAnchor {
		if own(n) != own(target) || own(n) && !g.top.RecursiveAnchor || !own(n) && g.notes.recursive {
			return refuse("$recursiveRef")
		}
	}
	if ref := n.DynamicRef; ref != nil && isDynamic(ref) {
		anchors, foreign := g.notes.dynamic[ref.Anchor], slices.ContainsFunc(g.foreign, func(m *node) bool {
			return m.DynamicAnchor == ref.Anchor
		})
		if own(ref.Ref) && (anchors != 1 || foreign) || !own(ref.Ref) && anchors != 0 {
			return refuse("$dynamicRef")
		}
	}
	return nil
}

// sort puts the nodes into order and refuses in-place cycles and long in-place chains.
func (g *graph) sort(nodes []*node) error {
	const entered, left = 1, 2
	state := map[*node]int{}
	chain := map[*node]int{}
	var visit func(n *node) *RefusedError
	visit = func(n *node) *RefusedError {
		if refused := g.check(n); refused != nil {
			return refused
		}
		state[n] = entered
		for _, next := range g.inPlace(n) {
			if state[next] == entered {
				return &RefusedError{CodeReferenceCycle, visible(pointerOf(n), maxPointer),
					"it stands for itself, by way of " + quoted(pointerOf(next))}
			}
			if state[next] != left {
				if refused := visit(next); refused != nil {
					return refused
				}
			}
			chain[n] = max(chain[n], chain[next])
		}
		state[n] = left
		if chain[n]++; chain[n] > g.notes.lim.Chain {
			return &RefusedError{CodeExpansionTooLarge, visible(pointerOf(n), maxPointer),
				fmt.Sprintf("more than %d subschemas stand for one another, one behind the other", g.notes.lim.Chain)}
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

func (e edges) all() []*node {
	return slices.Concat(e.member, e.everyMember, e.name, e.item, e.everyItem)
}

func descending(n *node) edges {
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
