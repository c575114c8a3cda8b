package prove

import (
	"cmp"
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode"
)

// maxStates bounds the states of one product of automata. Beyond it the texts are not divided.
const maxStates = 20_000

// An automaton decides whether a text contains a match of a pattern. It is made deterministic one
// state after the other, as the search reaches them.
type automaton struct {
	prog    *syntax.Prog
	classes []rune // a character of each class
	states  []state
	known   map[string]int // the states by their keys
}

// A state is the set of instructions that the automaton is at before the next character.
type state struct {
	at      []uint32
	before  rune // a character that stands for the last one, or one of the two below
	accepts bool // a text that ends here contains a match
	next    []int
}

const (
	textStart rune = -1
	matched   rune = -2 // a match ended, so every longer text contains it
)

const notReached = -1

// contextOf returns a character of which \b and ^ see the same.
func contextOf(r rune) rune {
	switch {
	case r == '\n':
		return r
	case syntax.IsWordChar(r):
		return 'a'
	}
	return ' '
}

// compilePattern reads a pattern as package regexp does.
func compilePattern(pattern string) (*syntax.Prog, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	return syntax.Compile(tree.Simplify())
}

func newAutomaton(prog *syntax.Prog, classes []rune) *automaton {
	a := &automaton{prog: prog, classes: classes, known: map[string]int{}}
	a.addState(nil, textStart)
	return a
}

// addState returns the number of a state.
func (a *automaton) addState(at []uint32, before rune) int {
	slices.Sort(at)
	key := binary.LittleEndian.AppendUint32(nil, uint32(before))
	for _, pc := range at {
		key = binary.LittleEndian.AppendUint32(key, pc)
	}
	number, ok := a.known[string(key)]
	if !ok {
		number = len(a.states)
		a.known[string(key)] = number
		s := state{at: at, before: before, next: slices.Repeat([]int{notReached}, len(a.classes))}
		s.accepts = before == matched || a.follow(&s, textStart, func(*syntax.Inst) {})
		a.states = append(a.states, s)
	}
	return number
}

// follow visits what the state reaches without a character, where the next one is after; -1 is the
// end of the text. A search begins anew before each character.
func (a *automaton) follow(s *state, after rune, visit func(*syntax.Inst)) (found bool) {
	flags := syntax.EmptyOpContext(s.before, after)
	seen := map[uint32]bool{}
	stack := append(slices.Clone(s.at), uint32(a.prog.Start))

	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true

		inst := &a.prog.Inst[pc]
		switch inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^flags == 0 {
				stack = append(stack, inst.Out)
			}
		case syntax.InstMatch:
			return true
		case syntax.InstFail:
		default:
			visit(inst)
		}
	}

	return false
}

// step returns the state after a character of a class.
func (a *automaton) step(from, class int) int {
	s := &a.states[from]
	switch {
	case s.before == matched:
		return from
	case s.next[class] != notReached:
		return s.next[class]
	}

	r := a.classes[class]
	var at []uint32
	before := contextOf(r)
	if a.follow(s, r, func(inst *syntax.Inst) {
		if inst.MatchRune(r) {
			addTo(&at, inst.Out)
		}
	}) {
		at, before = nil, matched
	}

	next := a.addState(at, before)
	a.states[from].next[class] = next
	return next
}

// classesOf divides all characters: the programs do not distinguish two of one class. It returns
// one of each class. Of each class, and of all, those that a person reads best are the first.
func classesOf(progs []*syntax.Prog) (classes []rune) {
	cuts := []rune{0, '\n', '\n' + 1, '0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1, 0xD800, 0xE000}
	distinct := map[string]*syntax.Inst{}
	for _, prog := range progs {
		for i := range prog.Inst {
			if inst := &prog.Inst[i]; inst.Op == syntax.InstRune || inst.Op == syntax.InstRune1 {
				distinct[string(inst.Rune)+"\x00"+string(rune(inst.Arg&1))] = inst
			}
		}
	}
	var tests []*syntax.Inst
	for _, inst := range distinct { // in any order: a signature is compared with others of this order
		tests, cuts = append(tests, inst), appendCuts(cuts, inst)
	}

	slices.Sort(cuts)
	rank := func(r rune) int {
		if r <= '~' && unicode.IsPrint(r) {
			return 0
		}
		return 1 + b2i(!unicode.IsPrint(r))
	}
	slices.SortStableFunc(cuts, func(x, y rune) int { return rank(x) - rank(y) })
	known := map[string]bool{}
	for _, r := range append([]rune("axbsA01-./ é"), cuts...) {
		if r > unicode.MaxRune || r >= 0xD800 && r < 0xE000 {
			continue // surrogates are no characters of a text
		}
		signature := []byte{byte(contextOf(r))}
		for _, inst := range tests {
			signature = append(signature, byte(b2i(inst.MatchRune(r))))
		}
		if !known[string(signature)] {
			known[string(signature)] = true
			classes = append(classes, r)
		}
	}
	return classes
}

// appendCuts adds where the characters of an instruction begin and end.
func appendCuts(cuts []rune, inst *syntax.Inst) []rune {
	if len(inst.Rune) != 1 {
		for i := 0; i+1 < len(inst.Rune); i += 2 {
			cuts = append(cuts, inst.Rune[i], inst.Rune[i+1]+1)
		}
		return cuts
	}
	r := inst.Rune[0]
	cuts = append(cuts, r, r+1)
	for other := unicode.SimpleFold(r); syntax.Flags(inst.Arg)&syntax.FoldCase != 0 && other != r; other = unicode.SimpleFold(other) {
		cuts = append(cuts, other, other+1)
	}
	return cuts
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A productNode is a state of automata that run in parallel and count characters.
type productNode struct {
	states []int
	length int // at most one more than the greatest size
	from   int // the node before; -1 for the empty text
	char   rune
}

// divideTexts returns a shortest text for each way in which texts can satisfy the patterns and
// compare with the sizes. It is false if there are too many states.
func divideTexts(patterns []string, sizes []int) (texts []string, ok bool) {
	var progs []*syntax.Prog
	for _, pattern := range patterns {
		prog, err := compilePattern(pattern)
		if err != nil {
			return nil, false
		}
		progs = append(progs, prog)
	}
	classes := classesOf(progs)
	var automata []*automaton
	for _, prog := range progs {
		automata = append(automata, newAutomaton(prog, classes))
	}
	longest := slices.Max(append([]int{-1}, sizes...)) + 1

	nodes := []productNode{{states: make([]int, len(progs)), from: -1}}
	reached, vectors := map[string]bool{}, map[string]bool{}
	for i := 0; i < len(nodes); i++ {
		var vector []byte // how the texts of the node compare
		for _, size := range sizes {
			vector = append(vector, byte(1+cmp.Compare(nodes[i].length, size)))
		}
		for k, a := range automata {
			vector = append(vector, byte(b2i(a.states[nodes[i].states[k]].accepts)))
		}
		if !vectors[string(vector)] {
			vectors[string(vector)] = true
			texts = append(texts, textOf(nodes, i))
		}

		for class, char := range classes {
			next := productNode{states: make([]int, len(automata)), length: min(nodes[i].length+1, longest), from: i, char: char}
			key := binary.AppendUvarint(nil, uint64(next.length))
			for k, a := range automata {
				next.states[k] = a.step(nodes[i].states[k], class)
				key = binary.AppendUvarint(key, uint64(next.states[k]))
			}
			if reached[string(key)] {
				continue
			}
			if len(nodes) == maxStates {
				return nil, false
			}
			reached[string(key)] = true
			nodes = append(nodes, next)
		}
	}
	return texts, true
}

// textOf returns the text that leads to a node.
func textOf(nodes []productNode, i int) string {
	var text []rune
	for ; nodes[i].from >= 0; i = nodes[i].from {
		text = append(text, nodes[i].char)
	}
	slices.Reverse(text)
	return string(text)
}
