package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"pgfsm/policy/canonical"
	"pgfsm/policy/visible"
	"pgfsm/states"
	"pgfsm/traces"
)

type replayOptions struct {
	head string
	json bool
	all  bool
	jobs int
}

func newReplay(w world) *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay TRACE...",
		Short: "Execute traces again and name the first difference",
		Long: `replay reads each trace: a file, or every *.json in a folder and below whose format is pgfsm.trace/v1 or which begins
as a trace does. It verifies the hash chain, and runs the machine again with the recorded answers. It opens no socket and
writes no file. Exit code 1 if any trace was tampered with or diverges, 2 if one cannot be read.`,
		Example: `  pgfsm replay traces
  pgfsm replay --head sha256:... traces/trace_RUN.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return replay(cmd.Context(), w, o, args) },
	}
	cmd.Flags().StringVar(&o.head, "head", "", "the head that the trace must have (one trace only)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	cmd.Flags().BoolVarP(&o.all, "verbose", "v", false, "print every transition of every trace")
	cmd.Flags().IntVar(&o.jobs, "jobs", runtime.GOMAXPROCS(0), "how many traces in parallel")
	return cmd
}

// replayed is what became of one trace.
type replayed struct {
	Path        string       `json:"path"`
	RunID       string       `json:"run_id,omitzero"`
	OK          bool         `json:"ok"`
	Code        string       `json:"code,omitzero"`
	Error       string       `json:"error,omitzero"`
	Note        string       `json:"note,omitzero"`
	Transitions []transition `json:"transitions"`
	exit        int
}

type transition struct {
	Seq     int    `json:"seq"`
	From    string `json:"from"`
	Trigger string `json:"trigger"`
	To      string `json:"to"`
}

func replay(ctx context.Context, w world, o replayOptions, args []string) error {
	paths, err := traceFiles(args)
	if err != nil {
		return err
	}
	if o.head != "" {
		if _, err := canonical.ParseDigest(o.head); err != nil {
			return fmt.Errorf("--head: %w", err)
		}
		if len(paths) != 1 {
			return fmt.Errorf("--head names one trace's head, and there are %d traces", len(paths))
		}
	}
	m, err := states.NewMachine()
	if err != nil {
		return err
	}
	bar := newBar(w, "replaying", len(paths))
	all := make([]replayed, len(paths))
	replayer := traces.NewReplayer(m, nil)
	each(max(1, o.jobs), len(paths), func(i int) {
		if ctx.Err() == nil {
			all[i] = replayOne(replayer, paths[i], canonical.Digest(o.head))
			bar.Add(1)
		}
	})
	bar.Finish()
	if err := ctx.Err(); err != nil {
		return err
	}
	return reportReplay(w, o, all)
}

// each calls do for 0..n-1 from a few goroutines.
func each(workers, n int, do func(int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

func replayOne(p *traces.Replayer, path string, head canonical.Digest) replayed {
	r := replayed{Path: filepath.ToSlash(path)}
	t, err := readTrace(path)
	if err == nil && head != "" && t.Head != head {
		err = fmt.Errorf("%w: it is %s", traces.ErrHead, t.Head)
	}
	if t != nil {
		r.RunID = t.Header.RunID
		if !p.SameMachine(t) {
			r.Note = "recorded with another transition table"
		}
	}
	if err == nil {
		var run *states.Run
		run, err = p.Replay(t)
		r.Transitions = again(t, run)
	}
	var diverged *traces.DivergenceError
	switch {
	case err == nil:
		r.OK = true
		return r
	case errors.As(err, &diverged):
		r.Code, r.exit = diverged.Code(), exitNo
		err = diverged // without the words of the loop that it stopped
	case errors.Is(err, traces.ErrTampered), errors.Is(err, traces.ErrHead):
		r.Code, r.exit = "trace_tampered", exitNo
	default:
		r.Code, r.exit = "trace_unreadable", exitCould
	}
	r.Error = strings.TrimPrefix(err.Error(), r.Code+": ")
	return r
}

// again lists the transitions that came out as recorded. Today's machine fired them, so their names are its own.
func again(t *traces.Trace, run *states.Run) []transition {
	if run == nil {
		return nil
	}
	var list []transition
	for _, s := range t.Steps[:min(len(run.Trail())-1, len(t.Steps))] {
		list = append(list, transition{s.Seq, string(s.From), string(s.Trigger), string(s.To)})
	}
	return list
}

// reportReplay prints what came of all traces and ends with the gravest answer: tampered or diverged before unreadable.
func reportReplay(w world, o replayOptions, all []replayed) error {
	code, bad := exitYes, 0
	for _, r := range all {
		if r.OK {
			continue
		}
		bad++
		if r.exit == exitNo || code == exitYes {
			code = r.exit
		}
	}
	if o.json {
		err := printJSON(w.stdout, struct {
			SchemaVersion int        `json:"schema_version"`
			OK            bool       `json:"ok"`
			Traces        []replayed `json:"traces"`
		}{schemaVersion, bad == 0, all})
		if err != nil {
			return err
		}
		return exit(code)
	}
	k := newInk(w)
	for _, r := range all {
		fmt.Fprintf(w.stdout, "%s %s\n", k.mark(r.OK), visible.Text(r.Path))
		if len(all) == 1 || !r.OK || o.all {
			for _, t := range r.Transitions {
				fmt.Fprintf(w.stdout, "  %2d %s --%s--> %s\n", t.Seq, t.From, t.Trigger, t.To)
			}
		}
		if r.Note != "" {
			fmt.Fprintf(w.stdout, "  note: %s\n", r.Note)
		}
		if !r.OK {
			fmt.Fprintf(w.stdout, "  %s\n", visible.Text(r.Code+": "+r.Error))
		}
	}
	fmt.Fprintf(w.stdout, "%d replayed alike, %d not\n", len(all)-bad, bad)
	return exit(code)
}

// traceFiles finds the traces that the arguments name. A folder without any is an error: nothing that was checked is
// not the same as nothing that was wrong.
func traceFiles(args []string) ([]string, error) {
	var paths []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%w; %s", err, fromLedger)
		case err != nil:
			return nil, err
		}
		if !info.IsDir() {
			paths = append(paths, arg)
			continue
		}
		found := len(paths)
		err = filepath.WalkDir(arg, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), ".json") {
				return err
			}
			ours := isTrace(e.Name())
			if !ours {
				ours, err = fileSaysTrace(path)
			}
			if ours {
				paths = append(paths, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(paths) == found {
			return nil, fmt.Errorf("%s holds no trace: no *.json in it has the format %q; %s", arg, traces.Format, fromLedger)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// fromLedger is how the traces of a ledger are had.
const fromLedger = "the traces of a ledger are written by pgfsm ledger trace RUN -o FILE, or pgfsm ledger trace --all -o FOLDER"

func fileSaysTrace(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	begins := make([]byte, 64)
	n, err := io.ReadFull(f, begins)
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return false, err
	case beginsTrace(begins[:n]):
		return true, nil
	}
	return saysTrace(io.MultiReader(bytes.NewReader(begins[:n]), f)), nil
}

// utf8Mark is the byte order mark of UTF-8, with which no JSON document begins.
const utf8Mark = "\ufeff"

// beginsTrace reports whether a document begins as every trace does. So a damaged trace counts as one, although its format
// stands behind its large first member.
func beginsTrace(doc []byte) bool {
	doc = bytes.TrimLeft(bytes.TrimPrefix(bytes.TrimLeft(doc, " \t\r\n"), []byte(utf8Mark)), " \t\r\n")
	return bytes.HasPrefix(doc, []byte(`{"bundle":`))
}

// saysTrace reports whether the top level of a JSON document says that it is a trace.
func saysTrace(doc io.Reader) bool {
	format, _ := formatOf(doc)
	return format == traces.Format
}

// formatOf is the format that the top level of a JSON object names, "" if it names none, or why the document cannot be read up
// to there.
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

// notTrace says what a document is that cannot be a trace; "" if its top level says that it is one.
func notTrace(doc []byte) string {
	format, err := formatOf(bytes.NewReader(doc))
	switch what := otherDocument(doc); {
	case err == nil && format == traces.Format:
		return ""
	case what != "":
		return what
	case bytes.HasPrefix(doc, []byte(utf8Mark)), bytes.HasPrefix(doc, []byte("\xff\xfe")), bytes.HasPrefix(doc, []byte("\xfe\xff")):
		return "not JSON: it begins with a byte order mark"
	case bytes.HasPrefix(doc, []byte("\x1f\x8b")):
		return "it is compressed with gzip"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "it ends too early"
	case err != nil:
		return "not JSON: " + err.Error()
	case format == "":
		return "it names no format"
	case format == traces.TaskFormat:
		return "it counts the calls of a task"
	}
	return fmt.Sprintf("its format is %q", visible.Clip(format, maxTold))
}

// otherDocument names a document of ours that is no trace, and the command for it; "" if it is none.
func otherDocument(doc []byte) string {
	first, _, _ := bytes.Cut(doc, []byte("\n"))
	switch {
	case bytes.HasPrefix(doc, []byte("SQLite format 3\x00")):
		return "it is an SQLite file; if it is a ledger, pgfsm ledger verify checks it, and " + fromLedger
	case bytes.Contains(first, []byte(`"payload":`)) && bytes.Contains(first, []byte(`"prev":`)):
		return "it is an export of a ledger: " + fromLedger
	case bytes.Contains(doc, []byte(`"pgfsm.attack/v1"`)):
		return "it is a result of pgfsm eval: pgfsm eval report shows it"
	case bytes.HasPrefix(doc, []byte("pgfsm.ledger/v1")):
		return "it is a checkpoint: pgfsm ledger verify --checkpoint compares it"
	}
	return ""
}

// isTrace reports whether a file is called as finished traces are.
func isTrace(name string) bool {
	return strings.HasPrefix(name, "trace_") && strings.HasSuffix(name, ".json")
}

// readTrace reads a finished trace from a file.
func readTrace(path string) (*traces.Trace, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if info.Size() > traces.MaxTraceBytes {
		return nil, fmt.Errorf("%s has %d bytes; a trace has at most %d", path, info.Size(), traces.MaxTraceBytes)
	}
	doc, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if what := notTrace(doc); what != "" {
		return nil, fmt.Errorf("%s: not a trace: %s", path, what)
	}
	t, err := traces.Read(doc)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, unfinished(doc, err))
	}
	return t, nil
}

// unfinished says of a document that cannot be read as a trace that it ends too early, if it does.
func unfinished(doc []byte, err error) error {
	_, syntax := jsontext.NewDecoder(bytes.NewReader(doc), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)).ReadValue()
	if errors.Is(syntax, io.ErrUnexpectedEOF) {
		return errors.New("not a trace: it ends too early")
	}
	return err
}
