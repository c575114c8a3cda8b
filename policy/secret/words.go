package secret

import "bytes"

// An automaton finds all of many words in one pass over a text, whatever the text is (Aho and Corasick, "Efficient
// string matching", CACM 18, 1975): a text that was made to be slow costs no more than another. Where nothing is
// matched, two bytes of the text say how far it can skip (Wu and Manber, "A fast algorithm for multi-pattern
// searching", 1994). Words have [MinBytes] bytes or more. They are added, then linked.
type automaton struct {
	nodes []node // nodes[0] is the root: nothing is matched
	first [256]int32
	skip  []uint8 // by the last two of MinBytes bytes: how many of these no word begins with
}

// pair is the index in skip of two bytes.
func pair(a, b byte) int { return int(a)<<8 | int(b) }

// A node stands for the beginning of a word. Numbers are indexes of nodes; 0 is the root or none.
type node struct {
	child, sibling int32 // one byte longer; another that has the same beginning but for its last byte
	fail           int32 // the longest beginning that this one ends with
	longest        int32 // of the words that this one ends with, in bytes; 0 if there is none
	label          byte  // the last byte
}

func (a *automaton) empty() bool { return len(a.nodes) == 0 }

func (a *automaton) add(word string) {
	if a.empty() {
		a.nodes = make([]node, 1)
		a.skip = bytes.Repeat([]byte{MinBytes - 1}, 1<<16)
	}
	for i := range MinBytes - 1 {
		at := pair(word[i], word[i+1])
		a.skip[at] = min(a.skip[at], uint8(MinBytes-2-i))
	}
	at := int32(0)
	for i := range len(word) {
		next := a.down(at, word[i])
		if next == 0 {
			next = int32(len(a.nodes))
			a.nodes = append(a.nodes, node{sibling: a.nodes[at].child, label: word[i]})
			a.nodes[at].child = next
			if at == 0 {
				a.first[word[i]] = next
			}
		}
		at = next
	}
	a.nodes[at].longest = int32(len(word))
}

// link sets where each node fails to, the short ones first.
func (a *automaton) link() {
	if a.empty() {
		return
	}
	queue := []int32{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for n := a.nodes[at].child; n != 0; n = a.nodes[n].sibling {
			queue = append(queue, n)
			if at == 0 {
				continue
			}
			fail := a.next(a.nodes[at].fail, a.nodes[n].label)
			a.nodes[n].fail = fail
			if a.nodes[n].longest == 0 {
				a.nodes[n].longest = a.nodes[fail].longest
			}
		}
	}
}

// down is the child of at by a byte, 0 if there is none.
func (a *automaton) down(at int32, b byte) int32 {
	if at == 0 {
		return a.first[b]
	}
	n := a.nodes[at].child
	for n != 0 && a.nodes[n].label != b {
		n = a.nodes[n].sibling
	}
	return n
}

// next is the node for the longest beginning of a word that the text so far and b end with.
func (a *automaton) next(at int32, b byte) int32 {
	for {
		if n := a.down(at, b); n != 0 || at == 0 {
			return n
		}
		at = a.nodes[at].fail
	}
}

// step goes over text from i on, until a word ends there, and returns the place behind it, 0 if there is no more. It
// starts in the node at and leaves there where to go on.
func (a *automaton) step(text []byte, i int, at *int32) int {
	for n := *at; i < len(text); i++ {
		for skip := 1; n == 0 && skip > 0; i += skip {
			if i+MinBytes > len(text) {
				return 0
			}
			skip = int(a.skip[pair(text[i+MinBytes-2], text[i+MinBytes-1])])
		}
		if n = a.next(n, text[i]); a.nodes[n].longest > 0 {
			*at = n
			return i + 1
		}
	}
	return 0
}

// in reports whether text holds a word.
func (a *automaton) in(text []byte) bool {
	at := int32(0)
	return a.step(text, 0, &at) > 0
}

// match returns where text holds words. Where they overlap, the span is that of them together.
func (a *automaton) match(text []byte) (found []span) {
	at := int32(0)
	for end := a.step(text, 0, &at); end > 0; end = a.step(text, end, &at) {
		found = widen(found, span{start: end - int(a.nodes[at].longest), end: end})
	}
	return found
}
