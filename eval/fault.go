package eval

import "fmt"

// A Fault is a mistake in a file of an evaluation, with its place and a remedy.
type Fault struct {
	File    string
	Line    int // the line, from 1; 0 when the fault is the file as a whole
	Problem string
	Remedy  string // may be empty
}

func (f *Fault) Error() string {
	position := f.File
	if f.Line > 0 {
		position = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	if f.Remedy == "" {
		return position + ": " + f.Problem
	}
	return position + ": " + f.Problem + "; " + f.Remedy
}
