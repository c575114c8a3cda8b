package traces

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
	"pgfsm/states"
)

// fromLedger names the commands that write the traces of a ledger.
const fromLedger = "the traces of a ledger are written by pgfsm ledger trace RUN -o FILE, or pgfsm ledger trace --all -o FOLDER"

// Files returns the trace files among paths, sorted. A path is a file, or a folder: then its traces
// are the *.json files in it and below that have the name or the format of a trace, or that begin
// as one. A folder without traces is an error.
func Files(paths []string) (files []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%w; %s", err, fromLedger)
		case err != nil:
			return nil, err
		}

		if !info.IsDir() {
			files = append(files, path)
			continue
		}

		count := len(files)
		err = filepath.WalkDir(path, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), ".json") {
				return err
			}
			found := IsName(e.Name())
			if !found {
				found, err = seemsTrace(path)
			}
			if found {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(files) == count {
			return nil, fmt.Errorf("%s holds no trace: no *.json in it has the format %q; %s", path, Format, fromLedger)
		}
	}

	slices.Sort(files)
	return slices.Compact(files), nil
}

// IsName reports whether a file has the name of a finished trace.
func IsName(name string) bool {
	return strings.HasPrefix(name, "trace_") && strings.HasSuffix(name, ".json")
}

// seemsTrace reports whether a file has the format of a trace or begins as one: a damaged trace may
// not have its format any more.
func seemsTrace(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	reader := bufio.NewReader(f)
	start, err := reader.Peek(64)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	start = bytes.TrimLeft(bytes.TrimPrefix(bytes.TrimLeft(start, space), []byte(utf8Mark)), space)
	if bytes.HasPrefix(start, []byte(`{"bundle":`)) {
		return true, nil
	}
	format, _ := formatOf(reader)
	return format == Format, nil
}

const (
	space    = " \t\r\n"
	utf8Mark = "\ufeff" // the byte order mark of UTF-8; no JSON document begins with it
)

// formatOf returns the format that the top level of a JSON object names, or an empty format if it
// names none. The error is set if the document cannot be read up to the format.
func formatOf(doc io.Reader) (string, error) {
	dec := jsontext.NewDecoder(doc, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return "", err
	}
	for {
		name, err := dec.ReadToken()
		if err != nil || name.Kind() != '"' {
			return "", err
		}
		if name.String() != "format" {
			if err := dec.SkipValue(); err != nil {
				return "", err
			}
			continue
		}
		format, err := dec.ReadToken()
		if err != nil || format.Kind() != '"' {
			return "", err
		}
		return format.String(), nil
	}
}

// ReadFile reads a finished trace from a regular file, as [Read] does. If the file is another
// document, the error says which kind.
func ReadFile(path string) (*Trace, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > MaxTraceBytes:
		return nil, fmt.Errorf("%s has %d bytes; a trace has at most %d", path, info.Size(), MaxTraceBytes)
	}

	doc, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if what := otherDocument(doc); what != "" {
		return nil, fmt.Errorf("%s: not a trace: %s", path, what)
	}

	t, err := Read(doc)
	if err == nil {
		return t, nil
	}

	_, syntax := jsontext.NewDecoder(bytes.NewReader(doc), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true)).ReadValue()
	if errors.Is(syntax, io.ErrUnexpectedEOF) {
		err = errors.New("not a trace: it ends too early")
	}

	return nil, fmt.Errorf("%s: %w", path, err)
}

// checkpoint is the body of a checkpoint: the origin, the size and the root.
var checkpoint = regexp.MustCompile(`^.+\n[0-9]+\n[0-9A-Za-z+/]{43}=\n`)

// otherDocument describes a document that is not a trace; it returns an empty text if the top level
// has the format of a trace.
func otherDocument(doc []byte) string {
	format, err := formatOf(bytes.NewReader(doc))
	first, _, _ := bytes.Cut(doc, []byte("\n"))
	begins := func(with string) bool { return bytes.HasPrefix(doc, []byte(with)) }

	switch {
	case err == nil && format == Format:
		return ""
	case begins("SQLite format 3\x00"):
		return "it is an SQLite file; if it is a ledger, pgfsm ledger verify checks it, and " + fromLedger
	case begins(`{"body":{"by":`), begins(`{"hash":"`) && bytes.Contains(first, []byte(`,"index":`)), begins(`{"blob":"sha256:`):
		return "it is an export of a ledger: " + fromLedger
	case bytes.Contains(doc, []byte(`"pgfsm.attack/v1"`)):
		return "it is a result of pgfsm-eval: pgfsm-eval report shows it"
	case checkpoint.Match(doc):
		return "it is a checkpoint: pgfsm ledger verify --checkpoint compares it"
	case begins(utf8Mark), begins("\xff\xfe"), begins("\xfe\xff"):
		return "not JSON: it begins with a byte order mark"
	case begins("\x1f\x8b"):
		return "it is compressed with gzip"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "it ends too early"
	case err != nil:
		return "not JSON: " + err.Error()
	case format == "":
		return "it names no format"
	}

	return fmt.Sprintf("its format is %q", visible.Clip(format, 200))
}

// The codes of [Checked].
const (
	CodeTampered   = "trace_tampered"
	CodeUnreadable = "trace_unreadable"
)

// Checked is the result of executing a trace file again.
type Checked struct {
	Path  string `json:"path"`
	RunID string `json:"run_id,omitzero"`
	OK    bool   `json:"ok"`
	// [CodeTampered], [CodeUnreadable], or that of a [DivergenceError].
	Code        string       `json:"code,omitzero"`
	Error       string       `json:"error,omitzero"`
	Note        string       `json:"note,omitzero"`
	Transitions []Transition `json:"transitions"` // up to the first difference
}

// A Transition is one step of a trace whose execution matched the record.
type Transition struct {
	Seq     int    `json:"seq"`
	From    string `json:"from"`
	Trigger string `json:"trigger"`
	To      string `json:"to"`
}

// ErrHead means that a trace does not have the head that the caller expects.
var ErrHead = errors.New("the head differs: this is another trace, or a rewritten one")

// CheckFile reads a trace from a file and executes it again. head is the head that the trace must
// have; empty: any. CheckFile returns a nil trace if the file cannot be read, and a nil run if the
// trace was not executed.
func (p *Replayer) CheckFile(path string, head canonical.Digest) (c Checked, t *Trace, run *states.Run) {
	c.Path = filepath.ToSlash(path)
	t, err := ReadFile(path)
	switch {
	case err != nil:
	case head != "" && t.Head != head:
		err = fmt.Errorf("%w: it is %s", ErrHead, t.Head)
	default:
		run, err = p.Replay(t)
	}

	if t != nil {
		c.RunID = t.Header.RunID
		if !p.SameMachine(t) {
			c.Note = "recorded with another transition table"
		}
	}

	if run != nil {
		for _, s := range t.Steps[:min(len(run.Trail())-1, len(t.Steps))] {
			c.Transitions = append(c.Transitions, Transition{s.Seq, string(s.From), string(s.Trigger), string(s.To)})
		}
	}

	var diverged *DivergenceError
	switch {
	case err == nil:
		c.OK = true
		return c, t, run
	case errors.As(err, &diverged):
		c.Code, err = diverged.Code(), diverged // without the errors around it
	case errors.Is(err, ErrTampered), errors.Is(err, ErrHead):
		c.Code = CodeTampered
	default:
		c.Code = CodeUnreadable
	}

	c.Error = strings.TrimPrefix(err.Error(), c.Code+": ")
	return c, t, run
}
