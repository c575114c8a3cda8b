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
	excusePrefix = "but" // begins the names of groups that excuse a match
	classRunes   = 32    // ends of ranges in a class that count as one instruction
)

// A budget is the cost that judging a request may still have.
type budget int64

func (b *budget) isSpent() bool { return *b < 0 }

// A pattern is a compiled rule.
type pattern struct {
	steps int                   // the approximate number of its instructions
	needs []string              // every text that matches has one of them; empty if nothing is known
	expr  func() *regexp.Regexp // compiles a default rule when it first runs: most never do
}

// defaultPatterns are the compiled default rules by their patterns: one for all screens of a
// process.
var defaultPatterns = sync.OnceValue(func() map[string]*pattern {
	compiled := map[string]*pattern{}
	for _, d := range defaults() {
		tree, err := syntax.Parse(d.Pattern, syntax.Perl)
		if err != nil {
			panic("screen: a default rule does not compile: " + err.Error())
		}
		expr := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(d.Pattern) })
		compiled[d.Pattern] = &pattern{countInstructions(tree, MaxRuleSteps), strings.Fields(d.needs), expr}
	}
	return compiled
})

func compilePattern(text string) (*pattern, error) {
	if p, ok := defaultPatterns()[text]; ok {
		return p, nil
	}
	steps, err := Instructions(text, MaxRuleSteps)
	if err != nil {
		return nil, err
	}

	expr, err := regexp.Compile("(?i)" + text)
	switch {
	case err != nil:
		return nil, err
	case countExcuses(expr) > MaxExcuses:
		return nil, fmt.Errorf("the pattern has %d groups named %s…, more than %d", countExcuses(expr), excusePrefix,
			MaxExcuses)
	case expr.MatchString(""):
		return nil, errors.New("the pattern matches the empty text, and so everything")
	}

	return &pattern{steps: steps, expr: func() *regexp.Regexp { return expr }}, nil
}

func countExcuses(expr *regexp.Regexp) int {
	n := 0
	for _, name := range expr.SubexpNames() {
		if strings.HasPrefix(name, excusePrefix) {
			n++
		}
	}
	return n
}

// Instructions returns about how many instructions a pattern compiles to. More than most are an error.
func Instructions(pattern string, most int) (int, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	n := countInstructions(tree, most)
	if n > most {
		return 0, fmt.Errorf("the pattern makes more than %d instructions", most)
	}
	return n, nil
}

// countInstructions returns about how many instructions re compiles to, without compiling it. It
// stops counting above limit, because repetitions multiply. A class counts for more than one if it
// is as large as that of all letters.
func countInstructions(re *syntax.Regexp, limit int) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n = max(len(re.Rune), 1)
	case syntax.OpCharClass:
		n += len(re.Rune) / classRunes
	}
	for _, sub := range re.Sub {
		if n += countInstructions(sub, limit); n > limit {
			return limit + 1
		}
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max) + 1
	}
	return min(n, limit+1)
}

// matches reports whether the pattern has a match that is not excused, or more than [MaxExcused]
// excused ones. The search continues behind the first word of an excused match, so that an excuse
// does not hide a request within the match. If the budget is spent, the answer means nothing.
func (p *pattern) matches(text string, left *budget) bool {
	isIn := func(literal string) bool { return strings.Contains(text, literal) }
	if len(p.needs) > 0 && !slices.ContainsFunc(p.needs, isIn) {
		return false
	}

	for excused := 0; ; excused++ {
		// The search is charged before it runs, at the most that it can cost.
		if *left -= budget(p.steps) * budget(len(text)); left.isSpent() {
			return false
		}
		match := p.expr().FindStringSubmatchIndex(text)
		if match == nil {
			return false
		}
		switch begin, excuse := match[0], firstExcuse(p.expr(), match); {
		case excuse < 0, excused == MaxExcused:
			return true
		case excuse == begin:
			text = text[min(max(match[1], 1), len(text)):]
		default:
			text = text[begin+firstWord(text[begin:]):]
		}
		if text == "" {
			return false
		}
	}
}

// firstExcuse returns the start of the first group that excuses the match, or -1 if none takes
// part.
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
	for size < len(s) && isWord(s[size]) {
		size++
	}
	return size
}
