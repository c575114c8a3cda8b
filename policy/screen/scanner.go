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
	next  []uint16 // state*width + class → state
	ends  []span   // per state, the clauses whose literals end here, in numbers
	lists []uint16 // the numbers of clauses, list behind list
}

// A span is a part of [scanner.lists].
type span struct{ from, to int32 }

// scan returns the clauses that have a literal in s.
func (sc *scanner) scan(s string) set {
	var found set
	state := 0
	for i := 0; i < len(s); i++ {
		state = int(sc.next[state*sc.width+int(sc.class[s[i]])])
		if e := sc.ends[state]; e.from < e.to {
			for _, number := range sc.lists[e.from:e.to] {
				found.add(number)
			}
		}
	}
	return found
}
