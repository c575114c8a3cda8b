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
	maxExactLen = 8 << 10    // bytes of the strings that a part is expanded into
	maxClause   = 2048       // literals of a clause
	maxBytes    = 64<<10 - 1 // of all literals that one scanner looks for: it numbers its states in 16 bits
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
	numbers map[string]uint16 // from firstNumber on
	bytes   int
}

// A wanted is the numbers of the clauses that must be there before a pattern is worth running, and [noClause] behind
// them. No numbers mean that nothing is known and the pattern must run.
type wanted [maxClauses]uint16

// add returns the numbers of the best clauses of re, read in one spelling.
func (l *literals) add(re *syntax.Regexp, as spelling) wanted {
	found := require(re, as).flush().clauses
	slices.SortStableFunc(found, func(a, b clause) int { return shortest(b) - shortest(a) })
	var all wanted
	count := 0
	for _, c := range found[:min(len(found), maxClauses)] {
		key := strings.Join(c, "\x00")
		number, known := l.numbers[key]
		switch {
		case !known && (len(l.list) == maxNumbers || l.bytes+len(key) > maxBytes):
			continue // and run the pattern more often
		case !known:
			l.bytes += len(key)
			number = firstNumber + uint16(len(l.list))
			l.numbers[key] = number
			l.list = append(l.list, c)
		}
		all[count] = number
		count++
	}
	return all
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

// best returns the clause with the longest shortest literal, the first of several, or nil if there is none.
func (n needs) best() clause {
	var best clause
	for _, c := range n.clauses {
		if best == nil || shortest(c) > shortest(best) {
			best = c
		}
	}
	if len(n.exact) > 0 {
		if c := clause(n.exact); shortest(c) >= minLiteral && (best == nil || shortest(c) > shortest(best)) {
			best = c
		}
	}
	return best
}

// require computes needs of a pattern, its letters read in one spelling. Whatever it does not understand needs nothing.
// Lists that it returns may be shared and are not changed.
func require(re *syntax.Regexp, as spelling) needs {
	switch re.Op {
	case syntax.OpLiteral:
		return needs{exact: []string{as.literal(re.Rune)}}
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return needs{exact: nothing}
	case syntax.OpCharClass:
		return requireClass(re.Rune, as)
	case syntax.OpCapture:
		return require(re.Sub[0], as)
	case syntax.OpPlus:
		return require(re.Sub[0], as).flush()
	case syntax.OpRepeat:
		if re.Min > 0 {
			return require(re.Sub[0], as).flush()
		}
	case syntax.OpQuest:
		if open(re.Sub[0]) {
			break // and save the work
		}
		if sub := require(re.Sub[0], as); sub.exact != nil && len(sub.exact) <= maxOptional {
			return needs{exact: append(slices.Clip(sub.exact), "")}
		}
	case syntax.OpConcat:
		return requireAll(re.Sub, as)
	case syntax.OpAlternate:
		return requireAny(re.Sub, as)
	}
	return needs{}
}

// nothing is the list of the texts of no length.
var nothing = []string{""}

// open reports whether [require] can never list all texts that re matches, however its letters are read: a part of it
// repeats, or is any character. False says nothing.
func open(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpNoMatch, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpStar, syntax.OpPlus, syntax.OpRepeat:
		return true
	}
	return slices.ContainsFunc(re.Sub, open)
}

func requireClass(ranges []rune, as spelling) needs {
	const most = maxExact / 8
	if classSize(ranges) > most+1 { // a spelling takes one character out of a class at most
		return needs{}
	}
	ranges = as.class(ranges)
	n := classSize(ranges)
	if n == 0 || n > most {
		return needs{}
	}
	exact := make([]string, 0, n)
	for i := 0; i < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			exact = append(exact, string(r))
		}
	}
	return needs{exact: exact}
}

// classSize returns how many characters a class lists.
func classSize(ranges []rune) int {
	n := 0
	for i := 0; i < len(ranges); i += 2 {
		n += int(ranges[i+1]-ranges[i]) + 1
	}
	return n
}

// requireAll multiplies the exact strings of neighbours as long as they stay few.
func requireAll(subs []*syntax.Regexp, as spelling) needs {
	all, whole := needs{exact: nothing}, true
	for _, sub := range subs {
		n := require(sub, as)
		if all.exact != nil && n.exact != nil && len(all.exact)*len(n.exact) <= maxExact &&
			productSize(all.exact, n.exact) <= maxExactLen {
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

func productSize(heads, tails []string) int { return size(heads)*len(tails) + size(tails)*len(heads) }

// product returns each head with each tail, all of them cut from one string.
func product(heads, tails []string) []string {
	switch {
	case len(heads) == 1 && heads[0] == "":
		return tails
	case len(tails) == 1 && tails[0] == "":
		return heads
	}
	var b strings.Builder
	b.Grow(productSize(heads, tails))
	for _, h := range heads {
		for _, t := range tails {
			b.WriteString(h)
			b.WriteString(t)
		}
	}
	list, rest := make([]string, 0, len(heads)*len(tails)), b.String()
	for _, h := range heads {
		for _, t := range tails {
			n := len(h) + len(t)
			list, rest = append(list, rest[:n]), rest[n:]
		}
	}
	return list
}

// requireAny unites: exact strings if all branches have them, else the best clause of each branch.
func requireAny(subs []*syntax.Regexp, as spelling) needs {
	list, exact, clauses, known := make([]needs, 0, 16), 0, 0, true // room for most, without an allocation
	for _, sub := range subs {
		n := require(sub, as)
		list = append(list, n)
		known = known && n.exact != nil && exact+len(n.exact) <= maxExact
		exact += len(n.exact)
		best := n.best()
		if clauses += len(best); !known && (best == nil || clauses > maxClause) {
			return needs{}
		}
	}
	if known {
		all := make([]string, 0, exact)
		for _, n := range list {
			all = append(all, n.exact...)
		}
		return needs{exact: all}
	}
	either := make(clause, 0, clauses)
	for _, n := range list {
		best := n.best()
		if best == nil {
			return needs{}
		}
		either = append(either, best...)
	}
	return needs{clauses: []clause{either}}
}
