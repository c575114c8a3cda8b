package rules

import (
	"bytes"
	"slices"
	"strings"
)

// An index finds the policies whose globs may fit a call.
//
// The names of a call are read as one text, each between two separators; so are the globs of a policy. Text between
// wildcards must then occur in the text of every call that the policy fits, and one such piece is the policy's key.
// The keys are a trie whose nodes are numbered level by level, so that the children of a node follow one another,
// with the links of Aho and Corasick (Efficient String Matching, 1975). What is found is looked at again; an index
// only leaves out.
type index struct {
	words  int      // of a set of policies: one bit for each
	always []uint64 // the policies without a key
	labels []byte   // of each node, the byte that leads to it
	nodes  []node   // the root is 0
	lists  []list   // of the nodes where keys end
}

type node struct {
	first, count int32 // children
	back         int32 // the longest proper suffix that is a node
	list         int32 // of the keys that end here; -1 for none
	next         int32 // the nearest node along the back links that has a list; 0 for none
}

// A list holds the policies of one key: one by one, or as a set if that is shorter to copy.
type list struct {
	few []int32
	set []uint64
}

// separator separates names. It occurs in no UTF-8 text; in other text it costs a comparison of globs and nothing else.
const separator = "\xff"

// maxKey is how many bytes of a piece are used.
const maxKey = 64

// find adds to the empty set found the policies that may fit.
func (x *index) find(found []uint64, server, tool, env string) {
	copy(found, x.always)
	if len(x.nodes) == 0 {
		return
	}
	at := x.step(0, separator[0])
	for _, name := range [...]string{server, tool, env} {
		for i := range len(name) {
			at = x.step(at, name[i])
			x.collect(found, at)
		}
		at = x.step(at, separator[0])
		x.collect(found, at)
	}
}

// step follows one byte.
func (x *index) step(at int32, c byte) int32 {
	for {
		n := &x.nodes[at]
		if i := bytes.IndexByte(x.labels[n.first:n.first+n.count], c); i >= 0 {
			return n.first + int32(i)
		}
		if at == 0 {
			return 0
		}
		at = n.back
	}
}

// collect adds the policies of all keys that end at a node.
func (x *index) collect(found []uint64, at int32) {
	if x.nodes[at].list < 0 {
		at = x.nodes[at].next
	}
	for ; at != 0; at = x.nodes[at].next {
		l := &x.lists[x.nodes[at].list]
		for _, p := range l.few {
			found[p/64] |= 1 << (p % 64)
		}
		for i, word := range l.set {
			found[i] |= word
		}
	}
}

func newIndex(policies []Policy) index {
	x := index{words: (len(policies) + 63) / 64}
	x.always = make([]uint64, x.words)
	byKey := make(map[string][]int32)
	var keys []string
	for i, key := range chooseKeys(policies) {
		if key == "" {
			x.always[i/64] |= 1 << (i % 64)
			continue
		}
		if byKey[key] == nil {
			keys = append(keys, key)
		}
		byKey[key] = append(byKey[key], int32(i))
	}
	if len(keys) == 0 {
		return x
	}
	slices.Sort(keys)
	x.grow(keys, byKey)
	x.link()
	return x
}

// grow makes the trie of sorted keys, level by level.
func (x *index) grow(keys []string, byKey map[string][]int32) {
	type span struct{ from, to, depth int } // the keys below a node
	spans := []span{{0, len(keys), 0}}
	x.nodes, x.labels = []node{{list: -1}}, []byte{0}
	for at := 0; at < len(x.nodes); at++ {
		s := spans[at]
		if len(keys[s.from]) == s.depth {
			x.nodes[at].list = int32(len(x.lists))
			x.lists = append(x.lists, x.newList(byKey[keys[s.from]]))
			s.from++
		}
		x.nodes[at].first = int32(len(x.nodes))
		for s.from < s.to {
			c, to := keys[s.from][s.depth], s.from+1
			for to < s.to && keys[to][s.depth] == c {
				to++
			}
			spans = append(spans, span{s.from, to, s.depth + 1})
			x.nodes, x.labels = append(x.nodes, node{list: -1}), append(x.labels, c)
			s.from = to
		}
		x.nodes[at].count = int32(len(x.nodes)) - x.nodes[at].first
	}
}

func (x *index) newList(policies []int32) list {
	if len(policies) <= x.words {
		return list{few: policies}
	}
	set := make([]uint64, x.words)
	for _, p := range policies {
		set[p/64] |= 1 << (p % 64)
	}
	return list{set: set}
}

// link sets the back links. Those of a node lead to shorter texts, which have lower numbers.
func (x *index) link() {
	for at := range int32(len(x.nodes)) {
		n := x.nodes[at]
		for child := n.first; child < n.first+n.count; child++ {
			to := &x.nodes[child]
			if at != 0 {
				to.back = x.step(n.back, x.labels[child])
			}
			if to.next = to.back; x.nodes[to.back].list < 0 {
				to.next = x.nodes[to.back].next
			}
		}
	}
}

// chooseKeys returns a key for each policy, or "" for one that has none.
func chooseKeys(policies []Policy) []string {
	shared := make(map[string]int)
	for i := range policies {
		for _, piece := range pieces(&policies[i].Match) {
			shared[piece]++
		}
	}
	keys := make([]string, len(policies))
	for i := range policies {
		for _, piece := range pieces(&policies[i].Match) {
			if keys[i] == "" || better(piece, keys[i], shared) {
				keys[i] = piece
			}
		}
	}
	return keys
}

// better reports whether fewer calls are likely to contain a than b: very short text occurs everywhere; then what
// fewer policies share tells more; then what is longer.
func better(a, b string, shared map[string]int) bool {
	const short = 3
	if (len(a) < short) != (len(b) < short) {
		return len(b) < short
	}
	if shared[a] != shared[b] {
		return shared[a] < shared[b]
	}
	return len(a) > len(b)
}

// pieces returns the literal text between the wildcards of three globs. Of a long piece its two ends are returned.
func pieces(m *Match) (all []string) {
	text := separator + orAny(m.Server) + separator + orAny(m.Tool) + separator + orAny(m.Env) + separator
	for piece := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '*' || r == '?' }) {
		switch {
		case strings.Count(piece, separator) == len(piece): // nothing but separators
		case len(piece) > maxKey:
			all = append(all, piece[:maxKey], piece[len(piece)-maxKey:])
		default:
			all = append(all, piece)
		}
	}
	return all
}

func orAny(pattern string) string {
	if pattern == "" {
		return "*"
	}
	return pattern
}
