package lint

import (
	"strings"

	"pgfsm/policy/glob"
)

// A pattern is a glob of a policy, known by its number.
type pattern struct {
	*glob.Glob
	number int
	any    bool
	text   string // if it is a literal
	plain  bool   // it is one
}

// A relation says how the texts of one pattern stand to those of another.
type relation uint8

const (
	apart  relation = iota // they have none in common
	partly                 // they have some in common
	within                 // the other matches all of them
)

// patterns keeps each pattern once, and what was found out about two of them.
type patterns struct {
	all   map[string]*pattern
	known map[[2]int]relation
}

// maxKnown bounds what is kept of relations.
const maxKnown = 1 << 20

func newPatterns() *patterns {
	return &patterns{all: map[string]*pattern{}, known: map[[2]int]relation{}}
}

// of returns the pattern of a text that compiles; empty is `*`.
func (p *patterns) of(text string) *pattern {
	if text == "" {
		text = "*"
	}
	known := p.all[text]
	if known == nil {
		g, err := glob.Compile(text)
		if err != nil {
			return nil
		}
		known = &pattern{Glob: g, number: len(p.all), any: g.Any()}
		known.text, known.plain = g.Literal()
		p.all[text] = known
	}
	return known
}

// relate returns how the texts of a stand to those of b: within if b matches all of them.
func (p *patterns) relate(a, b *pattern) relation {
	switch {
	case a == b || b.any:
		return within
	case a.plain:
		if b.Match(a.text) {
			return within
		}
		return apart
	case b.plain:
		if a.Match(b.text) {
			return partly
		}
		return apart
	}
	if x, y := a.Prefix(), b.Prefix(); !strings.HasPrefix(x, y) && !strings.HasPrefix(y, x) {
		return apart
	}
	key := [2]int{a.number, b.number}
	if known, ok := p.known[key]; ok {
		return known
	}
	r := apart
	if glob.Includes(b.Glob, a.Glob) {
		r = within
	} else if glob.Overlaps(a.Glob, b.Glob) {
		r = partly
	}
	if len(p.known) >= maxKnown {
		clear(p.known)
	}
	p.known[key] = r
	return r
}
