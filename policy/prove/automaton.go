package prove

import (
	"cmp"
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"strings"
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
	before  rune // a character that stands for the last one; -1 at the beginning
	matched bool // a match ended, so every longer text contains it
	next    []int
	accepts int8 // whether a text that ends here contains a match; -1: not computed
}

// Characters that stand for all of which \b and ^ see the same.
const (
	textStart  rune = -1
	lineEnd    rune = '\n'
	wordChar   rune = 'a'
	otherChar  rune = ' '
	notReached      = -1
)

func contextOf(r rune) rune {
	switch {
	case r == lineEnd:
		return lineEnd
	case syntax.IsWordChar(r):
		return wordChar
	}
	return otherChar
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
	a.addState(nil, textStart, false)
	return a
}

// addState returns the number of a state.
func (a *automaton) addState(at []uint32, before rune, matched bool) int {
	if matched {
		at, before = nil, textStart
	}
	slices.Sort(at)
	key := make([]byte, 0, 4*len(at)+5)
	for _, pc := range at {
		key = binary.LittleEndian.AppendUint32(key, pc)
	}
	key = binary.LittleEndian.AppendUint32(key, uint32(before))
	if matched {
		key = append(key, 1)
	}

	if number, ok := a.known[string(key)]; ok {
		return number
	}

	next := make([]int, len(a.classes))
	for i := range next {
		next[i] = notReached
	}
	a.known[string(key)] = len(a.states)
	a.states = append(a.states, state{at: at, before: before, matched: matched, next: next, accepts: -1})
	return len(a.states) - 1
}

// follow visits what the state reaches without a character, where the next one is after; -1 is the
// end of the text. A search begins anew before each character.
func (a *automaton) follow(s *state, after rune, visit func(*syntax.Inst)) (matched bool) {
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
	if s.matched {
		return from
	}
	if s.next[class] != notReached {
		return s.next[class]
	}

	r := a.classes[class]
	var at []uint32
	matched := a.follow(s, r, func(inst *syntax.Inst) {
		if inst.MatchRune(r) && !slices.Contains(at, inst.Out) {
			at = append(at, inst.Out)
		}
	})

	next := a.addState(at, contextOf(r), matched)
	a.states[from].next[class] = next
	return next
}

// accepts reports whether the texts that lead to a state contain a match.
func (a *automaton) accepts(number int) bool {
	s := &a.states[number]
	if s.matched {
		return true
	}
	if s.accepts < 0 {
		s.accepts = 0
		if a.follow(s, textStart, func(*syntax.Inst) {}) {
			s.accepts = 1
		}
	}
	return s.accepts == 1
}

// classesOf divides all characters: the programs do not distinguish two of one class. It returns
// one of each class, those first that a person reads best.
func classesOf(progs []*syntax.Prog) []rune {
	cuts := []rune{0, '\n', '\n' + 1, '0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1, 0xD800, 0xE000}
	var distinct []*syntax.Inst
	written := map[string]bool{}
	for _, prog := range progs {
		for i := range prog.Inst {
			inst := &prog.Inst[i]
			key := string(inst.Rune) + "\x00" + string(rune(inst.Arg&1))
			if inst.Op != syntax.InstRune && inst.Op != syntax.InstRune1 || written[key] {
				continue
			}
			written[key] = true
			distinct = append(distinct, inst)
			cuts = appendCuts(cuts, inst)
		}
	}

	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	ends := append(cuts[1:len(cuts):len(cuts)], unicode.MaxRune+1)
	place, classes := map[string]int{}, []rune(nil)
	for i, low := range cuts {
		if low > unicode.MaxRune || low >= 0xD800 && low < 0xE000 {
			continue // surrogates are no characters of a text
		}
		signature := []byte{byte(contextOf(low))}
		for _, inst := range distinct {
			signature = append(signature, byte(b2i(inst.MatchRune(low))))
		}
		best := readableIn(low, ends[i])
		at, ok := place[string(signature)]
		if !ok {
			place[string(signature)] = len(classes)
			classes = append(classes, best)
		} else if readability(best) < readability(classes[at]) {
			classes[at] = best
		}
	}
	slices.SortStableFunc(classes, func(x, y rune) int { return readability(x) - readability(y) })
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

// readable are the characters that stand for a class, those first that a person reads best.
const readable = "axbsA01-./ é"

func readability(r rune) int {
	if i := strings.IndexRune(readable, r); i >= 0 {
		return i
	}
	return len(readable) + b2i(r > '~') + b2i(!unicode.IsPrint(r))
}

// readableIn returns the character from low to before end that a person reads best.
func readableIn(low, end rune) rune {
	for _, r := range readable {
		if r >= low && r < end {
			return r
		}
	}
	return low
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A product runs automata in parallel and counts characters.
type product struct {
	automata []*automaton
	classes  []rune
	sizes    []int // the lengths that are told apart from shorter and longer ones
	nodes    []productNode
}

type productNode struct {
	states []int
	length int // at most one more than the greatest size
	from   int // the node before; -1 for the empty text
	class  int
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
	p := &product{sizes: sizes, classes: classesOf(progs)}
	for _, prog := range progs {
		p.automata = append(p.automata, newAutomaton(prog, p.classes))
	}
	longest := slices.Max(append([]int{-1}, sizes...)) + 1

	reached, vectors := map[string]bool{}, map[string]bool{}
	p.nodes = []productNode{{states: make([]int, len(progs)), from: -1}}
	reached[productKey(&p.nodes[0])] = true
	for i := 0; i < len(p.nodes); i++ {
		if vector := p.vectorOf(&p.nodes[i]); !vectors[vector] {
			vectors[vector] = true
			texts = append(texts, p.textOf(i))
		}
		for class := range p.classes {
			next := productNode{
				states: make([]int, len(p.automata)),
				length: min(p.nodes[i].length+1, longest),
				from:   i,
				class:  class,
			}
			for k, a := range p.automata {
				next.states[k] = a.step(p.nodes[i].states[k], class)
			}
			key := productKey(&next)
			if reached[key] {
				continue
			}
			if len(p.nodes) == maxStates {
				return nil, false
			}
			reached[key] = true
			p.nodes = append(p.nodes, next)
		}
	}
	return texts, true
}

func productKey(n *productNode) string {
	key := binary.AppendUvarint(nil, uint64(n.length))
	for _, s := range n.states {
		key = binary.AppendUvarint(key, uint64(s))
	}
	return string(key)
}

// vectorOf says which patterns the texts of a node contain, and how long they are.
func (p *product) vectorOf(n *productNode) string {
	var vector []byte
	for _, size := range p.sizes {
		vector = append(vector, byte(1+cmp.Compare(n.length, size)))
	}
	for i, a := range p.automata {
		vector = append(vector, byte(b2i(a.accepts(n.states[i]))))
	}
	return string(vector)
}

func (p *product) textOf(i int) string {
	var text []rune
	for ; p.nodes[i].from >= 0; i = p.nodes[i].from {
		text = append(text, p.classes[p.nodes[i].class])
	}
	slices.Reverse(text)
	return string(text)
}
