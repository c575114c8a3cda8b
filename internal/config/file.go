package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A file is a file that was read: its values with their places, and the faults found in it.
type file struct {
	name   string
	lines  []string
	secret bool  // any line may contain a secret, so no fault shows its line
	root   *node // nil if the file could not be read
	faults Errors

	literals []string // warnings about secrets that are literals, not references
}

// fault describes a fault of a text, and its remedy. The zero value is no fault.
type fault struct{ problem, remedy string }

// findNearest returns the member at a path or, where the file has none, the nearest one above it.
func (f *file) findNearest(p path) member {
	nearest := member{value: f.root}
	for _, name := range p {
		next := nearest.value.child(name)
		if next == nil {
			break
		}
		nearest = *next
	}
	return nearest
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

// isWritten reports whether the file itself has a value at a path. A default is at the place of its
// object.
func (f *file) isWritten(p path) bool {
	v, above := f.get(p), f.get(p[:len(p)-1])
	return v != nil && v.at != above.at
}

// addFaultAt notes a fault at a place.
func (f *file) addFaultAt(at place, key, remedy, problem string, args ...any) {
	f.faults = append(f.faults, &Error{
		File:    f.name,
		Line:    at.line,
		Col:     at.col,
		Key:     key,
		Problem: fmt.Sprintf(problem, args...),
		Remedy:  remedy,
	})
}

// addFault notes a fault of the value at a path. If problem has no verb for the path, the message
// is the path and then the problem.
func (f *file) addFault(p path, remedy, problem string, args ...any) {
	f.addFaultAt(f.findNearest(p).value.at, p.String(), remedy, problem, args...)
}

// addKeyFault notes a fault of the key at a path.
func (f *file) addKeyFault(p path, remedy, problem string, args ...any) {
	f.addFaultAt(f.findNearest(p).at, p.String(), remedy, problem, args...)
}

// checkUnseen reports whether a key is new. It notes a fault if the key was seen before.
func (f *file) checkUnseen(seen map[string]place, key string, at place) bool {
	first, twice := seen[key]
	if twice {
		f.addFaultAt(at, key, "keep one of them", "the key %s appears twice; first at %d:%d", quote(key), first.line,
			first.col)
	} else {
		seen[key] = at
	}
	return !twice
}

// err returns the faults in the order of their places, with their source lines, or nil.
func (f *file) err() error {
	if len(f.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(f.faults, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	for _, e := range f.faults[:min(len(f.faults), MaxShownErrors)] {
		e.Source = f.sourceLine(e.Line)
	}
	return f.faults
}

// sourceLine returns a line with one visible column for every character; empty for a line that is
// long or may contain a secret.
func (f *file) sourceLine(line int) string {
	if f.secret || line < 1 || line > len(f.lines) || utf8.RuneCountInString(f.lines[line-1]) > maxShownColumns {
		return ""
	}
	visible := func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}
	return strings.TrimRight(strings.Map(visible, f.lines[line-1]), " ")
}

// locateCharacter converts a place in a text to the place in the file: a line and a column, both
// from 1. A text with escapes other than \", \\ and two single quotation marks has only its start.
// A place behind the text is the place after its last character.
func (f *file) locateCharacter(n *node, line, column int) place {
	if n.kind != isText || line < 1 {
		return n.at
	}

	source := []rune(strings.Join(f.lines[n.at.line-1:], "\n") + "\n")
	i, style := n.at.col-1, source[n.at.col-1]

	switch style {
	case '\'', '"':
		i++
	case '|', '>':
		i += slices.Index(source[i:], '\n')
	}

	position := place{1, 1}
	// Walk through the text and the file side by side, up to the place in the text.
	for _, want := range strings.TrimRight(n.text, " \n") {
		// YAML folds and indents lines: white space in the file and in the text differs.
		if !unicode.IsSpace(want) {
			for unicode.IsSpace(source[i]) {
				i++
			}
		}
		if position == (place{line, column}) || position.line > line {
			break
		}
		if position.col++; want == '\n' {
			position = place{position.line + 1, 1}
		}
		if unicode.IsSpace(want) {
			continue
		}
		if style == '"' && source[i] == '\\' || style == '\'' && source[i] == '\'' {
			i++
		}
		if source[i] != want {
			return n.at
		}
		i++
	}

	lines := strings.Split(string(source[:i]), "\n")
	return place{n.at.line + len(lines) - 1, len([]rune(lines[len(lines)-1])) + 1}
}
