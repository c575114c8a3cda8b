package screen

// noClause stands where a program has no further clause; the clauses are numbered from [firstNumber] on.
const (
	noClause    = 0
	firstNumber = 1
)

// words of the set of clauses that a text holds
const foundWords = (firstNumber + maxNumbers + 63) / 64

// A set of clause numbers.
type set [foundWords]uint64

func (s *set) add(i uint16)      { s[i/64] |= 1 << (i % 64) }
func (s *set) has(i uint16) bool { return s[i/64]&(1<<(i%64)) != 0 }

// A scanner finds in one pass which clauses have a literal in a text: an Aho-Corasick automaton over bytes, with
// bytes that no literal holds in one class. Its states are numbered level by level: a text that holds next to no
// literal stays among the first few, which lie close together.
type scanner struct {
	class  [256]uint8
	width  int
	next   []uint16 // state*width + class → state
	ending []uint64 // the set of states in which a literal ends: far less to look at than ends
	ends   []span   // per state, the clauses whose literals end here, in numbers
	lists  []uint16 // the numbers of clauses, list behind list
}

// A span is a part of [scanner.lists].
type span struct{ from, to int32 }

// scan adds the clauses that have a literal in s to found, and reports whether there are any.
func (sc *scanner) scan(s string, found *set) bool {
	state, some := 0, false
	for i := 0; i < len(s); i++ {
		state = int(sc.next[state*sc.width+int(sc.class[s[i]])])
		if sc.ending[state/64]&(1<<(state%64)) == 0 {
			continue
		}
		some = true
		e := sc.ends[state]
		for _, number := range sc.lists[e.from:e.to] {
			found.add(number)
		}
	}
	return some
}
