package glob

import "slices"

// Overlaps reports whether some text is matched by both a and b. It decides that for each pair of positions in the two
// patterns, from the ends of the patterns to their beginnings.
func Overlaps(a, b *Glob) bool {
	if a == nil || b == nil || a.pattern == "" || b.pattern == "" {
		return false
	}
	// open[j]: the rest of a behind position i and the rest of b behind j match a common text; below[j]: the same for i+1.
	open := make([]bool, len(b.tokens)+1)
	below := make([]bool, len(b.tokens)+1)
	for i := len(a.tokens); i >= 0; i-- {
		open, below = below, open
		for j := len(b.tokens); j >= 0; j-- {
			open[j] = meet(a.tokens[i:], b.tokens[j:], open, below, j)
		}
	}
	return open[0]
}

// meet decides for one pair of rests. open holds the results for a and shorter rests of b, below those for a without
// its first token.
func meet(a, b []rune, open, below []bool, j int) bool {
	switch {
	case len(a) == 0 && len(b) == 0:
		return true
	case len(a) > 0 && a[0] == star:
		return below[j] || len(b) > 0 && open[j+1] // the star matches nothing, or what b's next token matches
	case len(b) > 0 && b[0] == star:
		return open[j+1] || len(a) > 0 && below[j]
	case len(a) == 0 || len(b) == 0:
		return false
	}
	return (a[0] == b[0] || a[0] == one || b[0] == one) && below[j+1]
}

// Includes reports whether a matches every text that b matches.
//
// Each text that b matches consists of a skeleton, which is b without its `*`, and of any number of further characters at
// the joints, where b has `*`. The text that is hardest for a has, at the joints and for each `?` of b, a character that a
// does not name. Only the number of characters at each joint remains to be chosen. Includes chooses against a, whose pieces
// match at the first place that fits: it moves each match as far into the skeleton as possible. A later place is never
// easier for a, because the rest of the text from there is an end of the rest before, and a has a `*` in front of its rest.
func Includes(a, b *Glob) bool {
	if b == nil || b.pattern == "" {
		return true
	}
	if a == nil || a.pattern == "" {
		return false
	}
	t := newSkeleton(b.tokens)
	pieces := split(a.tokens)
	first, last := pieces[0], pieces[len(pieces)-1]
	if len(pieces) == 1 {
		return !slices.Contains(t.joint, true) && len(first) == len(t.chars) && t.begins(first)
	}
	if !t.begins(first) {
		return false
	}
	at := len(first)
	for _, piece := range pieces[1 : len(pieces)-1] {
		if at = t.behind(piece, at); at < 0 {
			return false
		}
	}
	return t.ends(last, at)
}

// split returns the pieces of a pattern between its stars; the first and the last may be empty.
func split(tokens []rune) [][]rune {
	var pieces [][]rune
	for {
		i := slices.Index(tokens, star)
		if i < 0 {
			return append(pieces, tokens)
		}
		if i > 0 || len(pieces) == 0 {
			pieces = append(pieces, tokens[:i])
		}
		tokens = tokens[i+1:]
	}
}

// A skeleton is a pattern without its stars. In a run of `*` and `?` the order does not matter; the joint is put behind
// the last `?`.
type skeleton struct {
	chars []rune // with the token one for a character that no pattern names
	joint []bool // joint[i]: any characters may be in front of chars[i]
}

func newSkeleton(tokens []rune) skeleton {
	t := skeleton{joint: []bool{false}}
	for _, r := range tokens {
		n := len(t.chars)
		if r == star {
			t.joint[n] = true
			continue
		}
		late := r == one && t.joint[n]
		t.chars, t.joint = append(t.chars, r), append(t.joint, late)
		t.joint[n] = t.joint[n] && !late
	}
	return t
}

// fits reports whether a token of a always matches the character at i.
func (t skeleton) fits(token rune, i int) bool { return token == one || token == t.chars[i] }

// begins reports whether every text begins with piece.
func (t skeleton) begins(piece []rune) bool {
	if len(piece) > len(t.chars) {
		return false
	}
	open := false // whether any character may be here
	for i, token := range piece {
		open = open || t.joint[i]
		if token != one && (open || !t.fits(token, i)) {
			return false
		}
	}
	return true
}

// ends reports whether every text, from at on, ends with piece.
func (t skeleton) ends(piece []rune, at int) bool {
	n := len(t.chars)
	if len(piece) > n-at {
		return false
	}
	open := false
	for k := 1; k <= len(piece); k++ {
		token := piece[len(piece)-k]
		open = open || t.joint[n-k+1]
		if token != one && (open || !t.fits(token, n-k)) {
			return false
		}
	}
	return true
}

// behind returns the furthest place at which the first match of piece from at on can end, or -1 if
// some text has no match.
//
// Let the piece be `?` q times, a core that begins and ends with a character, and `?` r times. A core never matches over a
// joint if the joint has many characters. Choosing that never helps a: a core less than q characters from at does not
// match anyway. So only a core between joints counts, at least q characters on. The r characters behind it reach furthest if
// the joints there are empty.
func (t skeleton) behind(piece []rune, at int) int {
	core, r := piece, 0
	for len(core) > 0 && core[0] == one {
		core, at = core[1:], at+1
	}
	for len(core) > 0 && core[len(core)-1] == one {
		core, r = core[:len(core)-1], r+1
	}
	for ; at+len(core)+r <= len(t.chars); at++ {
		if t.holds(core, at) {
			return at + len(core) + r
		}
	}
	return -1
}

// holds reports whether every text has core at a place.
func (t skeleton) holds(core []rune, at int) bool {
	for i, token := range core {
		if i > 0 && t.joint[at+i] || !t.fits(token, at+i) {
			return false
		}
	}
	return true
}
