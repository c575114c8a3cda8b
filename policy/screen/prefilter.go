package screen

import "slices"

const (
	maxLiteral       = 32        // bytes of a literal that a prefilter looks for; of longer ones it takes the beginning
	maxLiteralsBytes = 128 << 10 // bytes of all literals of a prefilter
)

// A prefilter tells which patterns may match a text, so that only those run: a pattern has clauses, and each clause
// has a literal in every text that the pattern matches. It is a trie of the literals of all clauses.
type prefilter struct {
	nodes    []node  // the first is the root
	patterns [][]int // the numbers of each pattern's clauses; a pattern without clauses always runs
	clauses  int
	bytes    int // of the literals
}

// A node has a child by the low bits of a byte. Bytes that share them are not told apart, which may only let a pattern
// run in vain: lower-case letters differ in them.
type node struct {
	child [1 << lowBits]uint32 // 0 for none
	ends  []int                // the clauses that have a literal which ends here
}

const lowBits = 5

func low(char byte) byte { return char & (1<<lowBits - 1) }

// add adds a pattern. It leaves out clauses for which there is no room; then the pattern runs more often.
func (f *prefilter) add(clauses []clause) {
	var numbers []int
	for _, c := range clauses {
		bytes := 0
		for _, literal := range c {
			bytes += min(len(literal), maxLiteral)
		}
		if f.bytes+bytes > maxLiteralsBytes {
			continue
		}
		for _, literal := range c {
			f.insert(literal[:min(len(literal), maxLiteral)], f.clauses)
		}
		numbers = append(numbers, f.clauses)
		f.clauses, f.bytes = f.clauses+1, f.bytes+bytes
	}
	f.patterns = append(f.patterns, numbers)
}

func (f *prefilter) insert(literal string, clause int) {
	at := uint32(0)
	for i := range len(literal) {
		next := f.nodes[at].child[low(literal[i])]
		if next == 0 {
			next = uint32(len(f.nodes))
			f.nodes[at].child[low(literal[i])] = next
			f.nodes = append(f.nodes, node{})
		}
		at = next
	}
	f.nodes[at].ends = append(f.nodes[at].ends, clause)
}

// candidates returns the patterns that may match text, in their order.
func (f *prefilter) candidates(text string) []int {
	found := make([]bool, f.clauses)
	for i := range len(text) {
		at := uint32(0)
		for j := i; j < len(text); j++ {
			if at = f.nodes[at].child[low(text[j])]; at == 0 {
				break
			}
			for _, clause := range f.nodes[at].ends {
				found[clause] = true
			}
		}
	}
	var list []int
	for i, clauses := range f.patterns {
		if !slices.ContainsFunc(clauses, func(c int) bool { return !found[c] }) {
			list = append(list, i)
		}
	}
	return list
}
