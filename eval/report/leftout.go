package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/eval/attack"
	"pgfsm/eval/endtoend"
	"pgfsm/eval/gates"
)

// Bounds of what is looked at to find results among the files of a folder.
const (
	PeekBytes  = 4 << 10 // of one file: its format must be named within them
	maxLeftOut = 10      // files that are named because they were not taken; more are counted
)

// A kind is what a file holds, by its beginning.
type kind int

const (
	kindNone kind = iota // nothing that this package knows
	kindAttack
	kindMetrics
	kindGates
)

// Why files are not taken.
var (
	errNoResult = errors.New("it does not begin as results of an evaluation do")
	errName     = map[kind]error{ // looked up, never ranged over
		kindMetrics: errors.New("results of end to end runs are taken from files that are named TIME_metrics.json, as pgfsm eval e2e names them"),
		kindGates:   errors.New("results of the gates alone are taken from the file that is named " + gatesName),
	}
	errIrregular = errors.New("it is not a regular file, and links are not followed")
)

// peek says what a file holds. It reads no more than its beginning, and takes a file of another version of a format for one
// of that kind: who reads it says what is wrong with it.
func peek(dir, name string) (kind, error) {
	path := filepath.Join(dir, name)
	info, err := os.Lstat(path) // before it is opened: opening a pipe waits for a writer
	if err != nil {
		return kindNone, errors.New("it cannot be read")
	}
	if !info.Mode().IsRegular() {
		return kindNone, errIrregular
	}
	f, err := os.Open(path)
	if err != nil {
		return kindNone, errors.New("it cannot be read")
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, PeekBytes))
	if err != nil {
		return kindNone, errors.New("it cannot be read")
	}
	return kindOf(head), nil
}

// kindOf says what begins with these bytes. It is not strict: a document with mistakes is of the kind that it says, and is
// refused when it is read.
func kindOf(head []byte) kind {
	dec := jsontext.NewDecoder(bytes.NewReader(head), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return kindNone
	}
	for first := true; dec.PeekKind() == '"'; first = false {
		t, err := dec.ReadToken()
		if err != nil {
			return kindNone
		}
		name := t.String()
		if first && slices.Contains(gates.Names(), name) {
			return kindGates
		}
		if name != "format" {
			if dec.SkipValue() != nil {
				return kindNone
			}
			continue
		}
		if t, err = dec.ReadToken(); err != nil || t.Kind() != '"' {
			return kindNone
		}
		switch withoutVersion(t.String()) {
		case withoutVersion(attack.Format):
			return kindAttack
		case withoutVersion(endtoend.Format):
			return kindMetrics
		}
		return kindNone
	}
	return kindNone
}

func withoutVersion(format string) string {
	name, _, _ := strings.Cut(format, "/")
	return name
}

// leave notes a file that is not taken, so that it is not left out in silence.
func (r *Results) leave(name string, why error) {
	if r.left++; r.left <= maxLeftOut {
		r.leftOut = append(r.leftOut, fmt.Sprintf("%s was not taken: %v", show(name), why))
	}
}

// notTaken names the JSON files of the folder that are not on the page.
func (r *Results) notTaken() []string {
	if more := r.left - len(r.leftOut); more > 0 {
		return append(slices.Clone(r.leftOut), plural(more, "more JSON file was not taken", "more JSON files were not taken"))
	}
	return r.leftOut
}
