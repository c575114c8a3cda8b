package schema

import (
	stdjson "encoding/json" // for the type Number alone
	"math/bits"
)

// A meter spends a budget of DocWork units on what holding a document against schemas costs.
type meter struct{ left uint64 }

// spend takes count times price, divided by scale, and reports whether the budget sufficed.
func (m *meter) spend(count int, price, scale uint64) bool {
	hi, cost := bits.Mul64(uint64(count), price)
	if cost /= scale; hi != 0 || cost > m.left {
		m.left = 0
		return false
	}
	m.left -= cost
	return true
}

// isAffordable reports whether judging the document costs at most budget. Counting is much cheaper
// than judging, and ends where the budget does.
func (s *Schema) isAffordable(doc any, budget uint64) bool {
	m := meter{budget}
	for _, c := range s.costs {
		if !m.spendNode(c, c.root, doc) {
			return false
		}
	}
	return true
}

// spendNode spends what holding v against a node costs: every part is assumed to be evaluated, as
// the validator does unless a type does not fit.
func (m *meter) spendNode(c *costs, index int, v any) bool {
	n := &c.nodes[index]
	units := 1
	if number, ok := v.(stdjson.Number); ok && len(number) > plainNumberBytes {
		units = bigNumber
	}
	if text, ok := v.(string); ok && !m.spend(len(text), n.ownCost.text, textScale) {
		return false
	}
	if !m.spend(units, n.ownCost.work, 1) || !m.spendNodes(c, n.inPlace, v) {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		return m.spendMembers(c, n, v)
	case []any:
		return m.spendItems(c, n, v)
	}
	return true
}

func (m *meter) spendMembers(c *costs, n *linkedNode, members map[string]any) bool {
	if !m.spend(len(members), n.lookCost, 1) {
		return false
	}
	for name, v := range members { // a sum: the order is of no consequence
		if !m.spend(len(name), n.ownCost.text, textScale) || !m.spendNodes(c, n.everyMember, v) ||
			len(n.name) > 0 && !m.spendNodes(c, n.name, name) {
			return false
		}
		// A member goes to its own node, or else to that of all others.
		next, named := n.Properties[name]
		if !named {
			next, named = n.AdditionalProperties.(*node)
		}
		if named && !m.spendNode(c, c.at[next], v) {
			return false
		}
	}
	return true
}

func (m *meter) spendItems(c *costs, n *linkedNode, items []any) bool {
	if !m.spend(len(items), n.lookCost, 1) || n.deepCost.work > 0 && !m.spendDeep(n.deepCost, items) {
		return false
	}
	// The first items may have a node each; the rest share one.
	placed := len(n.PrefixItems)
	if list, ok := n.Items.([]*node); ok {
		placed += len(list)
	}
	for i, v := range items {
		index := min(i, placed)
		if index < len(n.item) && !m.spendNode(c, n.item[index], v) || !m.spendNodes(c, n.everyItem, v) {
			return false
		}
	}
	return true
}

func (m *meter) spendNodes(c *costs, nodes []int, v any) bool {
	for _, index := range nodes {
		if !m.spendNode(c, index, v) {
			return false
		}
	}
	return true
}

// spendDeep spends the price of every value in v, and of its text.
func (m *meter) spendDeep(price nodeCost, v any) bool {
	if !m.spend(1, price.work, 1) {
		return false
	}
	switch v := v.(type) {
	case string:
		return m.spend(len(v), price.text, textScale)
	case []any:
		for _, item := range v {
			if !m.spendDeep(price, item) {
				return false
			}
		}
	case map[string]any:
		for name, member := range v { // a sum: the order is of no consequence
			if !m.spend(len(name), price.text, textScale) || !m.spendDeep(price, member) {
				return false
			}
		}
	}
	return true
}
