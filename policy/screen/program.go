package screen

import (
	"errors"
	"fmt"
	"math/bits"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	excusePrefix = "but" // of the names of groups that excuse a match
	maxBranches  = 64    // alternatives that are looked for by themselves
	classRunes   = 32    // ends of ranges in a class that cost as much as an instruction
)

// A reading is all patterns in one spelling: for folded or for mapped text.
type reading struct {
	*scanner           // of the literals of the programs
	programs []program // in the order of their rules
	waiting  [][]int32 // per clause, the programs that want it first
	always   bool      // some program runs whatever literals there are
}

// A program is one branch of a rule's pattern and what must be there before it is worth running. It is compiled when it
// is first run: of many rules few ever are.
type program struct {
	compiled func() *compiled
	clauses  wanted
	rule     int32
}

type compiled struct {
	prog    *syntax.Prog // nil matches everything
	slots   []int        // see [search]
	excuses int          // its groups named but…
}

// match returns the index of the first rule before limit that matches one view, or limit.
func (r *reading) match(view string, limit int, w *work) int {
	if limit == 0 || w.spent() {
		return limit
	}
	var found set
	some := r.scan(view, &found)
	if !r.always && (!some || !r.awake(&found)) {
		return limit // as with most texts
	}
	for i := range r.programs {
		p := &r.programs[i]
		if int(p.rule) >= limit || w.spent() {
			break
		}
		if p.wakes(&found) && p.compiled().counts(view, w) {
			return int(p.rule)
		}
	}
	return limit
}

// awake reports whether some program wakes. It looks only at those that want one of the clauses before all others.
func (r *reading) awake(found *set) bool {
	for i, word := range found {
		for ; word != 0; word &= word - 1 {
			for _, p := range r.waiting[i*64+bits.TrailingZeros64(word)] {
				if r.programs[p].wakes(found) {
					return true
				}
			}
		}
	}
	return false
}

// wakes reports whether the clauses are there, so that the pattern must run.
func (p *program) wakes(found *set) bool {
	for _, c := range p.clauses {
		if c != noClause && !found.has(c) {
			return false
		}
	}
	return true
}

// counts reports whether the pattern has a match in view that no excuse takes part in. Behind an excused match the
// search goes on after its first word, so that an excuse does not cover a request within it; if the excuse is that
// first word, it goes on after the match. Whoever calls it asks w whether the answer means anything.
func (c *compiled) counts(view string, w *work) bool {
	if c.prog == nil {
		return true
	}
	s := newSearch(c, w)
	defer s.free()
	for first := true; len(view) > 0 || first; first = false {
		switch {
		case !s.find(view) || w.spent():
			return false
		case s.width == 0:
			return true
		}
		excuse, begin := int32(-1), s.best[0]
		for _, at := range s.best[1:] {
			if at >= 0 && (excuse < 0 || at < excuse) {
				excuse = at
			}
		}
		switch {
		case excuse < 0:
			return true
		case excuse == begin:
			view = view[min(max(s.end, 1), len(view)):]
		default:
			view = view[int(begin)+firstWord(view[begin:]):]
		}
	}
	return false
}

// firstWord returns the length of the first word of s, at least one character.
func firstWord(s string) int {
	_, size := utf8.DecodeRuneInString(s)
	for size < len(s) && kind[s[size]]&wordByte != 0 {
		size++
	}
	return size
}

// compilePattern adds the programs of one rule and returns the instructions that they have together.
func (s *Screen) compilePattern(rule int, pattern string, folded, mapped *literals) (int, error) {
	whole, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	steps, list := 0, branches(whole)
	for _, branch := range list {
		if steps += instructions(branch, MaxRuleSteps); steps > MaxRuleSteps {
			return 0, fmt.Errorf("the pattern makes more than %d instructions", MaxRuleSteps)
		}
	}
	if n := countExcuses(whole); n > MaxExcuses {
		return 0, fmt.Errorf("the pattern has %d groups named %s…, more than %d", n, excusePrefix, MaxExcuses)
	}
	if matchesEmpty(whole) {
		return 0, errors.New("the pattern matches the empty text, and so everything")
	}
	for _, branch := range list {
		s.folded.add(rule, branch, asFolded, folded)
		s.mapped.add(rule, branch, asMapped, mapped)
	}
	return steps, nil
}

// instructions returns about how many instructions re compiles to, without compiling it. It stops counting behind
// limit: repetitions multiply. A class counts for more than one if it is as large as that of all letters.
func instructions(re *syntax.Regexp, limit int) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n = max(len(re.Rune), 1)
	case syntax.OpCharClass:
		n += len(re.Rune) / classRunes
	}
	for _, sub := range re.Sub {
		if n += instructions(sub, limit); n > limit {
			return limit + 1
		}
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max) + 1
	}
	return min(n, limit+1)
}

func countExcuses(re *syntax.Regexp) int {
	n := 0
	for _, name := range re.CapNames() {
		if strings.HasPrefix(name, excusePrefix) {
			n++
		}
	}
	return n
}

// finish makes what finds out which programs are worth running, once all of them are there.
func (r *reading) finish(l *literals) {
	r.scanner, r.waiting = newScanner(l.list), make([][]int32, firstNumber+len(l.list))
	for i := range r.programs {
		first := r.programs[i].clauses[0]
		r.waiting[first] = append(r.waiting[first], int32(i))
	}
	r.always = len(r.waiting[noClause]) > 0
}

// add adds a branch of a rule's pattern.
func (r *reading) add(rule int, branch *syntax.Regexp, as spelling, l *literals) {
	p := program{
		compiled: sync.OnceValue(func() *compiled { return recompile(as.rewrite(branch).String()) }),
		clauses:  l.add(branch, as),
		rule:     int32(rule),
	}
	r.programs = append(r.programs, p)
}

// recompile compiles a rewritten pattern. The pattern as written has been parsed before; should its rewriting not
// compile all the same, it denies.
func recompile(pattern string) *compiled {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return &compiled{}
	}
	c, err := compile(re)
	if err != nil {
		return &compiled{}
	}
	return &c
}

// matchesEmpty reports whether re matches the empty text, all of which is beginning and end.
func matchesEmpty(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpStar, syntax.OpQuest, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText,
		syntax.OpEndText, syntax.OpNoWordBoundary:
		return true
	case syntax.OpLiteral:
		return len(re.Rune) == 0
	case syntax.OpCapture, syntax.OpPlus:
		return matchesEmpty(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min == 0 || matchesEmpty(re.Sub[0])
	case syntax.OpConcat:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !matchesEmpty(sub) })
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, matchesEmpty)
	}
	return false
}

func compile(re *syntax.Regexp) (compiled, error) {
	names := re.CapNames()
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return compiled{}, err
	}
	c := compiled{prog: prog, slots: make([]int, 2*len(names))}
	for group, name := range names {
		c.slots[2*group], c.slots[2*group+1] = -1, -1
		if strings.HasPrefix(name, excusePrefix) {
			c.excuses++
			c.slots[2*group] = c.excuses
		}
	}
	return c, nil
}

// branches returns the alternatives of re that are looked for by themselves: those of an alternation that is all of
// re, or the first one among its parts that is not a mere list of words.
func branches(re *syntax.Regexp) []*syntax.Regexp {
	switch re.Op {
	case syntax.OpAlternate:
		return re.Sub
	case syntax.OpConcat:
		for i, sub := range re.Sub {
			if sub.Op != syntax.OpAlternate || len(sub.Sub) > maxBranches ||
				!open(sub) && require(sub, asWritten).exact != nil {
				continue
			}
			var list []*syntax.Regexp
			for _, alternative := range sub.Sub {
				one := *re
				one.Sub = slices.Clone(re.Sub)
				one.Sub[i] = alternative
				list = append(list, &one)
			}
			return list
		}
	}
	return []*syntax.Regexp{re}
}
