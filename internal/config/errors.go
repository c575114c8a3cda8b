package config

import (
	"fmt"
	"strings"
)

// MaxShownErrors bounds the faults that [Errors] prints; it counts the others.
const MaxShownErrors = 20

// maxShownColumns bounds the columns of a source line that is printed.
const maxShownColumns = 160

// An Error is one fault in a configuration file or in a file that it names.
type Error struct {
	File string `json:"file"`
	Line int    `json:"line"`   // from 1; 0 when the fault is the file itself
	Col  int    `json:"column"` // from 1, in characters
	// The path of the key concerned, like servers.docs.url; empty if there is none.
	Key     string `json:"key,omitzero"`
	Problem string `json:"problem"`         // description of the fault
	Remedy  string `json:"remedy,omitzero"` // how to fix it; may be empty
	// Source is the printable source line, with one column for each character. It is empty for a
	// fault without a line, of a long line, in a file that may contain secrets, and after the first
	// MaxShownErrors faults.
	Source string `json:"-"`
}

// Error prints the fault as file:line:col: problem, the source line with a caret under the column,
// and the remedy.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Col)
	}
	b.WriteString(": " + e.Problem)
	if e.Source != "" {
		fmt.Fprintf(&b, "\n  %4d | %s\n       | %*s", e.Line, e.Source, e.Col, "^")
	}
	if e.Remedy != "" {
		b.WriteString("\n       " + e.Remedy)
	}
	return b.String()
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
