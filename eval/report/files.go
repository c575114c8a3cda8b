package report

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/eval/attack"
	"pgfsm/eval/endtoend"
	"pgfsm/eval/gates"
	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
)

// MaxFileBytes bounds one file of results.
const MaxFileBytes = 64 << 20

// ErrNothing means that a folder has no results.
var ErrNothing = errors.New("the folder has no results: make some with pgfsm-eval gates, attack or e2e, and write them into this folder")

var (
	errNoResult  = errors.New("it is no result of pgfsm-eval gates, attack or e2e")
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

// Read reads the results in a folder: every .json file that names a format of results. Of several
// results of the gates, and of several of runs end to end, the page shows the one whose name sorts
// last: the names begin with the time. A folder without results is [ErrNothing]. Other .json files
// are left out and named ([Results.Missing]). A result that cannot be read is an error.
func Read(dir string) (*Results, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}

	var r Results
	for _, e := range entries {
		name := e.Name()
		if filepath.Ext(name) != ".json" {
			continue
		}
		doc, err := readRegular(dir, name)
		kind := kindOf(doc)
		if err == nil && kind == "" {
			err = errNoResult
		}
		if err != nil {
			r.leftOut = append(r.leftOut, fmt.Sprintf("%s is left out: %v.", showText(name), err))
			continue
		}
		if err := r.addResult(name, kind, doc); err != nil {
			return nil, fmt.Errorf("%s: %w; make it again with this version of pgfsm-eval, or take it out of the folder", showText(name), err)
		}
	}

	if len(r.Sources) == 0 {
		return nil, errors.Join(fmt.Errorf("%s: %w", visible.Text(dir), ErrNothing),
			errors.New(strings.Join(r.leftOut, "\n")))
	}

	slices.SortStableFunc(r.Sources, func(a, b Source) int { return cmp.Compare(a.Command, b.Command) })
	return &r, nil
}

// readRegular reads a regular file: opening a pipe would block.
func readRegular(dir, name string) ([]byte, error) {
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

// The commands that make results.
const (
	attackCommand = "pgfsm-eval attack"
	gatesCommand  = "pgfsm-eval gates"
	e2eCommand    = "pgfsm-eval e2e"
)

// kindOf returns the command that makes documents of this format, in any version; empty if there is
// none. A document with mistakes has a kind as well, so that the mistake is reported.
func kindOf(doc []byte) string {
	var named struct {
		Format string `json:"format"`
	}
	// What comes before a mistake is decoded.
	_ = json.Unmarshal(doc, &named, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	name, _, _ := strings.Cut(named.Format, "/")
	return map[string]string{"pgfsm.attack": attackCommand, "pgfsm.gates": gatesCommand, "pgfsm.e2e": e2eCommand}[name]
}

// addResult adds a result. It takes the place of an earlier one of the gates, or of runs end to
// end.
func (r *Results) addResult(name, command string, doc []byte) error {
	switch command {
	case attackCommand:
		f := &AttackFile{Name: name, Result: new(attack.Result)}
		if err := readDocument(doc, f.Result, &f.Result.Format, attack.Format); err != nil {
			return err
		}
		if err := checkArms(f.Result); err != nil {
			return err
		}
		r.Attacks = append(r.Attacks, f)
	case gatesCommand:
		var report gates.Report
		if err := readDocument(doc, &report, &report.Format, gates.Format); err != nil {
			return err
		}
		r.Gates = report.Suites
	case e2eCommand:
		r.Metrics = new(endtoend.Metrics)
		if err := readDocument(doc, r.Metrics, &r.Metrics.Format, endtoend.Format); err != nil {
			return err
		}
	}

	if command != attackCommand {
		r.Sources = slices.DeleteFunc(r.Sources, func(s Source) bool { return s.Command == command })
	}

	r.Sources = append(r.Sources, Source{name, command, canonical.Sum("evaluation result", doc)})
	return nil
}

// readDocument reads a document strictly, and compares its format with the one of this version.
func readDocument(doc []byte, v any, format *string, want string) error {
	if err := canonical.Unmarshal(doc, v); err != nil {
		return err
	}
	if *format != want {
		return fmt.Errorf("its format is %q, not %q", showText(*format), want)
	}
	return nil
}

// checkArms checks that a result has known arms, and the same arms in every section: the page has a
// column for each.
func checkArms(r *attack.Result) error {
	ordered := slices.DeleteFunc(attack.Arms(), func(a attack.Arm) bool { return !slices.Contains(r.Arms, a) })
	if len(ordered) == 0 || !slices.Equal(ordered, r.Arms) {
		return errors.New("its arms are none, unknown, or in another order")
	}
	for _, s := range append([]attack.Section{r.Overall}, r.Suites...) {
		if !slices.EqualFunc(r.Arms, s.Arms, func(a attack.Arm, in attack.ArmSection) bool { return a == in.Arm }) {
			return fmt.Errorf("suite %q has other arms than the result", showText(s.Suite))
		}
	}
	return nil
}
