package screen

import (
	"regexp/syntax"
	"slices"
	"strings"
)

const (
	maxExact    = 256 // strings that a part of a pattern is expanded into
	maxOptional = 8   // strings of an optional part that the rest is multiplied by
	minLiteral  = 2   // shorter literals occur everywhere
	maxClauses  = 3   // of a program
	maxNumbers  = 1024
	maxExactLen = 8 << 10  // bytes of the strings that a part is expanded into
	maxClause   = 2048     // literals of a clause
	maxBytes    = 64 << 10 // of all literals that one scanner looks for
)

// A clause is a list of literals of which one occurs in every text that a pattern matches.
type clause []string

// needs is what is known about the texts that a part of a pattern matches.
type needs struct {
	exact   []string // all of them, if known
	clauses []clause // what each of them holds
}

// literals collects the clauses of all programs and numbers them; equal ones are one.
type literals struct {
	list    []clause
	numbers map[string]uint16
	bytes   int
}

// add returns the numbers of the best clauses of re. No numbers mean that nothing is known and the pattern must run.
func (l *literals) add(re *syntax.Regexp) []uint16 {
	found := require(re).flush().clauses
	slices.SortStableFunc(found, func(a, b clause) int { return shortest(b) - shortest(a) })
	var numbers []uint16
	for _, c := range found[:min(len(found), maxClauses)] {
		key := strings.Join(c, "\x00")
		number, known := l.numbers[key]
		switch {
		case !known && (len(l.list) == maxNumbers || l.bytes+len(key) > maxBytes):
			continue // and run the pattern more often
		case !known:
			l.bytes += len(key)
			number = uint16(len(l.list))
			l.numbers[key] = number
			l.list = append(l.list, c)
		}
		numbers = append(numbers, number)
	}
	return numbers
}

func shortest(c clause) int {
	n := len(c[0])
	for _, s := range c {
		n = min(n, len(s))
	}
	return n
}

// flush turns what is known exactly into a clause.
func (n needs) flush() needs {
	if len(n.exact) > 0 && shortest(n.exact) >= minLiteral {
		n.clauses = append(slices.Clip(n.clauses), n.exact)
	}
	n.exact = nil
	return n
}

// require computes needs of a pattern without FoldCase flags. Whatever it does not understand needs nothing.
func require(re *syntax.Regexp) needs {
	switch re.Op {
	case syntax.OpLiteral:
		return needs{exact: []string{string(re.Rune)}}
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return needs{exact: []string{""}}
	case syntax.OpCharClass:
		return requireClass(re.Rune)
	case syntax.OpCapture:
		return require(re.Sub[0])
	case syntax.OpPlus:
		return require(re.Sub[0]).flush()
	case syntax.OpRepeat:
		if re.Min > 0 {
			return require(re.Sub[0]).flush()
		}
	case syntax.OpQuest:
		if sub := require(re.Sub[0]); sub.exact != nil && len(sub.exact) <= maxOptional {
			return needs{exact: append(slices.Clip(sub.exact), "")}
		}
	case syntax.OpConcat:
		return requireAll(re.Sub)
	case syntax.OpAlternate:
		return requireAny(re.Sub)
	}
	return needs{}
}

func requireClass(ranges []rune) needs {
	var n needs
	for i := 0; i < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if len(n.exact) == maxExact/8 {
				return needs{}
			}
			n.exact = append(n.exact, string(r))
		}
	}
	return n
}

// requireAll multiplies the exact strings of neighbours as long as they stay few.
func requireAll(subs []*syntax.Regexp) needs {
	all, whole := needs{exact: []string{""}}, true
	for _, sub := range subs {
		n := require(sub)
		if all.exact != nil && n.exact != nil && len(all.exact)*len(n.exact) <= maxExact &&
			size(all.exact)*len(n.exact)+size(n.exact)*len(all.exact) <= maxExactLen {
			all.exact = product(all.exact, n.exact)
			continue
		}
		whole = false
		all = all.flush()
		all.clauses = append(all.clauses, n.clauses...)
		all.exact = n.exact
	}
	if !whole {
		return all.flush() // what is left is exact for the tail only
	}
	return all
}

func size(list []string) int {
	n := 0
	for _, s := range list {
		n += len(s)
	}
	return n
}

func product(heads, tails []string) []string {
	list := make([]string, 0, len(heads)*len(tails))
	for _, h := range heads {
		for _, t := range tails {
			list = append(list, h+t)
		}
	}
	return list
}

// requireAny unites: exact strings if all branches have them, else the best clause of each branch.
func requireAny(subs []*syntax.Regexp) needs {
	exact, known := []string{}, true
	var either clause
	for _, sub := range subs {
		n := require(sub)
		known = known && n.exact != nil && len(exact)+len(n.exact) <= maxExact
		exact = append(exact, n.exact...)
		if clauses := n.flush().clauses; len(clauses) > 0 {
			best := slices.MaxFunc(clauses, func(a, b clause) int { return shortest(a) - shortest(b) })
			if either != nil || sub == subs[0] {
				either = append(either, best...)
			}
			if len(either) > maxClause {
				either = nil
			}
		} else {
			either = nil
			if !known {
				return needs{}
			}
		}
	}
	switch {
	case known:
		return needs{exact: exact}
	case either == nil:
		return needs{}
	}
	return needs{clauses: []clause{either}}
}
