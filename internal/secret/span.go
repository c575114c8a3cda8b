package secret

// A span is a piece of a text.
type span struct {
	start, end int
	value      bool // the span is a whole JSON value, which a string replaces
}

// widen appends s, which ends behind all others, and merges spans that overlap.
func widen(to []span, s span) []span {
	for n := len(to); n > 0 && to[n-1].end > s.start; n-- {
		s.start, s.end = min(s.start, to[n-1].start), max(s.end, to[n-1].end)
		to = to[:n-1]
	}
	return append(to, s)
}

// union merges two lists that are in the order of their ends. Spans that only touch are not merged.
func union(a, b []span) []span {
	if len(a) == 0 {
		a, b = b, nil
	}
	out := make([]span, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && a[0].end <= b[0].end {
			out, a = widen(out, a[0]), a[1:]
		} else {
			out, b = widen(out, b[0]), b[1:]
		}
	}
	return out
}

// locate turns spans of view with its escapes decoded into spans of view.
func locate(view []byte, found []span) {
	project(view, found, func(meaning, _ int) int { return meaning })
}

// snap widens spans of view so that none begins or ends inside an escape: half an escape decodes to
// another character or to none.
func snap(view []byte, found []span) {
	project(view, found, func(_, size int) int { return size })
}

// project moves the spans in found, which are in order, from positions of another text to positions
// of view. In the other text, each escape of view takes width bytes.
func project(view []byte, found []span, width func(meaning, size int) int) {
	starts, ends := 0, 0 // the numbers of starts and ends that are moved
	move := func(there, wide, here, size int, escape bool) {
		for ; starts < len(found) && found[starts].start < there+wide; starts++ {
			at := here
			if !escape {
				at += found[starts].start - there
			}
			found[starts].start = at
		}
		for ; ends < len(found) && found[ends].end <= there+wide; ends++ {
			at := here + size
			if !escape {
				at = here + found[ends].end - there
			}
			found[ends].end = at
		}
	}

	there, here := 0, 0
	for here < len(view) && ends < len(found) {
		plain := toEscape(view[here:])
		move(there, plain, here, plain, false)
		there, here = there+plain, here+plain
		if here == len(view) {
			break
		}
		e := readEscape(view[here:])
		wide := width(e.meaning(), e.size)
		move(there, wide, here, e.size, true)
		there, here = there+wide, here+e.size
	}
}
