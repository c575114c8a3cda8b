package secret

// A span is a piece of a text.
type span struct {
	start, end int
	value      bool // the span is a whole JSON value, which a string replaces
}

// appendSpan appends s, which ends behind all others, and merges spans that overlap.
func appendSpan(spans []span, s span) []span {
	for n := len(spans); n > 0 && spans[n-1].end > s.start; n-- {
		s.start, s.end = min(s.start, spans[n-1].start), max(s.end, spans[n-1].end)
		spans = spans[:n-1]
	}
	return append(spans, s)
}

// mergeSpans merges two lists that are in the order of their ends. Spans that only touch are not
// merged.
func mergeSpans(a, b []span) []span {
	if len(a) == 0 {
		a, b = b, nil
	}
	out := make([]span, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && a[0].end <= b[0].end {
			out, a = appendSpan(out, a[0]), a[1:]
		} else {
			out, b = appendSpan(out, b[0]), b[1:]
		}
	}
	return out
}

// locateDecoded turns spans of view with its escapes decoded into spans of view.
func locateDecoded(view []byte, found []span) {
	projectSpans(view, found, func(decoded, _ int) int { return decoded })
}

// snapToEscapes widens spans of view so that none begins or ends inside an escape: half an escape
// decodes to another character or to none.
func snapToEscapes(view []byte, found []span) {
	projectSpans(view, found, func(_, size int) int { return size })
}

// projectSpans moves the spans in found, which are in order, from positions of another text to
// positions of view. In the other text, each escape of view takes width bytes.
func projectSpans(view []byte, found []span, width func(decoded, size int) int) {
	starts, ends := 0, 0 // the numbers of starts and ends that are moved
	movePiece := func(source, sourceSize, target, size int, escape bool) {
		for ; starts < len(found) && found[starts].start < source+sourceSize; starts++ {
			moved := target
			if !escape {
				moved += found[starts].start - source
			}
			found[starts].start = moved
		}
		for ; ends < len(found) && found[ends].end <= source+sourceSize; ends++ {
			moved := target + size
			if !escape {
				moved = target + found[ends].end - source
			}
			found[ends].end = moved
		}
	}

	source, target := 0, 0 // positions in the other text and in view
	for target < len(view) && ends < len(found) {
		plain := plainPrefix(view[target:])
		movePiece(source, plain, target, plain, false)
		source, target = source+plain, target+plain
		if target == len(view) {
			break
		}
		e := readEscape(view[target:])
		sourceSize := width(e.decodedLen(), e.size)
		movePiece(source, sourceSize, target, e.size, true)
		source, target = source+sourceSize, target+e.size
	}
}
