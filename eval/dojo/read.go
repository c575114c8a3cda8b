package dojo

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// data is AgentDojo's data.
type data struct {
	catalog           catalog
	names             []string // the names of the suites, sorted
	users, injections []task
}

// catalog is tools.json: every tool by name, and which suite has which.
type catalog struct {
	Tools  map[string]tool     `json:"tools"`
	Suites map[string][]string `json:"suites"`
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

// isEnvironment reports whether the framework puts the environment in: the parameter is no argument.
func (p *param) isEnvironment() bool { return p.Type == "" || strings.HasPrefix(p.Type, "Annotated") }

var className = regexp.MustCompile(`^[A-Z][A-Za-z]*$`)

// kind returns the argument's type in JSON: a type of JSON Schema, texts, objects, or a member of an enumeration. It is empty if
// the type is not known.
func (p *param) kind() (kind string, optional bool) {
	word, optional := strings.CutSuffix(p.Type, " | None")
	kind = map[string]string{
		"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list[str]": "texts", "list[dict]": "objects",
	}[word]
	if kind == "" && className.MatchString(word) {
		kind = "member"
	}
	return kind, optional
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

func readData(dir string) (*data, error) {
	d := new(data)
	if err := readJSON(dir, "tools.json", &d.catalog); err != nil {
		return nil, err
	}
	d.names = slices.Sorted(maps.Keys(d.catalog.Suites))
	for _, suite := range d.names {
		if suite == all || strings.Trim(suite, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return nil, fmt.Errorf("tools.json: the suite %q becomes the name of files: a to z, 0 to 9, - and _, and not %q", suite, all)
		}
		for _, name := range d.catalog.Suites[suite] {
			if _, ok := d.catalog.Tools[name]; !ok {
				return nil, fmt.Errorf("tools.json: the suite %s has a tool %q that is not described", suite, name)
			}
		}
	}
	var err error
	if d.users, err = readTasks(dir, "user_tasks.json", "user"); err == nil {
		d.injections, err = readTasks(dir, "injection/injection_tasks.json", "injection")
	}
	return d, err
}

// readJSON reads a strict JSON file into v.
func readJSON(dir, name string, v any) error {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err == nil {
		err = canonical.Unmarshal(text, v)
	}
	if err != nil {
		return fmt.Errorf("%s: it cannot be read: %w", name, err)
	}
	return nil
}

var taskName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// readTasks reads tasks of one kind. Of several versions of one task it takes the last, because later versions correct earlier ones. The
// tasks have the order of their first versions in the file.
func readTasks(dir, name, kind string) (last []task, err error) {
	var tasks []task
	if err := readJSON(dir, name, &tasks); err != nil {
		return nil, err
	}
	for _, t := range tasks {
		version, err := parseVersion(t.Version)
		if err != nil || t.Kind != kind || !taskName.MatchString(t.Task) {
			return nil, fmt.Errorf("%s: %s %q of kind %q and version %q: want the kind %s and a version such as v1_2", name, t.Suite, t.Task, t.Kind, t.Version, kind)
		}
		i := slices.IndexFunc(last, func(o task) bool { return o.Suite == t.Suite && o.Task == t.Task })
		if i < 0 {
			last = append(last, t)
			continue
		}
		if before, _ := parseVersion(last[i].Version); slices.Compare(version, before) > 0 {
			last[i] = t
		}
	}
	return last, nil
}

// parseVersion reads a version, as in v1_2_1. Versions are ordered by their numbers: v1 is before v1_1 is before v1_2.
func parseVersion(s string) (numbers []int, err error) {
	for part := range strings.SplitSeq(strings.TrimPrefix(s, "v"), "_") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// byNumber compares tasks by the number at the end of their names.
func byNumber(a, b task) int {
	number := func(name string) int {
		n, _ := strconv.Atoi(name[len(strings.TrimRight(name, "0123456789")):])
		return n
	}
	return cmp.Or(cmp.Compare(number(a.Task), number(b.Task)), cmp.Compare(a.Task, b.Task))
}
