package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
)

// A file is a file that was read: its values with their places, and the faults found in it.
type file struct {
	name    string
	lines   []string // empty if no message may show lines
	root    *node    // nil if the file could not be read
	known   bool     // the secret values are known: only then faults show whole lines
	hidden  []span
	refused map[place]bool // places where the reader noted a fault; they get no further faults
	faults  Errors

	literals []string // warnings about secrets that are literals, not references
}

// span is hidden text: from one place up to another, exclusive; a zero end is the end of the file.
type span struct{ from, to place }

// fault describes a fault of a text, and its remedy. The zero value is no fault.
type fault struct{ problem, remedy string }

// find returns the member at a path or, where the file has none, the nearest one above it.
func (f *file) find(p path) member {
	at := member{value: f.root}
	for _, name := range p {
		next := at.value.child(name)
		if next == nil {
			break
		}
		at = *next
	}
	return at
}

// get returns the value at a path, or nil.
func (f *file) get(p path) *node {
	n := f.root
	for _, name := range p {
		m := n.child(name)
		if m == nil {
			return nil
		}
		n = m.value
	}
	return n
}

// writes reports whether the file itself has a value at a path. A default is at the place of its object.
func (f *file) writes(p path) bool {
	v, above := f.get(p), f.get(p[:len(p)-1])
	return v != nil && v.at != above.at
}

// faultAt notes a fault at a place.
func (f *file) faultAt(at place, key, remedy, problem string, args ...any) {
	if !f.refused[at] {
		e := &Error{File: f.name, Line: at.line, Col: at.col, Key: key, Problem: fmt.Sprintf(problem, args...), Remedy: remedy}
		f.faults = append(f.faults, e)
	}
}

// fault notes a fault of the value at a path. If problem has no verb for the path, the message is the path and then the problem.
func (f *file) fault(p path, remedy, problem string, args ...any) {
	f.faultAt(f.find(p).value.at, p.String(), remedy, problem, args...)
}

// faultKey notes a fault of the key at a path.
func (f *file) faultKey(p path, remedy, problem string, args ...any) {
	f.faultAt(f.find(p).at, p.String(), remedy, problem, args...)
}

// checkUnseen reports whether a key is new. It notes a fault if the key was seen before.
func (f *file) checkUnseen(seen map[string]place, key string, at place) bool {
	before, twice := seen[key]
	if twice {
		f.faultAt(at, key, "keep one of them", "the key %s appears twice; first at %d:%d", quote(key), before.line, before.col)
	} else {
		seen[key] = at
	}
	return !twice
}

// hide hides every scalar below n in messages.
func (f *file) hide(n *node) {
	n.leaves(func(leaf *node) {
		if leaf.kind == isNull {
			return
		}
		until := leaf.until
		if end := f.locate(leaf, math.MaxInt, 1); end != leaf.at {
			if until = end; strings.ContainsAny(string([]rune(f.lines[leaf.at.line-1])[leaf.at.col-1]), `"'`) {
				until.col++
			}
		}
		f.hidden = append(f.hidden, span{leaf.at, until})
	})
}

// err returns the faults in the order of their places, with their source lines, or nil. Call it after everything to hide is known.
func (f *file) err() error {
	if len(f.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(f.faults, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	for _, e := range f.faults[:min(len(f.faults), MaxShownErrors)] {
		if e.Source = f.show(e.Line); !f.known {
			e.Source = outline(e.Source)
		}
	}
	return f.faults
}

// show returns a line with secrets starred out and with one visible column for every character.
func (f *file) show(line int) string {
	if line < 1 || line > len(f.lines) {
		return ""
	}
	runes := []rune(f.lines[line-1])
	for _, h := range f.hidden {
		if h.from.line > line || h.to != (place{}) && h.to.line < line {
			continue
		}
		from, to := 0, len(runes)
		if h.from.line == line {
			from = h.from.col - 1
		}
		if h.to.line == line {
			to = min(to, h.to.col-1)
		}
		for i := from; i < to; i++ {
			if runes[i] != ' ' {
				runes[i] = '*'
			}
		}
	}
	for i, r := range runes {
		switch {
		case r == '\t':
			runes[i] = ' '
		case !unicode.IsPrint(r):
			runes[i] = unicode.ReplacementChar
		}
	}
	return strings.TrimRight(string(runes), " ")
}

// outline returns the part of a line before the first colon. It is for files that could not be parsed, whose secrets are unknown.
func outline(line string) string {
	key, rest, found := strings.Cut(line, ":")
	switch {
	case !found:
		return ""
	case rest == "":
		return key + ":"
	}
	return key + ": …"
}

// locate converts a place in a text to the place in the file: a line and a column, both from 1. It follows the text through the file's YAML
// or JSON encoding. If it cannot, it returns the start of the text. The end of the text is the place after its last character.
func (f *file) locate(n *node, line, column int) place {
	if n.kind == isList || n.kind == isMap || line < 1 || n.at.line > len(f.lines) {
		return n.at
	}
	last := cmp.Or(n.until.line, len(f.lines))
	source := []rune(strings.Join(f.lines[n.at.line-1:last], "\n") + "\n")
	i := n.at.col - 1
	style := source[i]
	switch style {
	case '\'', '"':
		i++
	case '|', '>':
		i += slices.Index(source[i:], '\n')
	}

	at := place{1, 1}
	for _, want := range strings.TrimRight(n.text, " \n") {
		for !unicode.IsSpace(want) && i < len(source)-1 {
			if style == '"' && source[i] == '\\' && source[i+1] == '\n' { // an escaped line end: the text continues on the next line
				i++
			} else if !unicode.IsSpace(source[i]) {
				break
			}
			i++
		}
		if at == (place{line, column}) || at.line > line {
			break
		}
		width := encodedWidth(source[i:], style, want)
		if width < 0 {
			return n.at
		}
		i += width
		if at.col++; want == '\n' {
			at = place{at.line + 1, 1}
		}
	}
	above := strings.Split(string(source[:i]), "\n")
	return place{n.at.line + len(above) - 1, len([]rune(above[len(above)-1])) + 1}
}

// encodedWidth returns how many characters of a file encode the wanted character of a text; -1 if they encode a different one.
func encodedWidth(source []rune, style, want rune) int {
	switch {
	case style == '"' && source[0] == '\\' && source[1] == 'u' && want > 0xFFFF:
		return 12
	case style == '"' && source[0] == '\\':
		return cmp.Or(map[rune]int{'x': 4, 'u': 6, 'U': 10}[source[1]], 2)
	case style == '\'' && source[0] == '\'' && want == '\'':
		return 2
	case source[0] == want:
		return 1
	case want == ' ' && source[0] == '\n':
		return 1
	case unicode.IsSpace(want): // YAML folds this space
		return 0
	}
	return -1
}
