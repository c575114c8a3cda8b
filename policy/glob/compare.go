package glob

import "slices"

// Overlaps reports whether some text is matched by both a and b. It walks the pairs of positions in the two patterns
// that one text can bring them to.
func Overlaps(a, b *Glob) bool {
	if a == nil || b == nil || a.pattern == "" || b.pattern == "" {
		return false
	}
	// open[j]: the rest of a behind the row's position and the rest of b behind j match a common text.
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

// meet answers for one pair of rests; open holds the answers for a and shorter rests of b, below those for a without
// its first token.
func meet(a, b []rune, open, below []bool, j int) bool {
	switch {
	case len(a) == 0 && len(b) == 0:
		return true
	case len(a) > 0 && a[0] == star:
		return below[j] || len(b) > 0 && open[j+1] // it takes nothing, or what b's next token takes
	case len(b) > 0 && b[0] == star:
		return open[j+1] || len(a) > 0 && below[j]
	case len(a) == 0 || len(b) == 0:
		return false
	}
	return (a[0] == b[0] || a[0] == one || b[0] == one) && below[j+1]
}

// Includes reports whether a matches every text that b matches.
//
// A text of b is a skeleton, b without its `*`, and behind some of its characters (the joints, where b has `*`) as much
// more as one likes. In the text that is hardest for a, all of that more, and whatever a `?` of b stands for, is a
// character that a does not name. What is left open is how much more stands at each joint. Includes plays against a, as
// a matcher that takes the first place that fits, and always brings it as far into the skeleton as can be: a place
// further on is never easier, since what is left from there is the end of what was left before, and a is in front of a
// `*`.
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
// the last `?`, so that what must stand comes first.
type skeleton struct {
	chars []rune // with one for a character that nobody names
	joint []bool // joint[i]: more may stand in front of chars[i]
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
	open := false // whether anything may stand here
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

// behind returns the furthest place that the end of the first piece, looked for from at on, can be brought to, or -1 if
// there is a text without it.
//
// Let the piece be `?` q times, a core that begins and ends with a character of its own, and `?` r times. A core that
// reaches over a joint is kept away by putting much there. That is free of cost unless it stands at less than q
// characters from at, but there the core does not count anyhow. So what counts is a core between joints, at least q
// characters on; behind it, r more characters reach furthest where nothing is put at the joints.
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

// holds reports whether core stands at a place in every text.
func (t skeleton) holds(core []rune, at int) bool {
	for i, token := range core {
		if i > 0 && t.joint[at+i] || !t.fits(token, at+i) {
			return false
		}
	}
	return true
}
