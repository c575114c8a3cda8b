package report

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"pgfsm/eval/attack"
	"pgfsm/eval/endtoend"
	"pgfsm/eval/gates"
	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
)

// MaxFileBytes bounds one file of results.
const MaxFileBytes = 64 << 20

// Names of files of results.
const gatesName = "offline_gate_eval.json"

var metricsName = regexp.MustCompile(`^([0-9]{8}T[0-9]{6}Z(?:-[0-9]{2,3})?)_metrics\.json$`)

// ErrNothing means that a folder has no results.
var ErrNothing = errors.New("it holds no results of an evaluation: make some with pgfsm-eval gates, pgfsm-eval attack or pgfsm-eval e2e, " +
	"and write them into this folder")

// Results are the results in a folder.
type Results struct {
	attacks []attackFile // a group each, by name
	gates   *gatesFile
	metrics *metricsFile

	left    int      // JSON files that are left out
	leftOut []string // the first of them, and why
}

// A source names a file and its content.
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

// Read reads the results in a folder: every .json file that names the format of attacks, whatever the file's name,
// offline_gate_eval.json, and the newest of the files TIME_metrics.json. Files of attacks belong together if their names are the
// same up to the word attack; a file without that word is a group of its own. If a kind of result is missing, the page says so; a
// folder without results is [ErrNothing]. Other .json files are left out and named ([Results.Missing]). A result that cannot be
// read is an error.
func Read(dir string) (*Results, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var r Results
	newest, newestTime := "", ""
	for _, e := range entries {
		name := e.Name()
		switch m := metricsName.FindStringSubmatch(name); {
		case m != nil:
			if m[1] > newestTime {
				newest, newestTime = name, m[1]
			}
		case name == gatesName:
			r.gates, err = readGates(dir, name)
		case strings.HasSuffix(name, ".json"):
			err = r.readAttack(dir, name)
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
		if left := r.notRead(); len(left) > 0 {
			err = fmt.Errorf("%w; %s", err, strings.Join(left, "; "))
		}
		return nil, err
	}
	return &r, nil
}

// faulty names the file and the remedy.
func faulty(name string, err error) error {
	return fmt.Errorf("%s: %w; make it again with this version of pgfsm, or take it out of the folder", show(name), err)
}

// load reads a regular file: opening a pipe would block.
func load(dir, name string) (source, []byte, error) {
	path := filepath.Join(dir, name)
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return source{}, nil, err
	case !info.Mode().IsRegular():
		return source{}, nil, faulty(name, errIrregular)
	case info.Size() > MaxFileBytes:
		return source{}, nil, faulty(name, fmt.Errorf("it has more than %d bytes", MaxFileBytes))
	}
	doc, err := os.ReadFile(path)
	if err != nil {
		return source{}, nil, err
	}
	return source{show(name), canonical.Sum("evaluation result", doc)}, bytes.TrimSpace(doc), nil
}

// readAttack reads a file if it is a result of attacks, and leaves it out otherwise.
func (r *Results) readAttack(dir, name string) error {
	src, doc, err := load(dir, name)
	if err == nil && !isAttack(doc) {
		err = errNoResult
	}
	if err != nil {
		r.leave(name, err)
		return nil
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
