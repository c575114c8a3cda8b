package screen

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	excusePrefix = "but" // of the names of groups that excuse a match
	maxBranches  = 64    // alternatives that are looked for by themselves
)

// A program is one branch of a rule's pattern, compiled for folded and for mapped text.
type program struct {
	rule   int
	folded matcher
	mapped matcher
}

// A matcher is a pattern and the numbers of the clauses that must be there before it is worth running. The pattern is
// compiled when it is first run: of many rules few ever are.
type matcher struct {
	compiled func() compiled
	clauses  []uint16
}

type compiled struct {
	re      *regexp.Regexp // nil matches everything
	excuses []int          // its groups named but…
}

func (p *program) matches(view string, mapped bool, found *set) bool {
	m := &p.folded
	if mapped {
		m = &p.mapped
	}
	for _, c := range m.clauses {
		if !found.has(c) {
			return false
		}
	}
	return m.compiled().counts(view)
}

// counts reports whether the pattern has a match in view that no excuse takes part in. Behind an excused match the
// search goes on after its first word, so that an excuse does not cover a request within it; if the excuse is that
// first word, it goes on after the match.
func (c compiled) counts(view string) bool {
	if c.re == nil {
		return true
	}
	if len(c.excuses) == 0 {
		return c.re.MatchString(view)
	}
	for len(view) > 0 {
		match := c.re.FindStringSubmatchIndex(view)
		if match == nil {
			return false
		}
		first := -1
		for _, group := range c.excuses {
			if at := match[2*group]; at >= 0 && (first < 0 || at < first) {
				first = at
			}
		}
		switch {
		case first < 0:
			return true
		case first == match[0]:
			view = view[max(match[1], 1):]
		default:
			view = view[match[0]+firstWord(view[match[0]:]):]
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

func compilePattern(rule int, pattern string, folded, mapped *literals) ([]program, error) {
	re, err := regexp.Compile(pattern) // the limits on repetition and size are its own
	if err != nil {
		return nil, err
	}
	if re.MatchString("") {
		return nil, errors.New("the pattern matches the empty text, and so everything")
	}
	whole, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	var programs []program
	for _, branch := range branches(whole) {
		programs = append(programs, program{rule, newMatcher(branch, false, folded), newMatcher(branch, true, mapped)})
	}
	return programs, nil
}

func newMatcher(branch *syntax.Regexp, mapped bool, l *literals) matcher {
	tree := rewrite(branch, mapped)
	return matcher{sync.OnceValue(func() compiled { return compile(tree.String()) }), l.add(tree)}
}

// compile compiles a rewritten pattern. The pattern as written has been compiled before; should its rewriting not
// compile all the same, it denies.
func compile(pattern string) compiled {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return compiled{}
	}
	c := compiled{re: re}
	for group, name := range re.SubexpNames() {
		if strings.HasPrefix(name, excusePrefix) {
			c.excuses = append(c.excuses, group)
		}
	}
	return c
}

// branches returns the alternatives of re that are looked for by themselves: those of an alternation that is all of
// re, or the first one among its parts that is not a mere list of words.
func branches(re *syntax.Regexp) []*syntax.Regexp {
	switch re.Op {
	case syntax.OpAlternate:
		return re.Sub
	case syntax.OpConcat:
		for i, sub := range re.Sub {
			if sub.Op != syntax.OpAlternate || len(sub.Sub) > maxBranches || require(sub).exact != nil {
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

// rewrite returns re for folded text (literals in lower case) or, if mapped, for mapped text: literals mapped like
// the text, and classes that tell "i" from "l" corrected, since mapped text cannot: a class that lists "l" gets "i",
// one that excludes "l" excludes "i".
func rewrite(re *syntax.Regexp, mapped bool) *syntax.Regexp {
	c := *re
	c.Sub, c.Rune = nil, nil
	for _, sub := range re.Sub {
		c.Sub = append(c.Sub, rewrite(sub, mapped))
	}
	switch re.Op {
	case syntax.OpLiteral:
		c.Flags &^= syntax.FoldCase
		text := strings.ToLower(string(re.Rune))
		if mapped {
			text = mapLetters(text)
		}
		c.Rune = []rune(text)
	case syntax.OpCharClass:
		c.Rune = rewriteClass(re.Rune, mapped)
	}
	return &c
}

func rewriteClass(ranges []rune, mapped bool) []rune {
	negated := len(ranges) > 0 && ranges[len(ranges)-1] == unicode.MaxRune
	if negated {
		if mapped && !inClass(ranges, 'l') {
			return without(ranges, 'i')
		}
		return slices.Clone(ranges)
	}
	c := slices.Clone(ranges)
	for r := 'A'; r <= 'Z'; r++ {
		if inClass(ranges, r) {
			c = append(c, unicode.ToLower(r), unicode.ToLower(r))
		}
	}
	if mapped && inClass(c, 'l') {
		c = append(c, 'i', 'i')
	}
	return c
}

// without returns ranges without r.
func without(ranges []rune, r rune) []rune {
	var c []rune
	for i := 0; i < len(ranges); i += 2 {
		low, high := ranges[i], ranges[i+1]
		if r < low || high < r {
			c = append(c, low, high)
			continue
		}
		if low < r {
			c = append(c, low, r-1)
		}
		if r < high {
			c = append(c, r+1, high)
		}
	}
	return c
}

func inClass(ranges []rune, r rune) bool {
	for i := 0; i < len(ranges); i += 2 {
		if ranges[i] <= r && r <= ranges[i+1] {
			return true
		}
	}
	return false
}
