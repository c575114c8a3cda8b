package lint

// Neighbours are policies, by the calls that they are about.
type neighbours struct {
	patterns *patterns
	named    map[string][]*entry // by the one tool that they are about
	wild     []*entry            // those that are about several
	all      []*entry
}

func newNeighbours(p *patterns) *neighbours {
	return &neighbours{patterns: p, named: map[string][]*entry{}}
}

func (n *neighbours) add(e *entry) {
	n.all = append(n.all, e)
	if e.tool.plain {
		n.named[e.tool.text] = append(n.named[e.tool.text], e)
	} else {
		n.wild = append(n.wild, e)
	}
}

// near returns the policies that can be about the tools that e is about, in their order.
func (n *neighbours) near(e *entry) []*entry {
	if !e.tool.plain {
		return n.all
	}
	named, wild := n.named[e.tool.text], n.wild
	near := make([]*entry, 0, len(named)+len(wild))
	for len(named) > 0 && len(wild) > 0 {
		if named[0].at < wild[0].at {
			near, named = append(near, named[0]), named[1:]
		} else {
			near, wild = append(near, wild[0]), wild[1:]
		}
	}
	return append(append(near, named...), wild...)
}

// of returns the first of the policies that can be about a call that e is about, in their order, e not among them.
func (n *neighbours) of(e *entry, most int) (some []*entry) {
	for _, a := range n.near(e) {
		if a == e || n.patterns.relate(e.tool, a.tool) == apart || n.patterns.relate(e.server, a.server) == apart ||
			n.patterns.relate(e.env, a.env) == apart {
			continue
		}
		if some = append(some, a); len(some) == most {
			break
		}
	}
	return some
}
