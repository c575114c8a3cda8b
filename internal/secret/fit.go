package secret

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// fitToValues widens spans so that text, if it is one JSON value, still is one after they are
// replaced. A span inside a string stays; any other becomes the smallest value around it. fit
// reports whether text is JSON. Duplicate names and broken UTF-8 are accepted here; others judge
// them.
func fitToValues(text []byte, found []span) ([]span, bool) {
	f := fitter{todo: found, done: make([]span, 0, len(found))}
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	var open []int // the beginnings of the objects and arrays that are not closed

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
			f.closeValue(open[len(open)-1], end, false)
			open = open[:len(open)-1]
		default:
			raw, err := dec.ReadValue()
			if err != nil {
				return nil, false
			}
			end := int(dec.InputOffset())
			f.closeValue(end-len(raw), end, kind == '"')
		}

		if len(open) > 0 {
			continue
		}
		if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
			return nil, false
		}

		f.closeValue(0, len(text), false) // this includes the white space around the value
		return f.done, true
	}
}

// A fitter assigns spans to the values of a document, in the order in which the values end, inner
// ones first.
type fitter struct {
	todo []span // spans that end later
	wide []span // spans that have ended and are in no value yet
	done []span
}

// closeValue assigns spans to the value from start to end: those that lie in it and in no smaller
// one.
func (f *fitter) closeValue(start, end int, text bool) {
	for len(f.todo) > 0 && f.todo[0].end <= end {
		f.wide, f.todo = append(f.wide, f.todo[0]), f.todo[1:]
	}
	n := len(f.wide)
	for n > 0 && f.wide[n-1].start >= start {
		n--
	}
	contained := f.wide[n:]
	f.wide = f.wide[:n]
	replaceValue := false
	for _, s := range contained {
		replaceValue = replaceValue || !text || s.start == start || s.end == end
	}
	if replaceValue {
		f.done = appendSpan(f.done, span{start: start, end: end, value: true})
		return
	}
	f.done = append(f.done, contained...)
}
