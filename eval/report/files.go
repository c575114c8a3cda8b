package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"pgfsm/eval/attack"
	"pgfsm/eval/endtoend"
	"pgfsm/eval/gates"
	"pgfsm/policy/canonical"
	"pgfsm/policy/visible"
)

// Bounds of what is read.
const (
	MaxFileBytes   = 64 << 20 // of one file of results
	MaxAttackFiles = 32       // in one folder
	maxCount       = 1 << 40  // of anything that a file counts: sums of them do not overflow
)

// Names of files of results.
const gatesName = "offline_gate_eval.json"

var metricsName = regexp.MustCompile(`^([0-9]{8}T[0-9]{6}Z(?:-[0-9]{2,3})?)_metrics\.json$`)

// ErrNothing means that a folder holds no results.
var ErrNothing = errors.New("it holds no results of an evaluation: make some with pgfsm eval gates, pgfsm eval attack or pgfsm eval e2e, " +
	"and let them write into this folder")

// Results is what a folder holds.
type Results struct {
	attacks []attackFile // a group each, by name
	gates   *gatesFile
	metrics *metricsFile

	files   int      // of attacks
	left    int      // JSON files that are not taken
	leftOut []string // the first of them, and why
}

// A source is a file that was read.
type source struct {
	name   string
	digest canonical.Digest
}

// An attackFile is the results of one group of files; mostly that is one.
type attackFile struct {
	name    string // heading
	group   string
	sources []source
	suites  map[string]string // the file that holds a suite; looked up, never ranged over
	result  *attack.Result
}

type gatesFile struct {
	source
	suites []gates.Suite // in the order of the file
}

type metricsFile struct {
	source
	metrics *endtoend.Metrics
}

// Read reads the results in a folder: every .json file that begins as a result of attacks does, whatever it is called,
// offline_gate_eval.json, and of the files TIME_metrics.json the newest. Files of attacks whose names are the same up to the
// word attack belong together; one without that word is a group of its own. A kind of which there is none is missing from the
// page, and the page says so; nothing at all is [ErrNothing]. Other .json files are not taken, and named ([Results.Missing]).
// A result that cannot be read is an error, and so is one that is too large.
func Read(dir string) (*Results, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var r Results
	newest, newestStem := "", ""
	for _, e := range entries {
		name := e.Name()
		switch m := metricsName.FindStringSubmatch(name); {
		case m != nil:
			if m[1] > newestStem {
				newest, newestStem = name, m[1]
			}
		case name == gatesName:
			r.gates, err = readGates(dir, name)
		case strings.HasSuffix(name, ".json"):
			err = r.readJSON(dir, name)
		}
		if err != nil {
			return nil, err
		}
	}
	if newest != "" {
		if r.metrics, err = readMetrics(dir, newest); err != nil {
			return nil, err
		}
	}
	r.nameGroups()
	if r.gates == nil && r.metrics == nil && len(r.attacks) == 0 {
		err := fmt.Errorf("%s: %w", visible.Text(dir), ErrNothing)
		if left := r.notTaken(); len(left) > 0 {
			err = fmt.Errorf("%w; %s", err, strings.Join(left, "; "))
		}
		return nil, err
	}
	return &r, nil
}

// readJSON reads a file whose name says nothing, if it holds results of attacks.
func (r *Results) readJSON(dir, name string) error {
	k, err := peek(dir, name)
	switch {
	case err != nil:
		r.leave(name, err)
	case k == kindAttack:
		return r.readAttack(dir, name)
	case k == kindNone:
		r.leave(name, errNoResult)
	default:
		r.leave(name, errName[k])
	}
	return nil
}

// faulty says which file it is about, and what helps.
func faulty(name string, err error) error {
	return fmt.Errorf("%s: %w; make it again with this version of pgfsm, or take it out of the folder", show(name), err)
}

// load reads a file, whole, and never more than may be read.
func load(dir, name string) (source, []byte, error) {
	path := filepath.Join(dir, name)
	info, err := os.Lstat(path) // before it is opened: opening a pipe waits for a writer
	if err != nil {
		return source{}, nil, err
	}
	if !info.Mode().IsRegular() {
		return source{}, nil, faulty(name, errIrregular)
	}
	tooLarge := faulty(name, fmt.Errorf("it has more than %d bytes", MaxFileBytes))
	if info.Size() > MaxFileBytes {
		return source{}, nil, tooLarge
	}
	f, err := os.Open(path)
	if err != nil {
		return source{}, nil, err
	}
	defer f.Close()
	doc, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1)) // it may be growing
	if err != nil {
		return source{}, nil, err
	}
	if len(doc) > MaxFileBytes {
		return source{}, nil, tooLarge
	}
	return source{show(name), canonical.Sum("evaluation result", doc)}, bytes.TrimSpace(doc), nil
}

func (r *Results) readAttack(dir, name string) error {
	if r.files++; r.files > MaxAttackFiles {
		return fmt.Errorf("%s: there are more than %d files of attacks: report on fewer at a time", visible.Text(dir), MaxAttackFiles)
	}
	src, doc, err := load(dir, name)
	if err != nil {
		return err
	}
	result := new(attack.Result)
	if err = canonical.Unmarshal(doc, result); err == nil {
		err = checkAttack(result)
	}
	if err != nil {
		return faulty(name, err)
	}
	group := groupOf(name)
	i := slices.IndexFunc(r.attacks, func(f attackFile) bool { return f.group == group })
	if i < 0 {
		i = len(r.attacks)
		r.attacks = append(r.attacks, attackFile{group: group, suites: make(map[string]string)})
	}
	return r.attacks[i].take(src, result)
}

func readGates(dir, name string) (*gatesFile, error) {
	src, doc, err := load(dir, name)
	if err != nil {
		return nil, err
	}
	suites, err := decodeGates(doc)
	if err != nil {
		return nil, faulty(name, err)
	}
	return &gatesFile{src, suites}, nil
}

func readMetrics(dir, name string) (*metricsFile, error) {
	src, doc, err := load(dir, name)
	if err != nil {
		return nil, err
	}
	m := new(endtoend.Metrics)
	if err = canonical.Unmarshal(doc, m); err == nil {
		err = checkMetrics(m)
	}
	if err != nil {
		return nil, faulty(name, err)
	}
	return &metricsFile{src, m}, nil
}

// counts says whether all are numbers of things.
func counts(all ...int) error {
	for _, n := range all {
		if n < 0 || n > maxCount {
			return fmt.Errorf("it counts %d of something", n)
		}
	}
	return nil
}

// within says whether there are k of n.
func within(k, n int) error {
	if err := counts(k, n); err != nil {
		return err
	}
	if k > n {
		return fmt.Errorf("it counts %d of %d", k, n)
	}
	return nil
}
