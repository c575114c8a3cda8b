package schema

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A closer copies the graph into the closed world: in the copy, a node that applies to a member or
// an item, and names keys, refuses other keys. The copy never accepts more: where closing a part
// could make the whole accept more (see needsOriginal), the document must satisfy the original too.
//
// Each node has up to two copies. The inner copy is used where the node applies in place (allOf,
// $ref, …): it does not refuse keys, because a node beside it may name more. The outer copy is used
// where the node applies to a member or an item. Nodes under not, if, contains and propertyNames
// are not copied.
type closer struct {
	g     *graph
	inner map[*node]*node
	outer map[*node]*node
	facts map[*node]facts
	plain map[*node]bool
	// "$ref" and unevaluatedProperties: false in 2020-12, for nodes with in-place parts.
	shell         *node
	open          map[string]struct{} // pointers of nodes that stay open because they name no keys
	needsOriginal bool                // a document that the copy accepts may be refused by the original

	unevaluatedItems bool // somewhere in the graph
}

// facts describe what a node, with the nodes that apply in place, says about members and items.
// Conditions do not count: neither not nor if names a key.
type facts struct {
	names  bool // some key, or a pattern of keys
	others bool // whether keys that are not named are allowed
	items  bool // the node of every item of an array
	object bool // the value may be an object, other than one that a const or enum writes out
	array  bool // the value may be an array, likewise
}

func newCloser(g *graph, shell *node) *closer {
	c := &closer{
		g:     g,
		shell: shell,
		inner: map[*node]*node{},
		outer: map[*node]*node{},
		facts: map[*node]facts{},
		plain: map[*node]bool{},
		open:  map[string]struct{}{},
	}
	for _, n := range g.order {
		c.facts[n] = c.learnFacts(n)
		c.unevaluatedItems = c.unevaluatedItems || n.UnevaluatedItems != nil
	}
	return c
}

// learnFacts needs the facts of the nodes that apply in place of n, which precede n in the graph's
// order.
func (c *closer) learnFacts(n *node) facts {
	if n.Bool != nil {
		return facts{object: *n.Bool, array: *n.Bool}
	}
	f := facts{
		names:  len(n.Properties)+len(n.PatternProperties) > 0,
		others: saysMore(n),
		items:  saysItems(n),
		object: c.mayBe(n, "object", func(f facts) bool { return f.object }),
		array:  c.mayBe(n, "array", func(f facts) bool { return f.array }),
	}
	for _, next := range inPlace(n) {
		if next != n.Not && next != n.If {
			f.names = f.names || c.facts[next].names
			f.others = f.others || c.facts[next].others
			f.items = f.items || c.facts[next].items
		}
	}
	return f
}

// mayBe reports whether n leaves room for values of a type; may tells what is known of an in-place
// node.
func (c *closer) mayBe(n *node, name string, may func(facts) bool) bool {
	if n.Enum != nil || n.Const != nil || n.Types != nil && !slices.Contains(n.Types.ToStrings(), name) {
		return false
	}
	can := func(next *node) bool { return may(c.facts[next]) }
	cannot := func(next *node) bool { return !can(next) }
	if slices.ContainsFunc(append(appendNode(nil, n.Ref), n.AllOf...), cannot) {
		return false
	}
	for _, some := range [][]*node{n.AnyOf, n.OneOf} {
		if len(some) > 0 && !slices.ContainsFunc(some, can) {
			return false
		}
	}
	return true
}

// plainMembers reports whether the keys that a condition evaluates have values without members and
// items. If they may have some, nothing would close those: a condition is never closed.
func (c *closer) plainMembers(condition *node) bool {
	if cached, ok := c.plain[condition]; ok {
		return cached
	}
	e := edgesOf(condition)
	plain := condition.AdditionalProperties != true
	for _, member := range slices.Concat(e.member, e.everyMember) {
		plain = plain && !c.facts[member].object && !c.facts[member].array
	}
	for _, next := range inPlace(condition) {
		plain = plain && (next == condition.Not || c.plainMembers(next))
	}
	c.plain[condition] = plain
	return plain
}

// copyCondition returns the copy of a condition. Under two nots the condition decides the same but
// evaluates no key, so another node must name its keys.
func (c *closer) copyCondition(n *node) *node {
	if n == nil || c.plainMembers(n) {
		return n
	}
	return c.doubleNot(n)
}

// silenceContains moves the contains of to under two nots if it could evaluate items that hold
// members: since 2020-12 an item that it matches is no longer for unevaluatedItems, and contains is
// never closed.
func (c *closer) silenceContains(to *node) {
	if to.Contains == nil || to.DraftVersion < 2020 || !c.unevaluatedItems {
		return
	}
	if f := c.facts[to.Contains]; !f.object && !f.array {
		return
	}
	part := c.blankNode(to)
	part.Contains, part.MinContains, part.MaxContains = to.Contains, to.MinContains, to.MaxContains
	to.Contains, to.MinContains, to.MaxContains = nil, nil, nil
	to.AllOf = append(to.AllOf, c.doubleNot(part))
}

func (c *closer) doubleNot(n *node) *node {
	inner, outer := c.blankNode(n), c.blankNode(n)
	inner.Not, outer.Not = n, inner
	return outer
}

// blankNode returns a 2020-12 node without keywords, at the location of n.
func (c *closer) blankNode(n *node) *node {
	blank := *c.shell
	blank.Location, blank.Ref, blank.UnevaluatedProperties = n.Location, nil, nil
	return &blank
}

// saysMore reports whether n itself says whether keys that it does not name are allowed. A const or
// an enum decides every key.
func saysMore(n *node) bool {
	return n.AdditionalProperties != nil || n.UnevaluatedProperties != nil || n.Const != nil || n.Enum != nil
}

// saysItems reports whether n itself describes all items, not only the first ones.
func saysItems(n *node) bool {
	_, isNode := n.Items.(*node)
	return isNode || n.AdditionalItems != nil || n.Items2020 != nil || n.UnevaluatedItems != nil
}

// closedRoot returns the closed world of the whole schema: closed even if it names no keys.
func (c *closer) closedRoot() *node {
	if saysMore(c.g.root) {
		return c.copyInner(c.g.root)
	}
	return c.closedCopy(c.g.root)
}

// copyOuter returns the copy of n where it applies to a member or an item.
func (c *closer) copyOuter(n *node) *node {
	f := c.facts[n]
	switch {
	case n == nil:
		return nil
	case saysMore(n):
		return c.copyInner(n)
	case f.names:
		return c.closedCopy(n)
	}
	// The node names nothing that closing could keep, so it stays open, and is listed.
	if f.object && !f.others || f.array && !f.items {
		c.open[pointerOf(n)] = struct{}{}
	}
	return c.copyInner(n)
}

func (c *closer) closedCopy(n *node) *node {
	if cached, ok := c.outer[n]; ok {
		return cached
	}
	closed := new(node)
	c.outer[n] = closed
	if len(inPlace(n)) > 0 {
		*closed = *c.shell
		closed.Location = n.Location
		closed.Ref = c.copyInner(n)
		return closed
	}
	// Nothing applies in place, so additionalProperties can refuse what n does not name.
	c.copyParts(closed, n)
	if n.Bool == nil || *n.Bool {
		closed.Bool = nil
		closed.AdditionalProperties = false
	}
	return closed
}

// copyInner returns the copy of n where it applies in place.
func (c *closer) copyInner(n *node) *node {
	if n == nil {
		return nil
	}
	if cached, ok := c.inner[n]; ok {
		return cached
	}
	copied := new(node)
	c.inner[n] = copied
	c.copyParts(copied, n)
	return copied
}

// copyParts makes to a copy of n with closed parts.
func (c *closer) copyParts(to, n *node) {
	*to = *n
	to.Ref = c.copyInner(n.Ref)
	to.AllOf = c.copyEach(c.copyInner, n.AllOf)
	c.needsOriginal = c.needsOriginal || len(n.OneOf) > 0
	to.AnyOf = c.copyEach(c.copyInner, n.AnyOf)
	to.OneOf = c.copyEach(c.copyInner, n.OneOf)
	to.If, to.Then, to.Else = c.copyCondition(n.If), c.copyInner(n.Then), c.copyInner(n.Else)
	to.DependentSchemas = copyNamed(c.copyInner, n.DependentSchemas)
	if n.Dependencies != nil {
		to.Dependencies = make(map[string]any, len(n.Dependencies))
		for name, dependency := range n.Dependencies { // into a map again: the order is of no consequence
			if next, ok := dependency.(*node); ok {
				dependency = c.copyInner(next)
			}
			to.Dependencies[name] = dependency
		}
	}

	// From here on the parts apply to members and items, and refuse unnamed keys.
	to.Properties = copyNamed(c.copyOuter, n.Properties)
	to.PatternProperties = copyNamed(c.copyOuter, n.PatternProperties)
	to.AdditionalProperties = c.copyOuterAny(n.AdditionalProperties)
	to.UnevaluatedProperties = c.copyOuter(n.UnevaluatedProperties)
	to.Items = c.copyOuterAny(n.Items)
	to.AdditionalItems = c.copyOuterAny(n.AdditionalItems)
	to.PrefixItems = c.copyEach(c.copyOuter, n.PrefixItems)
	to.Items2020 = c.copyOuter(n.Items2020)
	to.UnevaluatedItems = c.copyOuter(n.UnevaluatedItems)
	c.silenceContains(to)
}

// copyOuterAny is copyOuter for the fields in which the compiler keeps nil, a boolean, a node or a
// list of nodes.
func (c *closer) copyOuterAny(v any) any {
	switch v := v.(type) {
	case *node:
		return c.copyOuter(v)
	case []*node:
		return c.copyEach(c.copyOuter, v)
	}
	return v
}

func (c *closer) copyEach(copied func(*node) *node, nodes []*node) []*node {
	copies := make([]*node, len(nodes))
	for i, n := range nodes {
		copies[i] = copied(n)
	}
	return copies
}

func copyNamed[K comparable](copied func(*jsonschema.Schema) *jsonschema.Schema, nodes map[K]*node) map[K]*node {
	if nodes == nil {
		return nil
	}
	copies := make(map[K]*node, len(nodes))
	for name, n := range nodes { // into a map again: the order is of no consequence
		copies[name] = copied(n)
	}
	return copies
}
