package eval

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"pgfsm/policy/visible"
)

// Bounds of a cases file.
const (
	MaxLineBytes = 1 << 20 // of one case, without its line end
	MaxCases     = 100_000
)

// A Reader reads the cases of a file one by one, so that a long file costs no memory but for the ids in it.
type Reader struct {
	name string
	from *bufio.Reader
	line int
	ids  map[string]int // to the line
}

// NewReader reads cases from r. name is what messages call the file.
func NewReader(name string, r io.Reader) *Reader {
	return &Reader{name: name, from: bufio.NewReaderSize(r, 64<<10), ids: make(map[string]int)}
}

// Next returns the next case, or [io.EOF] behind the last. Blank lines are passed over. Every other error is a [*Fault].
func (r *Reader) Next() (*Case, error) {
	for {
		line, err := r.read()
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if len(r.ids) >= MaxCases {
			return nil, r.fault(fmt.Sprintf("there are more than %d cases", MaxCases), "divide the file")
		}
		c, err := readCase(line)
		if err != nil {
			return nil, r.fault("the case cannot be used: "+oneLine(err), "docs/reference/evaluation-format.md says what a case has")
		}
		if first := r.ids[c.ID]; first > 0 {
			return nil, r.fault(fmt.Sprintf("the id %q stands in line %d already", clip(c.ID), first), "give each case an id of its own")
		}
		r.ids[c.ID] = r.line
		return c, nil
	}
}

// Line is where the case stands that was read last, from 1.
func (r *Reader) Line() int { return r.line }

// read returns the next line without its end.
func (r *Reader) read() ([]byte, error) {
	r.line++
	var line []byte
	for {
		part, err := r.from.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > MaxLineBytes+1 || len(line) == MaxLineBytes+1 && line[MaxLineBytes] != '\n':
			return nil, r.fault(fmt.Sprintf("the line has more than %d bytes", MaxLineBytes), "write one case a line, and a shorter one")
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		case errors.Is(err, io.EOF):
			return nil, io.EOF
		default:
			return nil, r.fault("it cannot be read: "+oneLine(err), "")
		}
	}
}

func (r *Reader) fault(problem, remedy string) error {
	return &Fault{File: r.name, Line: r.line, Problem: problem, Remedy: remedy}
}

// oneLine is the text of an error on one line, short enough for a message: it may quote what stands in the file.
func oneLine(err error) string {
	const most = 400
	return visible.Cut(strings.Join(strings.Fields(err.Error()), " "), most, "…")
}

// clip keeps quoted text of a file short enough for a sentence.
func clip(s string) string {
	const most = 80
	return visible.Cut(s, most, "…")
}
