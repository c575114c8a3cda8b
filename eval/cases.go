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

// ReadCases reads the cases of a file, one a line, and skips blank lines. name is what messages call the file. The error is a
// [*Fault].
func ReadCases(name string, r io.Reader) (all []*Case, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxLineBytes+1)
	lineOf := make(map[string]int) // the lines of cases by id
	at := 0
	fault := func(problem, remedy string) ([]*Case, error) {
		return nil, &Fault{File: name, Line: at, Problem: problem, Remedy: remedy}
	}
	for lines.Scan() {
		at++
		line := lines.Bytes()
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		c, err := readCase(line)
		if err != nil {
			return fault("the case cannot be used: "+oneLine(err), "docs/reference/evaluation-format.md says what a case has")
		}
		if first := lineOf[c.ID]; first > 0 {
			return fault(fmt.Sprintf("line %d has the id %q already", first, clip(c.ID)), "give each case an id of its own")
		}
		lineOf[c.ID] = at
		all = append(all, c)
	}
	at++
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fault(fmt.Sprintf("the line has more than %d bytes", MaxLineBytes), "write one case a line, and a shorter one")
	case err != nil:
		return fault("it cannot be read: "+oneLine(err), "")
	}
	return all, nil
}

// oneLine is the text of an error on one line, short enough for a message: it may quote the file.
func oneLine(err error) string {
	const most = 400
	return visible.Cut(strings.Join(strings.Fields(err.Error()), " "), most, "…")
}

// clip keeps quoted text of a file short enough for a sentence.
func clip(s string) string {
	const most = 80
	return visible.Cut(s, most, "…")
}
