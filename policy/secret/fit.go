package secret

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// fit widens spans, if text is one JSON value, so that it still is one with something else in their place. A span
// inside a string stays; any other becomes the smallest value around it. It reports whether text is JSON at all, which
// it is also with duplicate names and broken UTF-8: that is for others to judge.
func fit(text []byte, found []span) ([]span, bool) {
	f := fitter{todo: found, done: make([]span, 0, len(found))}
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var open []int // where the objects and arrays begin that are not closed
	for {
		switch kind := dec.PeekKind(); kind {
		case '{', '[', '}', ']':
			if _, err := dec.ReadToken(); err != nil {
				return nil, false
			}
			end := int(dec.InputOffset())
			if kind == '{' || kind == '[' {
				open = append(open, end-1)
				continue
			}
			f.close(open[len(open)-1], end, false)
			open = open[:len(open)-1]
		default:
			raw, err := dec.ReadValue()
			if err != nil {
				return nil, false
			}
			end := int(dec.InputOffset())
			f.close(end-len(raw), end, kind == '"')
		}
		if len(open) > 0 {
			continue
		}
		if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
			return nil, false
		}
		f.close(0, len(text), false) // also the white space around the value
		return f.done, true
	}
}

// A fitter is told of the values of a document, each when it ends, inner ones first.
type fitter struct {
	todo []span // that end later
	wide []span // that have ended, and lie in no value yet
	done []span
}

// close is told that a value stands from start to end. It takes the spans that lie in it and in no smaller one.
func (f *fitter) close(start, end int, text bool) {
	for len(f.todo) > 0 && f.todo[0].end <= end {
		f.wide, f.todo = append(f.wide, f.todo[0]), f.todo[1:]
	}
	n := len(f.wide)
	for n > 0 && f.wide[n-1].start >= start {
		n--
	}
	mine := f.wide[n:]
	f.wide = f.wide[:n]
	whole := false
	for _, s := range mine {
		whole = whole || !text || s.start == start || s.end == end
	}
	if whole {
		f.done = widen(f.done, span{start: start, end: end, value: true})
		return
	}
	f.done = append(f.done, mine...)
}
