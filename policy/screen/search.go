package screen

import (
	"regexp/syntax"
	"sync"
	"unicode/utf8"
)

// A work is what is left of the instructions that judging one request may take. Time would be the wrong measure: a
// replay must come to the same verdict on another machine.
type work struct{ left int }

func (w *work) spent() bool { return w.left < 0 }

// A search runs a compiled pattern over text: leftmost first, as package regexp does, but counting what it does. A
// search is used by one goroutine.
type search struct {
	prog  *syntax.Prog
	slot  []int // per capture instruction's argument, its place in a thread's record, or -1
	width int   // of a record: where the match begins and where each excuse does; 0 if only a match is asked for
	work  *work
	now   queue
	next  queue
	begin []int32 // the record being followed
	best  []int32 // the record of the match found
	end   int     // where that ends, or -1
}

// A queue is the set of instructions to run at one place of the text, first the most wanted.
type queue struct {
	sparse  []uint32
	dense   []uint32
	records []int32
}

func (q *queue) add(pc uint32) bool {
	if i := q.sparse[pc]; int(i) < len(q.dense) && q.dense[i] == pc {
		return false
	}
	q.sparse[pc] = uint32(len(q.dense))
	q.dense = append(q.dense, pc)
	return true
}

// Searches are kept: a queue need not be empty or even clean to be used again.
var searches = sync.Pool{New: func() any { return new(search) }}

func newSearch(c *compiled, w *work) *search {
	s := searches.Get().(*search)
	s.prog, s.slot, s.work, s.width = c.prog, c.slots, w, 0
	if c.excuses > 0 {
		s.width = 1 + c.excuses
	}
	n := len(c.prog.Inst)
	s.now.grow(n, s.width)
	s.next.grow(n, s.width)
	s.begin, s.best = make([]int32, s.width), make([]int32, s.width)
	return s
}

func (q *queue) grow(n, width int) {
	if len(q.sparse) < n {
		q.sparse, q.dense = make([]uint32, n), make([]uint32, 0, n)
	}
	if len(q.records) < n*width {
		q.records = make([]int32, n*width)
	}
}

func (s *search) free() {
	s.prog, s.slot, s.work = nil, nil, nil
	searches.Put(s)
}

// find reports whether the pattern matches in text. If records are kept, best and end then tell how.
func (s *search) find(text string) bool {
	s.now.dense, s.next.dense, s.end = s.now.dense[:0], s.next.dense[:0], -1
	before, char, size := rune(-1), rune(-1), 0
	if text != "" {
		char, size = utf8.DecodeRuneInString(text)
	}
	for at := 0; !s.work.spent(); {
		after, nextSize := rune(-1), 0
		if at+size < len(text) {
			after, nextSize = utf8.DecodeRuneInString(text[at+size:])
		}
		if s.end < 0 {
			s.start(at, syntax.EmptyOpContext(before, char))
		} else if len(s.now.dense) == 0 {
			break
		}
		s.next.dense = s.next.dense[:0]
		if s.step(char, at, at+size, syntax.EmptyOpContext(char, after)) && s.width == 0 {
			return true
		}
		s.now, s.next = s.next, s.now
		if char < 0 {
			break
		}
		at, before, char, size = at+size, char, after, nextSize
	}
	return s.end >= 0
}

func (s *search) start(at int, context syntax.EmptyOp) {
	for i := range s.begin {
		s.begin[i] = -1
	}
	if s.width > 0 {
		s.begin[0] = int32(at)
	}
	s.follow(&s.now, uint32(s.prog.Start), at, context)
}

// step runs what is queued on one character, -1 at the end of the text, and reports whether there was a match.
func (s *search) step(char rune, at, after int, context syntax.EmptyOp) bool {
	for _, pc := range s.now.dense {
		inst := &s.prog.Inst[pc]
		switch inst.Op {
		case syntax.InstMatch:
			copy(s.best, s.now.records[int(pc)*s.width:])
			s.end = at
			return true // what is queued behind is less wanted
		case syntax.InstRune1:
			if char != inst.Rune[0] {
				continue
			}
		case syntax.InstRune, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if char < 0 || !inst.MatchRune(char) {
				continue
			}
		default:
			continue
		}
		if s.width > 0 {
			copy(s.begin, s.now.records[int(pc)*s.width:])
		}
		s.follow(&s.next, inst.Out, after, context)
	}
	return false
}

// follow queues pc and what is reached from it without reading.
func (s *search) follow(q *queue, pc uint32, at int, context syntax.EmptyOp) {
	for q.add(pc) {
		s.work.left--
		switch inst := &s.prog.Inst[pc]; inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			s.follow(q, inst.Out, at, context)
			pc = inst.Arg
		case syntax.InstCapture:
			if i := s.slot[inst.Arg]; i >= 0 && s.width > 0 {
				was := s.begin[i]
				s.begin[i] = int32(at)
				s.follow(q, inst.Out, at, context)
				s.begin[i] = was
				return
			}
			pc = inst.Out
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^context != 0 {
				return
			}
			pc = inst.Out
		case syntax.InstNop:
			pc = inst.Out
		default:
			s.work.left -= s.width + len(inst.Rune)/classRunes
			if s.width > 0 {
				copy(q.records[int(pc)*s.width:], s.begin)
			}
			return
		}
	}
}
