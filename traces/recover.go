package traces

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"pgfsm/internal/canonical"
	"pgfsm/internal/safefile"
	"pgfsm/policy"
	"pgfsm/states"
)

// Recovered is the result for one left-over partial file.
type Recovered struct {
	Partial string         // the partial file
	Trace   string         // the finished trace, if one was made
	Outcome states.Outcome // the run's outcome
	Err     error          // the reason why the run could not be ended; its file gets the suffix .broken
}

// Recover ends every run in dir whose process has ended. A run without a call ends as failed,
// interrupted. A run whose call was in flight ends as failed, indeterminate, and never repeats the
// call. A run that has its result is answered. Recover does not touch partial files of live
// processes. A missing folder has no runs.
func (p *Replayer) Recover(dir string, now func() string) ([]Recovered, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	var recovered []Recovered
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), "trace_") {
			continue
		}
		if strings.HasSuffix(e.Name(), partialSuffix+newSuffix) {
			removeUnnamed(filepath.Join(dir, e.Name()))
		}
		if !strings.HasSuffix(e.Name(), partialSuffix) {
			continue
		}
		r, live := p.recoverOne(dir, filepath.Join(dir, e.Name()), now)
		if !live {
			recovered = append(recovered, r)
		}
	}

	return recovered, nil
}

// removeUnnamed removes a file that never got its name, unless a process is about to name it: its
// run never began.
func removeUnnamed(path string) {
	lock := lockOf(path)
	if ok, err := lock.TryLock(); err != nil || !ok {
		return
	}
	defer lock.Unlock()

	// An empty file may be about to be locked.
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return
	}
	os.Remove(path)
}

// recoverOne ends one run; live reports that another process still owns it, or has just finished
// it.
func (p *Replayer) recoverOne(dir, path string, now func() string) (r Recovered, live bool) {
	r.Partial = path
	lock := lockOf(path)
	if ok, err := lock.TryLock(); err != nil || !ok {
		r.Err = err
		return r, err == nil || errors.Is(err, fs.ErrNotExist)
	}
	if !safefile.IsCurrent(lock, path) {
		lock.Unlock()
		return r, true
	}

	rec, run, c, err := p.reopenPartial(dir, path, lock, now)
	if errors.Is(err, errFinished) {
		// The process ended after it wrote the finished trace and before it removed this file. The
		// trace is complete.
		return r, errors.Join(os.Remove(path), lock.Unlock()) == nil
	}

	if err != nil {
		r.Err = errors.Join(err, setAside(path), lock.Unlock())
		return r, false
	}

	r.Outcome, r.Trace, err = p.finishRun(run, c, rec)
	if err != nil {
		rec.partial.Close()
		r.Err = errors.Join(err, setAside(path), lock.Unlock())
	}
	return r, false
}

// finishRun executes a recorded run again, ends it, and writes its trace. It returns the path of
// the trace.
func (p *Replayer) finishRun(run *states.Run, c *cursor, rec *Recorder) (o states.Outcome, path string, err error) {
	if o, err = p.machine.Advance(context.Background(), run, c, c); err != nil {
		return o, "", err
	}
	path, _, err = rec.Finish(o)
	return o, path, err
}

// setAside renames a file that cannot be recovered, and never replaces another file.
func setAside(path string) error {
	base := strings.TrimSuffix(path, partialSuffix) + ".broken"
	for n, name := 1, base; ; n++ {
		err := os.Link(path, name)
		if err == nil {
			return os.Remove(path)
		}
		if !errors.Is(err, fs.ErrExist) || n > maxBroken {
			return err
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
}

// maxBroken bounds how many broken files of one run are kept.
const maxBroken = 100

// errFinished means that the finished trace of a left-over partial file exists.
var errFinished = errors.New("the trace is finished")

// deadProcess is the handler after the last recorded step of a run whose process has ended.
type deadProcess struct{}

func (deadProcess) Do(context.Context, states.Command) (states.Event, error) {
	return states.Interruption(policy.CodeInterrupted, "The process that owned the run ended."), nil
}

// reopenPartial reads a partial file and makes a recorder that continues it. A last line without
// its line end was never acknowledged and is dropped.
func (p *Replayer) reopenPartial(dir, path string, lock *flock.Flock, now func() string) (*Recorder, *states.Run, *cursor,
	error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, nil, err
	}
	if info.Size() > MaxTraceBytes {
		return nil, nil, nil, fmt.Errorf("it has %d bytes; at most %d are read", info.Size(), MaxTraceBytes)
	}
	doc, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, nil, err
	}

	end := bytes.LastIndexByte(doc, '\n') + 1
	lines := bytes.Split(bytes.TrimSuffix(doc[:end], []byte{'\n'}), []byte{'\n'})
	var t Trace
	if err := canonical.Unmarshal(lines[0], &t.Header); err != nil {
		return nil, nil, nil, fmt.Errorf("the header: %w", err)
	}
	if err := checkRunID(t.Header.RunID); err != nil {
		return nil, nil, nil, fmt.Errorf("the header: %w", err)
	}
	if filepath.Base(path) != "trace_"+t.Header.RunID+partialSuffix {
		return nil, nil, nil, fmt.Errorf("the header: it is of run %s, not of this file's", t.Header.RunID)
	}
	if finished, err := os.ReadFile(filepath.Join(dir, Name(t.Header.RunID))); err == nil {
		if trace, err := Read(finished); err != nil || trace.Header.RunID != t.Header.RunID {
			return nil, nil, nil, errors.New("a trace of this run is there already, and cannot be read")
		}
		return nil, nil, nil, errFinished
	}
	if err := t.Header.Bundle.checkDigest(); err != nil {
		return nil, nil, nil, fmt.Errorf("the header: %w", err)
	}

	chained := NewChain(&t.Header)
	t.Steps = make([]Step, len(lines)-1)

	for i, line := range lines[1:] {
		if err := t.Steps[i].readLine(line, i); err != nil {
			return nil, nil, nil, err
		}
		if t.Steps[i].Prev != chained.Last() {
			return nil, nil, nil, &TamperError{Place: "step", Seq: i, What: "it was chained to another step"}
		}
		chained.Continue(i+1, t.Steps[i].Hash, t.Steps[i].At)
	}

	run, err := p.newRun(&t.Header)
	if err != nil {
		return nil, nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, fileMode)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := f.Truncate(int64(end)); err != nil {
		return nil, nil, nil, errors.Join(err, f.Close())
	}

	rec := &Recorder{
		dir:     dir,
		header:  lines[0],
		runID:   t.Header.RunID,
		now:     now,
		chain:   chained,
		partial: f,
		lock:    lock,
		steps:   doc[len(lines[0])+1 : end],
	}

	return rec, run, &cursor{
		steps:        t.Steps,
		lastAt:       t.Header.Request.At,
		decode:       p.decodeEvent,
		nextHandler:  deadProcess{},
		nextRecorder: rec,
	}, nil
}
