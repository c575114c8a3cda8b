package lint

import (
	"encoding/binary"
	"slices"
)

// smallest returns, for the texts that p matches, the smallest sets of the others that match one. It walks the product
// of their automata, and gives up (false) beyond the bounds.
func smallest(p *pattern, others []*pattern, work *int) ([]set, bool) {
	machines := make([]machine, 0, len(others)+1)
	for _, q := range append([]*pattern{p}, others...) {
		machines = append(machines, newMachine(q.String()))
	}
	w := &walk{machines: machines, seen: map[string]bool{}}
	if !w.run(maxOwnSteps, work) {
		return nil, false
	}
	return w.found, true
}

// run walks to the end, or until it is clear that nothing smaller will come. It is false beyond the bounds.
func (w *walk) run(most int, work *int) bool {
	start := make([]state, len(w.machines))
	for i := range w.machines {
		start[i] = w.machines[i].close(w.machines[i].nothing(), 0)
	}
	w.visit(start)
	own := 0
	for len(w.todo) > 0 && !w.least() {
		at := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		letters := w.letters(at)
		own, *work = own+len(at)*len(letters), *work-len(at)*len(letters)
		if own > most || *work < 0 {
			return false
		}
		for _, r := range letters {
			next := make([]state, len(at))
			for i := range at {
				next[i] = w.machines[i].step(at[i], r)
			}
			w.visit(next)
		}
	}
	return true
}

// A walk goes through the states of several machines that read the same text. The first is the one that must match.
type walk struct {
	machines []machine
	seen     map[string]bool
	todo     [][]state
	found    []set // of the others, none a part of another; or all that there are
	all      bool
}

// least reports whether a text was found that none of the others matches.
func (w *walk) least() bool { return !w.all && len(w.found) == 1 && w.found[0].empty() }

// visit takes up a state that is new and from which the first machine can still match.
func (w *walk) visit(at []state) {
	if at[0] == nil {
		return
	}
	var key []byte
	for i, s := range at {
		if s != nil {
			key = binary.AppendUvarint(key, uint64(i))
			for _, word := range s {
				key = binary.LittleEndian.AppendUint64(key, word)
			}
		}
	}
	if w.seen[string(key)] {
		return
	}
	w.seen[string(key)] = true
	w.todo = append(w.todo, at)
	if !w.machines[0].matched(at[0]) {
		return
	}
	matching := newSet(len(at) - 1)
	for i, s := range at[1:] {
		if w.machines[i+1].matched(s) {
			matching.put(i)
		}
	}
	if w.all {
		if !slices.ContainsFunc(w.found, func(f set) bool { return slices.Equal(f, matching) }) {
			w.found = append(w.found, matching)
		}
		return
	}
	if slices.ContainsFunc(w.found, func(f set) bool { return f.in(matching) }) {
		return
	}
	w.found = slices.DeleteFunc(w.found, func(f set) bool { return matching.in(f) })
	w.found = append(w.found, matching)
}

// other stands for every character that no machine waits for.
const other rune = -3

// letters returns the characters that make a difference, in their order.
func (w *walk) letters(at []state) []rune {
	letters := []rune{other}
	for i, s := range at {
		for k, token := range w.machines[i].tokens {
			if token >= 0 && s != nil && set(s).has(k) {
				letters = append(letters, token)
			}
		}
	}
	slices.Sort(letters)
	return slices.Compact(letters)
}

// A machine reads a text for one glob. Package glob says what the pattern means.
type machine struct{ tokens []rune }

// A state holds the places in the pattern that the text can have led to. Nil means that nothing can match any more.
type state set

const (
	one  rune = -1 // `?`
	star rune = -2 // `*`
)

func newMachine(pattern string) machine {
	var m machine
	for _, r := range pattern {
		switch r {
		case '?':
			r = one
		case '*':
			r = star
		}
		m.tokens = append(m.tokens, r)
	}
	return m
}

func (m machine) nothing() state { return state(newSet(len(m.tokens) + 1)) }

// close adds a place, and those that are reached from it without a character.
func (m machine) close(s state, i int) state {
	for set(s).put(i); i < len(m.tokens) && m.tokens[i] == star; set(s).put(i) {
		i++
	}
	return s
}

func (m machine) matched(s state) bool { return s != nil && set(s).has(len(m.tokens)) }

// step reads one character. Whatever matches from a place before a `*` matches from there too, so of the places only
// those from the last `*` on are kept.
func (m machine) step(s state, r rune) state {
	if s == nil {
		return nil
	}
	next, last := m.nothing(), 0
	for i, token := range m.tokens {
		if !set(s).has(i) {
			continue
		}
		switch {
		case token == star:
			m.close(next, i)
		case token == one || token == r:
			m.close(next, i+1)
		}
	}
	for i, token := range m.tokens {
		if token == star && set(next).has(i) {
			last = i
		}
	}
	for i := range last {
		next[i/64] &^= 1 << (i % 64)
	}
	if set(next).empty() {
		return nil
	}
	return next
}
