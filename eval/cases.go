package eval

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"pgfsm/internal/visible"
)

// MaxLineBytes bounds one case, without its line end.
const MaxLineBytes = 1 << 20

// ReadCases reads the cases of a file. name is what messages call the file. The error is a
// [*Fault].
func ReadCases(name string, r io.Reader) (cases []*Case, err error) {
	err = ReadLines(name, r, "docs/reference/evaluation-format.md says what a case has",
		func(line []byte) (string, error) {
			c, err := readCase(line)
			if err != nil {
				return "", err
			}
			cases = append(cases, c)
			return c.ID, nil
		})
	if err != nil {
		return nil, err
	}
	return cases, nil
}

// ReadLines decodes a file of cases, one a line, and skips blank lines. decode returns the case's
// id, which is unique in the file. remedy says what a case has. The error is a [*Fault].
func ReadLines(name string, r io.Reader, remedy string, decode func(line []byte) (id string, err error)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxLineBytes+1)
	lineOf := make(map[string]int) // the lines of cases by id
	number := 0
	fault := func(problem, remedy string) error {
		return &Fault{File: name, Line: number, Problem: problem, Remedy: remedy}
	}

	for lines.Scan() {
		number++
		line := lines.Bytes()
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		id, err := decode(line)
		if err != nil {
			return fault("the case cannot be used: "+oneLine(err), remedy)
		}
		if first := lineOf[id]; first > 0 {
			return fault(fmt.Sprintf("line %d has the id %q already", first, clipText(id)),
				"give each case an id of its own")
		}
		lineOf[id] = number
	}

	number++
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fault(fmt.Sprintf("the line has more than %d bytes", MaxLineBytes),
			"write one case a line, and a shorter one")
	case err != nil:
		return fault("it cannot be read: "+oneLine(err), "")
	case len(lineOf) == 0:
		return fault("it has no case", "")
	}

	return nil
}

// oneLine is the text of an error on one line, short enough for a message: it may quote the file.
func oneLine(err error) string {
	const most = 400
	return visible.Cut(strings.Join(strings.Fields(err.Error()), " "), most, "…")
}

// clipText keeps quoted text of a file short enough for a sentence.
func clipText(s string) string {
	const most = 80
	return visible.Cut(s, most, "…")
}
