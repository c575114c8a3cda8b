package schema

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A closer builds the closed world beside the graph: a copy of it in which a node that is held against a member or an
// item, and names keys, takes no others. The copy never loosens: where closing a part could make the whole accept more
// (see twice), the document must satisfy the original too.
//
// Each node has up to two copies. The inner one stands where the node stands in place of another (allOf, $ref, …):
// its own keys stay open, because the other may name more. The shut one stands where the node is held against a member
// or an item. What is under not, if, contains and propertyNames, and meta-schemas, stay the originals.
type closer struct {
	g     *graph
	inner map[*node]*node
	shut  map[*node]*node
	facts map[*node]facts
	shell *node               // "$ref" and unevaluatedProperties: false in 2020-12, for nodes with in-place parts
	open  map[string]struct{} // pointers of nodes that stay open because they name no keys
	twice bool                // closed does not imply original

}

// facts are what a node and those it stands for in place say about members. Conditions do not count: neither not nor
// if names a key.
type facts struct {
	names  bool // some key, or a pattern of keys
	says   bool // what happens to keys that are not named
	object bool // the value may be an object of any content
}

func newCloser(g *graph, shell *node) *closer {
	c := &closer{g: g, shell: shell, inner: map[*node]*node{}, shut: map[*node]*node{}, facts: map[*node]facts{},
		open: map[string]struct{}{}}
	for _, n := range g.order {
		c.facts[n] = c.learn(n)
		// The validator follows $recursiveRef by the way to it, and so could find a closed copy below not.
		c.twice = c.twice || n.RecursiveRef != nil
	}
	return c
}

// learn needs the facts of the in-place nodes of n, which come first in the graph's order.
func (c *closer) learn(n *node) facts {
	if !own(n) {
		return facts{object: true}
	}
	if n.Bool != nil {
		return facts{object: *n.Bool}
	}
	f := facts{
		names:  len(n.Properties)+len(n.PatternProperties) > 0,
		says:   saysMore(n),
		object: n.Enum == nil && n.Const == nil && (n.Types == nil || slices.Contains(n.Types.ToStrings(), "object")),
	}
	for _, next := range c.g.inPlace(n) {
		if next != n.Not && next != n.If {
			f.names = f.names || c.facts[next].names
			f.says = f.says || c.facts[next].says
		}
	}
	object := func(next *node) bool { return c.facts[next].object }
	for _, all := range [][]*node{appendNode(nil, n.Ref), n.AllOf} {
		f.object = f.object && !slices.ContainsFunc(all, func(next *node) bool { return !object(next) })
	}
	for _, some := range [][]*node{n.AnyOf, n.OneOf} {
		f.object = f.object && (len(some) == 0 || slices.ContainsFunc(some, object))
	}
	return f
}

// saysMore reports whether n itself says what becomes of keys that it does not name. A const or an enum is the most
// that can be said.
func saysMore(n *node) bool {
	return n.AdditionalProperties != nil || n.UnevaluatedProperties != nil || n.Const != nil || n.Enum != nil
}

// root returns the closed world of the whole schema: closed even if it names no keys.
func (c *closer) root() *node {
	if saysMore(c.g.root) {
		return c.in(c.g.root)
	}
	return c.close(c.g.root)
}

// at returns what stands where n is held against a member or an item.
func (c *closer) at(n *node) *node {
	f := c.facts[n]
	switch {
	case !own(n) || saysMore(n):
		return c.in(n)
	case f.names:
		return c.close(n)
	}
	if f.object && !f.says {
		c.open[pointerOf(n)] = struct{}{}
	}
	return c.in(n)
}

func (c *closer) close(n *node) *node {
	if done, ok := c.shut[n]; ok {
		return done
	}
	closed := new(node)
	c.shut[n] = closed
	if len(c.g.inPlace(n)) > 0 {
		*closed = *c.shell
		closed.Location = n.Location
		closed.Ref = c.in(n)
		return closed
	}
	c.fill(closed, n)
	if n.Bool == nil || *n.Bool {
		closed.Bool = nil
		closed.AdditionalProperties = false
	}
	return closed
}

// in returns what stands where n stands in place of another node.
func (c *closer) in(n *node) *node {
	if n == nil || !own(n) {
		return n
	}
	if done, ok := c.inner[n]; ok {
		return done
	}
	copied := new(node)
	c.inner[n] = copied
	c.fill(copied, n)
	return copied
}

// fill makes to a copy of n whose parts are closed. References whose target is known only by way of the graph become
// parts of allOf: they mean the same in the dialects that have them.
func (c *closer) fill(to, n *node) {
	*to = *n
	to.Ref = c.in(n.Ref)
	to.AllOf = c.each(c.in, n.AllOf)
	for _, target := range []*node{c.g.recursiveTarget(n), c.g.dynamicTarget(n)} {
		if target != nil {
			to.AllOf = append(to.AllOf, c.in(target))
		}
	}
	c.twice = c.twice || len(n.OneOf) > 0
	to.RecursiveRef, to.DynamicRef = nil, nil
	to.AnyOf = c.each(c.in, n.AnyOf)
	to.OneOf = c.each(c.in, n.OneOf)
	to.Then, to.Else = c.in(n.Then), c.in(n.Else)
	to.DependentSchemas = named(c.in, n.DependentSchemas)
	if n.Dependencies != nil {
		to.Dependencies = make(map[string]any, len(n.Dependencies))
		for name, dependency := range n.Dependencies {
			if next, ok := dependency.(*node); ok {
				dependency = c.in(next)
			}
			to.Dependencies[name] = dependency
		}
	}
	to.Properties = named(c.at, n.Properties)
	to.PatternProperties = named(c.at, n.PatternProperties)
	to.AdditionalProperties = c.atAny(n.AdditionalProperties)
	to.UnevaluatedProperties = c.atNode(n.UnevaluatedProperties)
	to.Items = c.atAny(n.Items)
	to.AdditionalItems = c.atAny(n.AdditionalItems)
	to.PrefixItems = c.each(c.at, n.PrefixItems)
	to.Items2020 = c.atNode(n.Items2020)
	to.UnevaluatedItems = c.atNode(n.UnevaluatedItems)
}

func (c *closer) atNode(n *node) *node {
	if n == nil {
		return nil
	}
	return c.at(n)
}

// atAny is at for the fields in which the compiler keeps nil, a boolean, a node or a list of nodes.
func (c *closer) atAny(v any) any {
	switch v := v.(type) {
	case *node:
		return c.at(v)
	case []*node:
		return c.each(c.at, v)
	}
	return v
}

func (c *closer) each(copied func(*node) *node, nodes []*node) []*node {
	to := make([]*node, len(nodes))
	for i, n := range nodes {
		to[i] = copied(n)
	}
	return to
}

func named[K comparable](copied func(*jsonschema.Schema) *jsonschema.Schema, nodes map[K]*node) map[K]*node {
	if nodes == nil {
		return nil
	}
	to := make(map[K]*node, len(nodes))
	for name, n := range nodes {
		to[name] = copied(n)
	}
	return to
}
