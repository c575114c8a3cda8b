package screen

import (
	"regexp/syntax"
	"slices"
)

const (
	maxExact    = 256     // strings that a part of a pattern is expanded into
	maxExactLen = 8 << 10 // bytes of these
	maxOptional = 8       // strings of an optional part that the rest is multiplied by
	maxClass    = 32      // characters of a class that is expanded
	minLiteral  = 2       // bytes of a literal; shorter ones occur everywhere
	maxClauses  = 3       // of a pattern
	maxClause   = 2048    // literals of a clause
)

// A clause is a list of literals of which one is in every text that a pattern matches.
type clause []string

// needs is what is known about the texts that a part of a pattern matches.
type needs struct {
	exact   []string // all of them, or nil if that is not known
	clauses []clause // each holds for all of them
}

// required returns the clauses of a pattern whose shortest literals are longest.
func required(re *syntax.Regexp, f form) []clause {
	clauses := require(re, f).flush().clauses
	slices.SortStableFunc(clauses, func(a, b clause) int { return shortest(b) - shortest(a) })
	return clauses[:min(len(clauses), maxClauses)]
}

func shortest(c clause) int {
	n := len(c[0])
	for _, s := range c {
		n = min(n, len(s))
	}
	return n
}

// flush turns exact strings into a clause.
func (n needs) flush() needs {
	if len(n.exact) > 0 && shortest(n.exact) >= minLiteral {
		n.clauses = append(slices.Clip(n.clauses), n.exact)
	}
	n.exact = nil
	return n
}

// best returns the clause whose shortest literal is longest, the first of several, or nil if there is none.
func (n needs) best() clause {
	var best clause
	for _, c := range n.flush().clauses {
		if best == nil || shortest(c) > shortest(best) {
			best = c
		}
	}
	return best
}

// require computes the needs of a part of a pattern, read in one form. Parts that it does not understand need nothing. The
// lists that it returns may be shared and are not changed.
func require(re *syntax.Regexp, f form) needs {
	switch re.Op {
	case syntax.OpLiteral:
		return needs{exact: []string{f.literal(re.Rune)}}
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return needs{exact: []string{""}}
	case syntax.OpCharClass:
		return requireClass(re.Rune, f)
	case syntax.OpCapture:
		return require(re.Sub[0], f)
	case syntax.OpPlus:
		return require(re.Sub[0], f).flush()
	case syntax.OpRepeat:
		if re.Min > 0 {
			return require(re.Sub[0], f).flush()
		}
	case syntax.OpQuest:
		if repeats(re.Sub[0]) {
			break // it has no exact strings: this saves most of the work
		}
		if sub := require(re.Sub[0], f); sub.exact != nil && len(sub.exact) <= maxOptional {
			return needs{exact: append(slices.Clip(sub.exact), "")}
		}
	case syntax.OpConcat:
		return requireAll(re.Sub, f)
	case syntax.OpAlternate:
		return requireAny(re.Sub, f)
	}
	return needs{}
}

func repeats(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpStar, syntax.OpPlus, syntax.OpRepeat:
		return true
	}
	return slices.ContainsFunc(re.Sub, repeats)
}

func requireClass(ranges []rune, f form) needs {
	if classSize(ranges) > maxClass+1 { // a form takes at most one character out of a class
		return needs{}
	}
	ranges = f.class(ranges)
	if n := classSize(ranges); n == 0 || n > maxClass {
		return needs{}
	}
	var exact []string
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
func requireAll(subs []*syntax.Regexp, f form) needs {
	all, whole := needs{exact: []string{""}}, true
	for _, sub := range subs {
		n := require(sub, f)
		if all.exact != nil && n.exact != nil && len(all.exact)*len(n.exact) <= maxExact {
			if list := product(all.exact, n.exact); size(list) <= maxExactLen {
				all.exact = list
				continue
			}
		}
		whole = false
		all = all.flush()
		all.clauses = append(all.clauses, n.clauses...)
		all.exact = n.exact
	}
	if !whole {
		return all.flush() // the exact strings are those of the tail only
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

// product returns each head with each tail.
func product(heads, tails []string) []string {
	switch {
	case len(heads) == 1 && heads[0] == "":
		return tails
	case len(tails) == 1 && tails[0] == "":
		return heads
	}
	list := make([]string, 0, len(heads)*len(tails))
	for _, h := range heads {
		for _, t := range tails {
			list = append(list, h+t)
		}
	}
	return list
}

// requireAny returns exact strings if all alternatives have them, else the best clause of each alternative.
func requireAny(subs []*syntax.Regexp, f form) needs {
	exact, either := []string{}, clause{}
	for _, sub := range subs {
		n := require(sub, f)
		if exact != nil && n.exact != nil && len(exact)+len(n.exact) <= maxExact {
			exact = append(exact, n.exact...)
		} else {
			exact = nil
		}
		if best := n.best(); either != nil && best != nil && len(either)+len(best) <= maxClause {
			either = append(either, best...)
		} else {
			either = nil
		}
	}
	switch {
	case exact != nil:
		return needs{exact: exact}
	case either != nil:
		return needs{clauses: []clause{either}}
	}
	return needs{}
}
