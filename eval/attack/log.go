package attack

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/gofrs/flock"

	"pgfsm/eval"
	"pgfsm/policy/canonical"
)

// MaxLogLine bounds one line of a log, in bytes: a unit has at most [eval.MaxCalls] calls, each in every arm.
const MaxLogLine = 8 << 20

// A Log keeps what came of each unit on disk, so that a run of many cases that was interrupted goes on where it was. It holds
// the places of the lines in memory and not the lines. One goroutine uses it.
type Log struct {
	path  string
	lock  *flock.Flock
	build string
	f     *os.File
	at    map[canonical.Digest]place
	order []canonical.Digest // as units were asked for or put
	end   int64
}

type place struct {
	from   int64
	length int
}

// logStart begins every line of a log.
const logStart = `{"digest":"sha256:`

// OpenLog opens the log at path: as it is if it is to be resumed, and otherwise to be written anew. A last line that was not
// written to its end is taken off; any other line that is none is an error. A file that is no log is refused in both cases, for
// it may be somebody's cases. Nothing is written before [Run] has read all cases.
func OpenLog(path string, resume bool) (*Log, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &eval.Fault{File: filepath.ToSlash(path), Problem: "it is not a regular file", Remedy: "name another result with -o"}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	l := &Log{path: path, f: f, at: make(map[canonical.Digest]place), lock: flock.New(path, flock.SetFlag(os.O_RDWR))}
	held, err := l.lock.TryLock() // two at once would write into each other's lines
	if err == nil && !held {
		err = &eval.Fault{File: filepath.ToSlash(path), Problem: "another evaluation writes it", Remedy: "wait for it, or name another result with -o"}
	}
	if err == nil {
		err = l.isLog()
	}
	if err == nil && resume {
		err = l.read()
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// isLog refuses a file that begins as no log does, as far as it goes.
func (l *Log) isLog() error {
	start := make([]byte, len(logStart))
	n, err := l.f.ReadAt(start, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if string(start[:n]) != logStart[:n] {
		return l.fault(1, "it does not begin as a log of cases")
	}
	return nil
}

// fault is about a line of the file.
func (l *Log) fault(line int, problem string) error {
	return &eval.Fault{
		File: filepath.ToSlash(l.path), Line: line, Problem: problem,
		Remedy: "what came of each case is kept beside the result: name another result with -o, or remove the file",
	}
}

// begin takes off what is not to be resumed. What another build of the program found is as good as nothing.
func (l *Log) begin(build string) error {
	l.build = build
	return l.f.Truncate(l.end)
}

// key names what a build finds of a unit.
func (l *Log) key(unit canonical.Digest) (canonical.Digest, error) {
	return canonical.SumOf("evaluation log", struct {
		Build string           `json:"build"`
		Unit  canonical.Digest `json:"unit"`
	}{l.build, unit})
}

// read finds the lines of an earlier run.
func (l *Log) read() error {
	from := bufio.NewReaderSize(l.f, 64<<10)
	for n := 1; ; n++ {
		line, err := readLine(from)
		if errors.Is(err, io.EOF) {
			return nil // what stands behind the last line end was not written to its end
		}
		var u *unitOutcome
		if err == nil {
			u, err = readOutcome(line)
		}
		if err != nil {
			return l.fault(n, "it is no line of a log of cases: "+err.Error())
		}
		l.at[u.Digest] = place{l.end, len(line)}
		l.end += int64(len(line)) + 1
	}
}

// readLine reads a line and takes its end off. Without a line end it is [io.EOF].
func readLine(from *bufio.Reader) (line []byte, err error) {
	for {
		part, err := from.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > MaxLogLine:
			return nil, fmt.Errorf("it has more than %d bytes", MaxLogLine)
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func readOutcome(line []byte) (*unitOutcome, error) {
	if err := canonical.Check(line, 0); err != nil {
		return nil, err
	}
	u := new(unitOutcome)
	if err := canonical.Unmarshal(line, u); err != nil {
		return nil, err
	}
	_, err := canonical.ParseDigest(string(u.Digest))
	return u, err
}

// get returns what an earlier run found of a unit, or nil. A line that is not about exactly the unit is as good as none.
func (l *Log) get(of *unit, arms, rows int) (*unitOutcome, error) {
	key, err := l.key(of.digest)
	if err != nil {
		return nil, err
	}
	p, ok := l.at[key]
	if !ok {
		return nil, nil
	}
	line := make([]byte, p.length)
	if _, err := l.f.ReadAt(line, p.from); err != nil {
		return nil, fmt.Errorf("%s: %w", l.path, err)
	}
	u, err := readOutcome(line)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.path, err)
	}
	if u.Digest != key || !u.fits(len(of.calls()), arms, rows) {
		return nil, nil
	}
	u.Digest = of.digest
	return u, nil
}

// fits reports whether an outcome has the shape of one: anybody may have written in the file.
func (u *unitOutcome) fits(calls, arms, rows int) bool {
	if len(u.Arms) != arms {
		return false
	}
	for _, a := range u.Arms {
		if len(a.Calls) != calls {
			return false
		}
		for _, r := range a.Rows {
			if r[0] < 0 || r[0] >= rows || r[1] < 1 {
				return false
			}
		}
	}
	return true
}

// put appends what came of a unit.
func (l *Log) put(u *unitOutcome) error {
	key, err := l.key(u.Digest)
	if err != nil {
		return err
	}
	kept := *u
	kept.Digest = key
	line, err := json.Marshal(&kept, json.Deterministic(true))
	if err != nil {
		return err
	}
	if _, err := l.f.WriteAt(append(line, '\n'), l.end); err != nil {
		return err
	}
	l.at[key] = place{l.end, len(line)}
	l.end += int64(len(line)) + 1
	return nil
}

// use says that a unit is part of the run, in order.
func (l *Log) use(unit canonical.Digest) error {
	key, err := l.key(unit)
	l.order = append(l.order, key)
	return err
}

// finish writes the log anew with the lines that the run used and no others, in the order of the cases. So it is the same
// whether the run was interrupted or not.
func (l *Log) finish() (err error) {
	next, err := os.CreateTemp(filepath.Dir(l.path), filepath.Base(l.path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(next.Name()))
		}
	}()
	out := bufio.NewWriter(next)
	for _, d := range l.order {
		p := l.at[d]
		if _, err := io.Copy(out, io.NewSectionReader(l.f, p.from, int64(p.length)+1)); err != nil {
			return errors.Join(err, next.Close())
		}
	}
	info, err := l.f.Stat() // made with the rights that the user's umask leaves
	if err != nil {
		return errors.Join(err, next.Close())
	}
	if err := errors.Join(out.Flush(), next.Chmod(info.Mode().Perm()), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), l.path)
}

// Close closes the log. What was put stays.
func (l *Log) Close() error { return errors.Join(l.f.Close(), l.lock.Close()) }
