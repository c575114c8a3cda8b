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

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/eval"
	"pgfsm/eval/attack"
	"pgfsm/eval/endtoend"
	"pgfsm/eval/gates"
	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
)

// MaxFileBytes bounds one file of results.
const MaxFileBytes = 64 << 20

// gatesName is the name of the file of eval gates.
const gatesName = "offline_gate_eval.json"

var metricsName = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z_metrics\.json$`)

// ErrNothing means that a folder has no results.
var ErrNothing = errors.New("the folder has no results: make some with pgfsm-eval gates, attack or e2e, and write them into this folder")

var (
	errNoResult  = errors.New("it is no result of pgfsm-eval attack; the results of gates and e2e are found by their names")
	errIrregular = errors.New("it is not a regular file, and links are not followed")
	errTooLarge  = fmt.Errorf("it has more than %d bytes", MaxFileBytes)
)

// Results are the results in a folder.
type Results struct {
	Attacks []*AttackFile // sorted by name
	Metrics *endtoend.Metrics
	Gates   []gates.Suite
	Sources []Source

	leftOut []string // JSON files that are no results, and why
}

// A Source is a file of the page.
type Source struct {
	Name    string
	Command string // the command that makes such a file
	Digest  canonical.Digest
}

// Read reads the results in a folder: every .json file that has the format of attacks, offline_gate_eval.json, and the newest of
// the files TIME_metrics.json. A folder without results is [ErrNothing]. Other .json files are left out and named
// ([Results.Missing]). A result that cannot be read is an error.
func Read(dir string) (*Results, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var r Results
	newest := ""
	for _, e := range entries {
		switch name := e.Name(); {
		case metricsName.MatchString(name):
			newest = name // the names are sorted by time
		case name == gatesName:
			err = r.readGates(dir)
		case strings.HasSuffix(name, ".json"):
			err = r.readAttack(dir, name)
		}
		if err != nil {
			return nil, err
		}
	}
	if newest != "" {
		if err := r.readMetrics(dir, newest); err != nil {
			return nil, err
		}
	}
	if len(r.Sources) == 0 {
		return nil, errors.Join(fmt.Errorf("%s: %w", visible.Text(dir), ErrNothing), errors.New(strings.Join(r.leftOut, "\n")))
	}
	return &r, nil
}

// faulty names the file and the remedy.
func faulty(name string, err error) error {
	return fmt.Errorf("%s: %w; make it again with this version of pgfsm-eval, or take it out of the folder", show(name), err)
}

// load reads a regular file: opening a pipe would block.
func load(dir, name string) ([]byte, error) {
	path := filepath.Join(dir, name)
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errIrregular
	case info.Size() > MaxFileBytes:
		return nil, errTooLarge
	}
	doc, err := os.ReadFile(path)
	return bytes.TrimSpace(doc), err
}

func (r *Results) addSource(name, command string, doc []byte) {
	r.Sources = append(r.Sources, Source{name, "pgfsm-eval " + command, canonical.Sum("evaluation result", doc)})
}

// readAttack reads a file if it is a result of attacks, of any version, and leaves it out otherwise.
func (r *Results) readAttack(dir, name string) error {
	doc, err := load(dir, name)
	if err == nil && !isAttack(doc) {
		err = errNoResult
	}
	if err != nil {
		r.leftOut = append(r.leftOut, fmt.Sprintf("%s is left out: %v.", show(name), err))
		return nil
	}
	f := &AttackFile{Name: name, Result: new(attack.Result)}
	if err = canonical.Unmarshal(doc, f.Result); err == nil {
		err = checkAttack(f.Result)
	}
	if err != nil {
		return faulty(name, err)
	}
	r.Attacks = append(r.Attacks, f)
	r.addSource(name, "attack", doc)
	return nil
}

// isAttack reports whether a document is a result of attacks. A document with mistakes is one as well, so that the mistake is
// reported.
func isAttack(doc []byte) bool {
	var named struct {
		Format string `json:"format"`
	}
	// What comes before a mistake is decoded.
	_ = json.Unmarshal(doc, &named, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	name, _, _ := strings.Cut(attack.Format, "/")
	return strings.HasPrefix(named.Format, name+"/")
}

// checkAttack checks that a result has known arms, and the same arms in every section, and computes the intervals from the counts.
func checkAttack(r *attack.Result) error {
	if r.Format != attack.Format {
		return fmt.Errorf("its format is %q, not %q", show(r.Format), attack.Format)
	}
	ordered := slices.DeleteFunc(attack.Arms(), func(a attack.Arm) bool { return !slices.Contains(r.Arms, a) })
	if len(ordered) == 0 || !slices.Equal(ordered, r.Arms) {
		return errors.New("its arms are none, unknown, or in another order")
	}
	for _, s := range append([]*attack.Section{&r.Overall}, pointers(r.Suites)...) {
		if !slices.EqualFunc(r.Arms, s.Arms, func(a attack.Arm, in attack.ArmSection) bool { return a == in.Arm }) {
			return fmt.Errorf("suite %q has other arms than the result", show(s.Suite))
		}
		for i := range s.Arms {
			a := &s.Arms[i]
			for _, share := range []*eval.Share{&a.Attack, &a.Wants, &a.Needs, &a.Utility} {
				if share.K < 0 || share.K > share.N {
					return fmt.Errorf("suite %q, arm %s: it counts %d of %d", show(s.Suite), a.Arm, share.K, share.N)
				}
				*share = eval.NewShare(share.K, share.N)
			}
		}
	}
	return nil
}

func pointers[T any](all []T) []*T {
	list := make([]*T, len(all))
	for i := range all {
		list[i] = &all[i]
	}
	return list
}

// readGates reads the suites, in the order in which eval gates runs them.
func (r *Results) readGates(dir string) error {
	doc, err := load(dir, gatesName)
	suites := map[string]gates.Suite{}
	if err == nil {
		err = canonical.Unmarshal(doc, &suites)
	}
	for _, name := range gates.Names() {
		if s, ok := suites[name]; ok {
			s.Name = name
			r.Gates = append(r.Gates, s)
			delete(suites, name)
		}
	}
	if err == nil && (len(suites) > 0 || len(r.Gates) == 0) {
		err = errors.New("it has no suite, or an unknown one")
	}
	if err != nil {
		return faulty(gatesName, err)
	}
	r.addSource(gatesName, "gates", doc)
	return nil
}

func (r *Results) readMetrics(dir, name string) error {
	doc, err := load(dir, name)
	m := new(endtoend.Metrics)
	if err == nil {
		err = canonical.Unmarshal(doc, m)
	}
	if err == nil && m.Format != endtoend.Format {
		err = fmt.Errorf("its format is %q, not %q", show(m.Format), endtoend.Format)
	}
	if err != nil {
		return faulty(name, err)
	}
	r.Metrics = m
	r.addSource(name, "e2e", doc)
	return nil
}
