package screen

// A trie holds all literals that a [scanner] looks for. It is kept as lists of children, which take no more room than
// the literals: the scanner's table is made when its size is known.
type trie struct {
	nodes []node // the first is the root
	marks []mark // the first is none
}

// A node is reached from its parent by one class of bytes. Numbers of nodes and marks are 0 for none.
type node struct {
	child   uint16 // the first of its children
	sibling uint16 // the next child of its parent
	marks   uint16 // the first of the clauses with a literal that ends here
	class   uint8
}

type mark struct{ next, clause uint16 }

func newScanner(clauses []clause) *scanner {
	sc, bytes := &scanner{width: 1}, 0
	for _, c := range clauses {
		for _, lit := range c {
			bytes += len(lit)
			for i := 0; i < len(lit); i++ {
				if b := lit[i]; sc.class[b] == 0 {
					sc.class[b] = uint8(sc.width) // at most 255: byte 0xff is in no UTF-8
					sc.width++
				}
			}
		}
	}
	t := trie{nodes: make([]node, 1, 1+bytes/4), marks: make([]mark, 1)} // literals share most of their bytes
	for number, c := range clauses {
		for _, lit := range c {
			t.insert(lit, firstNumber+uint16(number), &sc.class)
		}
	}
	sc.link(&t)
	return sc
}

func (t *trie) insert(lit string, number uint16, class *[256]uint8) {
	at := uint16(0)
	for i := 0; i < len(lit); i++ {
		at = t.below(at, class[lit[i]])
	}
	t.marks = append(t.marks, mark{t.nodes[at].marks, number})
	t.nodes[at].marks = uint16(len(t.marks) - 1)
}

// below returns the child of a node for a class, a new one if there is none yet.
func (t *trie) below(at uint16, class uint8) uint16 {
	last := uint16(0)
	for child := t.nodes[at].child; child != 0; child = t.nodes[child].sibling {
		if t.nodes[child].class == class {
			return child
		}
		last = child
	}
	made := uint16(len(t.nodes)) // it fits, see maxBytes
	t.nodes = append(t.nodes, node{class: class})
	if last == 0 {
		t.nodes[at].child = made
	} else {
		t.nodes[last].sibling = made
	}
	return made
}

// link makes an automaton of the trie, breadth first: where the trie has no way on, the way of the longest suffix is
// taken, and what ends there ends here too. States are numbered in the order in which they are met.
func (sc *scanner) link(t *trie) {
	states := len(t.nodes)
	sc.next, sc.ends, sc.ending = make([]uint16, states*sc.width), make([]span, states), make([]uint64, (states+63)/64)
	sc.lists = make([]uint16, 0, 2*len(t.marks))
	fail, met := make([]uint16, states), make([]uint16, 1, states) // per state; met is its node
	for state := 0; state < len(met); state++ {
		suffix := fail[state]
		sc.ends[state] = sc.together(t, met[state], sc.ends[suffix])
		if e := sc.ends[state]; e.from < e.to {
			sc.ending[state/64] |= 1 << (state % 64)
		}
		row := sc.next[state*sc.width:][:sc.width]
		if state != 0 {
			copy(row, sc.next[int(suffix)*sc.width:])
		}
		for child := t.nodes[met[state]].child; child != 0; child = t.nodes[child].sibling {
			way, number := &row[t.nodes[child].class], uint16(len(met))
			fail[number], *way = *way, number
			met = append(met, child)
		}
	}
}

// together returns what ends in a node's state: its own marks and those of its longest suffix.
func (sc *scanner) together(t *trie, at uint16, suffix span) span {
	at = t.nodes[at].marks
	if at == 0 {
		return suffix
	}
	own := span{from: int32(len(sc.lists))}
	for ; at != 0; at = t.marks[at].next {
		sc.lists = append(sc.lists, t.marks[at].clause)
	}
	sc.lists = append(sc.lists, sc.lists[suffix.from:suffix.to]...)
	own.to = int32(len(sc.lists))
	return own
}
