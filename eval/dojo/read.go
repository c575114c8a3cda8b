package dojo

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/eval"
	"pgfsm/internal/canonical"
)

// Names of the files, seen from the folder.
const (
	ToolsFile      = "tools.json"
	UserFile       = "user_tasks.json"
	InjectionsFile = "injection/injection_tasks.json"
)

// Bounds of what is read.
const (
	MaxFileBytes = 1 << 20
	MaxDepth     = 64
	MaxTasks     = 10_000 // of one file
	MaxSuites    = 64
)

// catalog is tools.json: every tool by name, and which suite has which.
type catalog struct {
	Tools  map[string]tool     `json:"tools"`
	Suites map[string][]string `json:"suites"`

	suites []string // in the order of the file
}

type tool struct {
	Doc     string  `json:"doc"`
	File    string  `json:"file"`
	Params  []param `json:"params"`
	Returns string  `json:"returns"`
}

type param struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Required bool   `json:"required"`
}

// task is a task of a user or of an attacker, with the calls that carry it out.
type task struct {
	Suite       string `json:"suite"`
	Task        string `json:"task"`
	Kind        string `json:"kind"`
	Version     string `json:"version"`
	Goal        string `json:"goal"`
	GroundTruth []call `json:"ground_truth"`
}

type call struct {
	Function string         `json:"function"`
	Args     jsontext.Value `json:"args"`
}

// Kinds of task.
const (
	kindUser      = "user"
	kindInjection = "injection"
)

func fault(file, format string, args ...any) error {
	return &eval.Fault{File: file, Problem: fmt.Sprintf(format, args...)}
}

// readJSON reads a strict JSON file into v.
func readJSON(dir fs.FS, name string, v any) ([]byte, error) {
	info, err := fs.Stat(dir, name)
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("it is not a regular file")
	case info.Size() > MaxFileBytes:
		return nil, fault(name, "it has %d bytes; at most %d are read", info.Size(), MaxFileBytes)
	}
	var text []byte
	if err == nil {
		text, err = fs.ReadFile(dir, name)
	}
	if err != nil {
		return nil, fault(name, "it cannot be read: %v", err)
	}
	if err := canonical.Check(text, MaxDepth); err != nil {
		return nil, fault(name, "it is no strict JSON: %v", err)
	}
	if err := canonical.Unmarshal(text, v); err != nil {
		return nil, fault(name, "it has another form than is known: %v", err)
	}
	return text, nil
}

func readCatalog(dir fs.FS) (*catalog, error) {
	c := new(catalog)
	text, err := readJSON(dir, ToolsFile, c)
	if err != nil {
		return nil, err
	}
	if n := len(c.Suites); n < 1 || n > MaxSuites {
		return nil, fault(ToolsFile, "it has %d suites; it must be 1 to %d", n, MaxSuites)
	}
	whole, err := canonical.JSON(text)
	if err != nil {
		return nil, fault(ToolsFile, "%v", err)
	}
	for name, value := range canonical.Members(whole) {
		if name != "suites" {
			continue
		}
		for suite := range canonical.Members(value) { // sorted: one order, whatever the file's
			c.suites = append(c.suites, suite)
		}
	}
	for _, suite := range c.suites {
		if err := checkSuite(suite); err != nil {
			return nil, fault(ToolsFile, "suite %q: %v", suite, err)
		}
		for _, name := range c.Suites[suite] {
			if _, ok := c.Tools[name]; !ok {
				return nil, fault(ToolsFile, "the suite %s has a tool %q that is not described", suite, name)
			}
		}
	}
	return c, nil
}

// checkSuite judges a suite's name: it becomes the name of files and of a server.
func checkSuite(name string) error {
	odd := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' }
	if name == All {
		return fmt.Errorf("%q is what all suites together are called", All)
	}
	if name == "" || len(name) > 64 || strings.IndexFunc(name, odd) >= 0 {
		return errors.New("its name becomes the name of files: it must have 1 to 64 letters a to z, digits, - and _")
	}
	return nil
}

// readTasks reads tasks of one kind. Of several versions of one task it takes the last, because later versions correct earlier
// ones. The tasks have the order of their first versions in the file.
func readTasks(dir fs.FS, name, kind string, c *catalog) (last []task, older int, err error) {
	var all []task
	if _, err := readJSON(dir, name, &all); err != nil {
		return nil, 0, err
	}
	if len(all) > MaxTasks {
		return nil, 0, fault(name, "it has %d tasks; at most %d are read", len(all), MaxTasks)
	}
	at := make(map[[2]string]int)
	for i, t := range all {
		version, err := parseVersion(t.Version)
		switch {
		case err != nil:
			return nil, 0, fault(name, "entry %d, %s %s: %v", i+1, t.Suite, t.Task, err)
		case t.Kind != kind:
			return nil, 0, fault(name, "entry %d, %s %s: its kind is %q; this file has tasks of the kind %s", i+1, t.Suite, t.Task, t.Kind, kind)
		case t.Task == "" || strings.ContainsAny(t.Task, `/\`):
			return nil, 0, fault(name, "entry %d: %q is no name of a task", i+1, t.Task)
		case c.Suites[t.Suite] == nil:
			return nil, 0, fault(name, "entry %d, %s: there is no suite %q", i+1, t.Task, t.Suite)
		}
		key := [2]string{t.Suite, t.Task}
		before, again := at[key]
		if !again {
			at[key] = len(last)
			last = append(last, t)
			continue
		}
		older++
		first, err := parseVersion(last[before].Version)
		switch order := slices.Compare(version, first); {
		case err != nil || order == 0:
			return nil, 0, fault(name, "entry %d: %s %s is there twice in version %s", i+1, t.Suite, t.Task, t.Version)
		case order > 0:
			last[before] = t
		}
	}
	return last, older, nil
}

// parseVersion reads a version, as in v1_2_1. Versions are ordered by their numbers: v1 is before v1_1 is before v1_2.
func parseVersion(s string) (numbers []int, err error) {
	digits, ok := strings.CutPrefix(s, "v")
	for part := range strings.SplitSeq(digits, "_") {
		n, err := strconv.ParseUint(part, 10, 16)
		if !ok || err != nil {
			return nil, fmt.Errorf("its version is %q; a version is written as in v1_2", s)
		}
		numbers = append(numbers, int(n))
	}
	return numbers, nil
}

// ofSuite are the tasks of one suite, in the order of their names' numbers.
func ofSuite(all []task, suite string) []task {
	var of []task
	for _, t := range all {
		if t.Suite == suite {
			of = append(of, t)
		}
	}
	slices.SortStableFunc(of, func(a, b task) int {
		return cmp.Or(cmp.Compare(ordinal(a.Task), ordinal(b.Task)), cmp.Compare(a.Task, b.Task))
	})
	return of
}

// ordinal is the number at the end of a task's name, or -1.
func ordinal(name string) int {
	n, err := strconv.Atoi(name[len(strings.TrimRight(name, "0123456789")):])
	if err != nil {
		return -1
	}
	return n
}
