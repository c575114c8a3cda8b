package traces

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gofrs/flock"

	"pgfsm/internal/canonical"
	"pgfsm/internal/safefile"
	"pgfsm/states"
)

// Modes of files and folders: traces contain results of tools, so only the operator may read them.
const (
	fileMode = 0o600
	dirMode  = 0o700
)

const (
	partialSuffix = ".partial"
	newSuffix     = ".new"
)

// A Recorder writes the record of one run to a folder. It implements [states.Recorder].
type Recorder struct {
	dir     string
	header  []byte
	runID   string
	now     func() string
	chain   *Chain
	partial *os.File
	lock    *flock.Flock
	steps   []byte // the lines so far, each with its end
}

// Create starts the record of a run in dir, which it makes if necessary. now returns the time of a
// step, as RFC 3339 in UTC. The error names the file and what to do about it.
func Create(dir string, h Header, now func() string) (*Recorder, error) {
	if err := checkRunID(h.RunID); err != nil {
		return nil, err
	}
	header := h.canonicalForm()
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, fmt.Errorf("the traces folder cannot be made: %w (set traces.dir or SAFE_TRACE_DIR)", err)
	}
	r := &Recorder{dir: dir, header: header, runID: h.RunID, now: now, chain: NewChain(&h)}
	if err := r.createPartial(); err != nil {
		return nil, fmt.Errorf("the trace cannot be written: %w (set traces.dir or SAFE_TRACE_DIR)", adviseIfFull(err))
	}
	return r, nil
}

// createPartial makes the partial file. The file gets its name only once it is locked and has its
// header, so that no other process treats it as left over. A file that never got its name belongs
// to a run that never began.
func (r *Recorder) createPartial() error {
	final := r.partialPath()
	early := final + newSuffix
	f, err := os.OpenFile(early, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, fileMode)
	if err != nil {
		return err
	}
	r.partial, r.lock = f, lockOf(early)
	if err := r.nameFile(early, final); err != nil {
		return errors.Join(err, r.closePartial(), os.Remove(early))
	}
	return nil
}

// nameFile locks the early file, writes the header, and gives the file its final name.
func (r *Recorder) nameFile(early, final string) error {
	// [Replayer.Recover] may hold the lock for a moment, to look at the file.
	if err := r.lock.Lock(); err != nil {
		return err
	}
	if err := r.writeLine(append(r.header, '\n'), true); err != nil {
		return err
	}
	if err := os.Rename(early, final); err != nil {
		return err
	}
	return syncDir(r.dir) // a call in flight must not lose the name under which it is recorded
}

func (r *Recorder) partialPath() string { return filepath.Join(r.dir, "trace_"+r.runID+partialSuffix) }

// lockOf returns the lock of an existing file. It does not create the file: a lock must never
// recreate a file that was finished and removed.
func lockOf(path string) *flock.Flock { return flock.New(path, flock.SetFlag(os.O_RDWR)) }

// Append records a step with the guarantees of [states.Recorder].
func (r *Recorder) Append(_ context.Context, s states.Step) error {
	step := r.chain.Link(s, r.now())
	line := append(step.canonicalLine(), '\n')
	r.steps = append(r.steps, line...)
	return r.writeLine(line, s.On == states.Dispatch || s.On == states.Hold)
}

// writeLine writes one line to the partial file and, where it must be durable, flushes it to disk.
func (r *Recorder) writeLine(b []byte, durable bool) error {
	if _, err := r.partial.Write(b); err != nil {
		return adviseIfFull(err)
	}
	if !durable {
		return nil
	}
	return adviseIfFull(flush(r.partial))
}

// adviseIfFull adds advice to the error if the disk is full.
func adviseIfFull(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: make room in the traces folder; nothing is called without a record", err)
	}
	return err
}

// Finish replaces the partial file by the finished document, and returns the document's path and
// head.
func (r *Recorder) Finish(o states.Outcome) (path string, h canonical.Digest, err error) {
	outcome := canonical.MustSorted(o)
	h = headOf(r.chain.Last(), outcome)
	path = filepath.Join(r.dir, Name(r.runID))
	doc, err := safefile.NewPending(path, fileMode)
	if err != nil {
		return "", "", fmt.Errorf("the trace cannot be written: %w", err)
	}
	defer doc.Cleanup()
	w := bufio.NewWriter(doc)
	writeDocument(w, r.header, bytes.Split(bytes.TrimSuffix(r.steps, []byte{'\n'}), []byte{'\n'}), outcome, h)
	if err := w.Flush(); err != nil {
		return "", "", adviseIfFull(err)
	}
	if err := doc.CloseAtomicallyReplace(); err != nil {
		return "", "", adviseIfFull(err)
	}
	return path, h, errors.Join(syncDir(r.dir), os.Remove(r.partialPath()), r.closePartial())
}

// writeDocument writes the canonical parts of a trace as one document. The caller checks w for
// errors.
func writeDocument(w io.Writer, header []byte, lines [][]byte, outcome []byte, h canonical.Digest) {
	w.Write(header[:len(header)-1])
	io.WriteString(w, `,"steps":[`)
	for i, line := range lines {
		if i > 0 {
			io.WriteString(w, ",")
		}
		io.WriteString(w, "\n")
		w.Write(line)
	}
	io.WriteString(w, "\n],\"outcome\":")
	w.Write(outcome)
	fmt.Fprintf(w, ",\"head\":%q}\n", h)
}

// Abandon closes and unlocks the partial file and leaves it for [Replayer.Recover].
func (r *Recorder) Abandon() error { return r.closePartial() }

func (r *Recorder) closePartial() error { return errors.Join(r.partial.Close(), r.lock.Unlock()) }

// flush writes a file, or the names in a folder, to the disk. It is a variable so that a test can
// observe it.
var flush = (*os.File).Sync

// syncDir makes a rename durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := flush(d); err != nil && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
