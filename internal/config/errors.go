package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxShownErrors bounds how many faults [Errors] prints; the others are counted.
const MaxShownErrors = 20

// maxShownColumns bounds how much of a long source line is printed around the caret.
const maxShownColumns = 100

// An Error is one fault in a configuration file or in a file that it names.
type Error struct {
	File    string `json:"file"`
	Line    int    `json:"line"`            // from 1; 0 when the fault is the file itself
	Col     int    `json:"column"`          // from 1, in characters
	Key     string `json:"key,omitzero"`    // the path of the key concerned, like servers.docs.url; empty if there is none
	Problem string `json:"problem"`         // what is wrong
	Remedy  string `json:"remedy,omitzero"` // what to do about it; may be empty
	// Source is the line, fit to be printed: one column a character, secrets starred out. It is empty for a fault without
	// a line, and behind the first MaxShownErrors.
	Source string `json:"-"`
}

// Error prints the fault as file:line:col: problem, the source line with a caret under the column, and the remedy.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Col)
	}
	b.WriteString(": " + e.Problem)
	if e.Source != "" {
		line, caret := window(e.Source, e.Col-1)
		fmt.Fprintf(&b, "\n  %4d | %s\n       | %s^", e.Line, line, strings.Repeat(" ", caret))
	}
	if e.Remedy != "" {
		b.WriteString("\n       " + e.Remedy)
	}
	return b.String()
}

// window cuts a long line around the caret.
func window(line string, caret int) (string, int) {
	runes := []rune(line)
	caret = min(max(0, caret), len(runes))
	if len(runes) <= maxShownColumns {
		return line, caret
	}
	start := min(max(0, caret-maxShownColumns/2), len(runes)-1)
	end := min(len(runes), start+maxShownColumns)
	shown, head := string(runes[start:end]), ""
	if start > 0 {
		head = "…"
	}
	if end < len(runes) {
		shown += "…"
	}
	return head + shown, caret - start + utf8.RuneCountInString(head)
}

// Errors are the faults of one load, in the order of files and places. It is never empty.
type Errors []*Error

// Error prints the first [MaxShownErrors] faults and counts the others.
func (e Errors) Error() string {
	var b strings.Builder
	for i, one := range e {
		if i == MaxShownErrors {
			fmt.Fprintf(&b, "\nand %d more", len(e)-i)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(one.Error())
	}
	return b.String()
}

// Unwrap gives errors.As and errors.Is each fault.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i, one := range e {
		out[i] = one
	}
	return out
}

// source is a file as its faults show it.
type source struct {
	name    string
	lines   []string
	most    size
	known   bool // the secret values are known: only then faults show whole lines
	hidden  []span
	refused map[place]bool // places with faults of the reader, which get no further faults
	faults  Errors
}

// span is hidden text: from one place up to another, exclusive; a zero end is the end of the file.
type span struct{ from, to place }

func newSource(name string, text []byte) *source {
	return &source{name: name, lines: strings.Split(string(text), "\n")}
}

func (s *source) fault(at place, key, remedy, problem string, args ...any) {
	if s.refused[at] {
		return
	}
	s.faults = append(s.faults, &Error{
		File: s.name, Line: at.line, Col: at.col, Key: key, Problem: fmt.Sprintf(problem, args...), Remedy: remedy,
	})
}

// refuse closes the places of the faults so far.
func (s *source) refuse() {
	s.refused = make(map[place]bool)
	for _, e := range s.faults {
		s.refused[place{e.Line, e.Col}] = true
	}
}

// hide hides every scalar below n in messages.
func (s *source) hide(n *node) {
	n.leaves(func(leaf *node) {
		if leaf.kind != isNull {
			s.hidden = append(s.hidden, span{leaf.at, leaf.until})
		}
	})
}

// err returns the faults in the order of their places, with their source lines, or nil. To be called once, when all
// that must be hidden is known.
func (s *source) err() error {
	if len(s.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(s.faults, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	for i, e := range s.faults {
		if i == MaxShownErrors {
			break
		}
		if e.Source = s.show(e.Line); !s.known {
			e.Source = outline(e.Source)
		}
	}
	return s.faults
}

// show returns a line with secrets starred out and with one visible column for every character.
func (s *source) show(line int) string {
	if line < 1 || line > len(s.lines) {
		return ""
	}
	runes := []rune(s.lines[line-1])
	for _, h := range s.hidden {
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
