package screen

// words of the set of clauses that a text holds
const foundWords = maxNumbers / 64

// A set of clause numbers.
type set [foundWords]uint64

func (s *set) add(i uint16)      { s[i/64] |= 1 << (i % 64) }
func (s *set) has(i uint16) bool { return s[i/64]&(1<<(i%64)) != 0 }

// A scanner finds in one pass which clauses have a literal in a text: an Aho-Corasick automaton over bytes, with
// bytes that no literal holds in one class.
type scanner struct {
	class [256]uint8
	width int
	next  []int32    // state*width + class → state
	ends  [][]uint16 // per state, the clauses whose literals end here
}

func newScanner(clauses []clause) *scanner {
	sc := &scanner{width: 1, ends: make([][]uint16, 1)}
	for _, c := range clauses {
		for _, lit := range c {
			for i := 0; i < len(lit); i++ {
				if b := lit[i]; sc.class[b] == 0 {
					sc.class[b] = uint8(sc.width) // at most 255: byte 0xff is in no UTF-8
					sc.width++
				}
			}
		}
	}
	sc.next = make([]int32, sc.width)
	for number, c := range clauses {
		for _, lit := range c {
			sc.insert(lit, uint16(number))
		}
	}
	sc.link()
	return sc
}

func (sc *scanner) insert(lit string, number uint16) {
	state := 0
	for i := 0; i < len(lit); i++ {
		at := state*sc.width + int(sc.class[lit[i]])
		if sc.next[at] == 0 {
			sc.next[at] = int32(len(sc.ends))
			sc.ends = append(sc.ends, nil)
			sc.next = append(sc.next, make([]int32, sc.width)...)
		}
		state = int(sc.next[at])
	}
	sc.ends[state] = append(sc.ends[state], number)
}

// link turns the trie into an automaton, breadth first: where the trie has no way on, the way of the longest suffix is
// taken, and what ends there ends here too.
func (sc *scanner) link() {
	fail := make([]int32, len(sc.ends))
	var queue []int32
	for c := range sc.width {
		if child := sc.next[c]; child != 0 {
			queue = append(queue, child)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		state := queue[0]
		sc.ends[state] = append(sc.ends[state], sc.ends[fail[state]]...)
		for c := range sc.width {
			at, other := int(state)*sc.width+c, sc.next[int(fail[state])*sc.width+c]
			if child := sc.next[at]; child != 0 {
				fail[child] = other
				queue = append(queue, child)
			} else {
				sc.next[at] = other
			}
		}
	}
}

// scan returns the clauses that have a literal in s.
func (sc *scanner) scan(s string) set {
	var found set
	state := 0
	for i := 0; i < len(s); i++ {
		state = int(sc.next[state*sc.width+int(sc.class[s[i]])])
		for _, number := range sc.ends[state] {
			found.add(number)
		}
	}
	return found
}
