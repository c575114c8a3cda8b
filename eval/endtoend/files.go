package endtoend

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gofrs/flock"

	"pgfsm/internal/canonical"
	"pgfsm/internal/safefile"
)

// Names of the files of an evaluation, behind the time of its start.
const (
	runsSuffix    = "_runs.jsonl"
	metricsSuffix = "_metrics.json"
	tableSuffix   = "_table.md"
	tracesSuffix  = "_traces"

	stampForm = "20060102T150405Z" // UTC, the basic form of ISO 8601
	maxStamps = 100                // evaluations that begin in one second in one folder

	fileMode = 0o600
	dirMode  = 0o700

	maxRunsBytes = 1 << 30 // of a file that is resumed
)

// A Header is the first line of a file of runs: what is evaluated. Only an evaluation of the same is resumed.
type Header struct {
	Format   string           `json:"format"`
	Started  string           `json:"started"`
	Version  string           `json:"version"`
	Model    string           `json:"model"`
	Scripted bool             `json:"scripted"`
	Prompt   string           `json:"prompt"`
	Suite    canonical.Digest `json:"suite"`
	Bundle   canonical.Digest `json:"bundle"`
	Machine  canonical.Digest `json:"machine"`
	Observed bool             `json:"observed"`
}

// A Run is every other line: the result of one case.
type Run struct {
	ID    string           `json:"id"`
	Case  canonical.Digest `json:"case"`
	Safe  Side             `json:"safe"`
	Naive Side             `json:"naive"`
}

// A Book is the files of one evaluation. Close it.
type Book struct {
	Header Header
	Runs   []Run // of the file, when the evaluation was resumed

	stem string // the path of its files, up to the suffix
	lock *flock.Flock

	mu   sync.Mutex
	file *os.File
}

// Begin starts a file of runs in a folder, which it makes if it must.
func Begin(dir string, h Header, now time.Time) (*Book, error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, err
	}
	h.Format, h.Started = Format, now.UTC().Format(time.RFC3339)
	b := &Book{Header: h}
	stamp := now.UTC().Format(stampForm)
	for n := 1; ; n++ {
		b.stem = filepath.Join(dir, stamp)
		if n > 1 {
			b.stem += fmt.Sprintf("-%02d", n)
		}
		f, err := os.OpenFile(b.stem+runsSuffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
		if errors.Is(err, fs.ErrExist) && n < maxStamps {
			continue
		}
		if err != nil {
			return nil, err
		}
		b.file = f
		break
	}
	if err := b.own(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	if err := b.write(h); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// ErrNothing means that a folder has no interrupted evaluation.
var ErrNothing = errors.New("there is no unfinished evaluation to resume: run without --resume")

// Resume opens the newest evaluation of a folder that has no metrics. It must be of the same cases, bundle, model, prompts and
// machine. A last line that a crash has cut off is dropped.
func Resume(dir string, h Header) (*Book, error) {
	stem, err := newest(dir)
	if err != nil {
		return nil, err
	}
	path := stem + runsSuffix
	f, err := os.OpenFile(path, os.O_RDWR, fileMode)
	if err != nil {
		return nil, err
	}
	b := &Book{stem: stem, file: f}
	if err := b.own(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	if err := b.read(path, h); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// own takes the lock: two processes that resume one evaluation would run cases twice.
func (b *Book) own() error {
	b.lock = flock.New(b.stem+runsSuffix, flock.SetFlag(os.O_RDWR))
	held, err := b.lock.TryLock()
	if err == nil && !held {
		err = fmt.Errorf("%s is being written by another process", b.stem+runsSuffix)
	}
	return err
}

// newest is the path of the evaluation that began last among those without metrics, up to the suffix.
func newest(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	best := ""
	for _, e := range entries {
		stem, ok := strings.CutSuffix(e.Name(), runsSuffix)
		done := slices.ContainsFunc(entries, func(o fs.DirEntry) bool { return o.Name() == stem+metricsSuffix })
		if ok && !done && stem > best {
			best = stem
		}
	}
	if best == "" {
		return "", fmt.Errorf("%s: %w", dir, ErrNothing)
	}
	return filepath.Join(dir, best), nil
}

func (b *Book) read(path string, h Header) error {
	info, err := b.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() > maxRunsBytes {
		return fmt.Errorf("%s has %d bytes; at most %d are read", path, info.Size(), maxRunsBytes)
	}
	doc, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	whole := doc[:bytes.LastIndexByte(doc, '\n')+1]
	n := 0
	for line := range bytes.Lines(whole) {
		n++
		if n == 1 {
			err = canonical.Unmarshal(line, &b.Header)
		} else {
			b.Runs = append(b.Runs, Run{})
			err = canonical.Unmarshal(line, &b.Runs[len(b.Runs)-1])
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w; remove the file and run without --resume", path, n, err)
		}
	}
	if n == 0 {
		return fmt.Errorf("%s is empty; remove it and run without --resume", path)
	}
	if err := b.Header.same(h); err != nil {
		return fmt.Errorf("%s was begun with %w; run without --resume", path, err)
	}
	if err := b.file.Truncate(int64(len(whole))); err != nil {
		return err
	}
	_, err = b.file.Seek(int64(len(whole)), 0)
	return err
}

// same names the first difference between two evaluations.
func (h Header) same(o Header) error {
	for _, m := range []struct {
		what string
		a, b any
	}{
		{"another format", h.Format, Format}, {"other cases", h.Suite, o.Suite}, {"another bundle", h.Bundle, o.Bundle},
		{"another model", h.Model, o.Model}, {"another model", h.Scripted, o.Scripted}, {"other prompts", h.Prompt, o.Prompt},
		{"another machine", h.Machine, o.Machine}, {"another version of pgfsm", h.Version, o.Version},
	} {
		if m.a != m.b {
			return errors.New(m.what)
		}
	}
	return nil
}

// Append writes the result of a case. When Append returns, the result is on disk.
func (b *Book) Append(r Run) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.write(r)
}

func (b *Book) write(v any) error {
	line, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err == nil {
		_, err = b.file.Write(append(line, '\n'))
	}
	if err == nil {
		err = b.file.Sync()
	}
	return err
}

// TracesDir is the folder for the traces of pgfsm's runs.
func (b *Book) TracesDir() string { return b.stem + tracesSuffix }

// Finish writes the metrics and the table. The metrics come last: an evaluation with metrics is done.
func (b *Book) Finish(m Metrics) error {
	if err := safefile.Write(b.stem+tableSuffix, []byte(m.Markdown()), fileMode); err != nil {
		return err
	}
	doc, err := json.Marshal(m, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return safefile.Write(b.stem+metricsSuffix, append(doc, '\n'), fileMode)
}

// Files are the paths of the evaluation's files.
func (b *Book) Files() (metrics, runs, table string) {
	return b.stem + metricsSuffix, b.stem + runsSuffix, b.stem + tableSuffix
}

// Close closes the files.
func (b *Book) Close() error {
	err := b.file.Close()
	if b.lock != nil {
		err = errors.Join(err, b.lock.Close())
	}
	return err
}
