package screen

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	excusePrefix = "but" // of the names of groups that excuse a match
	maxBranches  = 64    // alternatives that are searched separately
	classRunes   = 32    // ends of ranges in a class that count as one instruction
)

// A budget is the cost that judging a request may still have.
type budget int64

func (b *budget) spent() bool { return *b < 0 }

// patterns are the patterns of all rules in one form.
type patterns struct {
	form   form
	list   []pattern // in the order of their rules
	filter func() *prefilter
}

// A pattern is one branch of a rule's pattern.
type pattern struct {
	rule   int
	branch *syntax.Regexp
	steps  int                   // about its instructions
	expr   func() *regexp.Regexp // nil matches everything
}

// newPatterns returns no patterns yet. The prefilter is made when the first text is judged, and a pattern is compiled when it
// first runs: most never do.
func newPatterns(f form) *patterns {
	ps := &patterns{form: f}
	ps.filter = sync.OnceValue(func() *prefilter {
		filter := &prefilter{nodes: make([]node, 1)}
		for _, p := range ps.list {
			filter.add(required(p.branch, f))
		}
		return filter
	})
	return ps
}

// add adds a branch of a rule's pattern. If its rewritten form does not compile, it matches everything, so that the rule denies.
func (ps *patterns) add(rule int, branch *syntax.Regexp) {
	expr := sync.OnceValue(func() *regexp.Regexp {
		expr, err := regexp.Compile(ps.form.rewrite(branch).String())
		if err != nil {
			return nil
		}
		return expr
	})
	ps.list = append(ps.list, pattern{rule, branch, instructions(branch, MaxRuleSteps), expr})
}

// match returns the index of the first rule before limit that matches text, or limit.
func (ps *patterns) match(text string, limit int, left *budget) int {
	for _, i := range ps.filter().candidates(text) {
		p := ps.list[i]
		if p.rule >= limit || left.spent() {
			break
		}
		if p.matches(text, left) {
			return p.rule
		}
	}
	return limit
}

// matches reports whether the pattern has a match that is not excused, or more than [MaxExcused] excused ones. The
// search continues behind the first word of an excused match, so that an excuse does not hide a request within the
// match. If the budget is spent, the answer means nothing.
func (p *pattern) matches(text string, left *budget) bool {
	expr := p.expr()
	if expr == nil {
		return true
	}
	for excused := 0; ; excused++ {
		if *left -= budget(p.steps) * budget(len(text)); left.spent() {
			return false
		}
		at := expr.FindStringSubmatchIndex(text)
		if at == nil {
			return false
		}
		switch begin, excuse := at[0], firstExcuse(expr, at); {
		case excuse < 0, excused == MaxExcused:
			return true
		case excuse == begin:
			text = text[min(max(at[1], 1), len(text)):]
		default:
			text = text[begin+firstWord(text[begin:]):]
		}
		if text == "" {
			return false
		}
	}
}

// firstExcuse returns where the first group that excuses the match begins, or -1 if none takes part.
func firstExcuse(expr *regexp.Regexp, at []int) int {
	first := -1
	for group, name := range expr.SubexpNames() {
		if begin := at[2*group]; strings.HasPrefix(name, excusePrefix) && begin >= 0 && (first < 0 || begin < first) {
			first = begin
		}
	}
	return first
}

// firstWord returns the length of the first word of s, at least one character.
func firstWord(s string) int {
	_, size := utf8.DecodeRuneInString(s)
	for size < len(s) && kind[s[size]]&wordByte != 0 {
		size++
	}
	return size
}

// compilePattern adds the branches of one rule's pattern and returns the instructions that they have together.
func (s *Screen) compilePattern(rule int, text string) (int, error) {
	whole, err := syntax.Parse(text, syntax.Perl)
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
		s.folded.add(rule, branch)
		s.mapped.add(rule, branch)
	}
	return steps, nil
}

// instructions returns about how many instructions re compiles to, without compiling it. It stops counting above
// limit, because repetitions multiply. A class counts for more than one if it is as large as that of all letters.
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

// matchesEmpty reports whether re matches the empty text.
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

// branches returns the alternatives of re that are searched separately: those of an alternation that is all of
// re, or of the first alternation among its parts that is not a mere list of words.
func branches(re *syntax.Regexp) []*syntax.Regexp {
	switch re.Op {
	case syntax.OpAlternate:
		return re.Sub
	case syntax.OpConcat:
		for i, sub := range re.Sub {
			if sub.Op != syntax.OpAlternate || len(sub.Sub) > maxBranches || require(sub, formWritten).exact != nil {
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
