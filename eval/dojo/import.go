package dojo

import (
	"bytes"
	"fmt"
	"io/fs"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/eval"
	"pgfsm/internal/canonical"
)

// A Suite is one suite in the neutral format.
type Suite struct {
	Name       string `json:"suite"`
	Tools      []byte `json:"-"`          // a tools file
	Cases      []byte `json:"-"`          // a cases file
	Retargeted []byte `json:"-"`          // a cases file: the task's own writes, each with another target
	Offers     int    `json:"tools"`      // of the server
	Tasks      int    `json:"tasks"`      // of users
	Injections int    `json:"injections"` // tasks of attackers that have calls
	Pairs      int    `json:"pairs"`      // cases with an attack
	Retargets  int    `json:"retargeted"` // cases of Retargeted
	Grants     int    `json:"grants"`     // tasks of users that have a grant file
	Notes      Notes  `json:"notes"`
}

// Places returns the paths of a suite's bundle and of a user task's grant, from the folder of the cases files, with slashes; ""
// if there is none.
type Places struct {
	Bundle func(suite string) string
	Grant  func(suite, task string) string
}

// All is the name of the one tools file, and the one cases file, that hold all suites.
const All = "all"

// Import reads the folder and makes every suite, in the order of their names, and [All] of them last. The error is an
// [*eval.Fault] that names the task.
func Import(dir fs.FS, at Places) ([]Suite, error) {
	c, err := readCatalog(dir)
	if err != nil {
		return nil, err
	}
	users, olderUsers, err := readTasks(dir, UserFile, kindUser, c)
	if err != nil {
		return nil, err
	}
	injections, olderInjections, err := readTasks(dir, InjectionsFile, kindInjection, c)
	if err != nil {
		return nil, err
	}
	var all []Suite
	for _, name := range c.suites {
		s := Suite{Name: name, Offers: len(c.Suites[name])}
		if s.Tools, err = c.toolsOf(name); err != nil {
			return nil, fault(ToolsFile, "%v", err)
		}
		if err := s.pair(c, ofSuite(users, name), ofSuite(injections, name), at); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	whole := Suite{Name: All}
	if whole.Tools, err = c.toolsOf(c.suites...); err != nil {
		return nil, fault(ToolsFile, "%v", err)
	}
	for i := range all {
		whole.add(&all[i])
	}
	whole.Notes.OlderVersions = olderUsers + olderInjections // for all suites together
	return append(all, whole), nil
}

// add counts a suite's content and appends its cases.
func (s *Suite) add(one *Suite) {
	s.Cases = append(s.Cases, one.Cases...)
	s.Retargeted = append(s.Retargeted, one.Retargeted...)
	s.Offers += one.Offers
	s.Tasks += one.Tasks
	s.Injections += one.Injections
	s.Pairs += one.Pairs
	s.Retargets += one.Retargets
	s.Grants += one.Grants
	s.Notes.add(one.Notes)
}

// toolsOf writes the tools file of suites: one server each.
func (c *catalog) toolsOf(suites ...string) ([]byte, error) {
	type server struct {
		Tools []jsontext.Value `json:"tools"`
	}
	servers := make(map[string]server)
	for _, suite := range suites {
		tools := []jsontext.Value{}
		for _, name := range c.Suites[suite] {
			described := c.Tools[name]
			raw, err := described.definition(name)
			if err != nil {
				return nil, err
			}
			tools = append(tools, raw)
		}
		servers[suite] = server{tools}
	}
	text, err := canonical.Marshal(map[string]any{"servers": servers})
	if err != nil {
		return nil, err
	}
	value := jsontext.Value(text)
	if err := value.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, err
	}
	return append(value, '\n'), nil
}

// A convertedTask is a task with its calls in the neutral form.
type convertedTask struct {
	task
	calls []eval.Call
}

// pair makes the cases: each task of a user with each task of an attacker that has calls, or alone where there are none, so
// that its own calls are judged.
func (s *Suite) pair(c *catalog, users, injections []task, at Places) error {
	own, err := s.withCalls(c, UserFile, users)
	if err != nil {
		return err
	}
	attacks, err := s.withCalls(c, InjectionsFile, injections)
	if err != nil {
		return err
	}
	var wanting []convertedTask
	for _, a := range attacks {
		if len(a.calls) == 0 {
			s.Notes.WithoutCalls++
			continue
		}
		wanting = append(wanting, a)
	}
	s.Tasks, s.Injections = len(own), len(wanting)
	if pairs := len(own) * max(1, len(wanting)); pairs > eval.MaxCases {
		return fault(InjectionsFile, "the suite %s has %d pairs with the tasks of %s; a cases file has at most %d", s.Name, pairs, UserFile, eval.MaxCases)
	}
	var out, retargeted bytes.Buffer
	for i := range own {
		u := &own[i]
		base := eval.Case{
			ID: s.Name + "/" + u.Task, Suite: s.Name, Task: u.Task, Request: u.Goal, Needs: u.calls,
			Bundle: at.Bundle(s.Name), Grant: at.Grant(s.Name, u.Task),
		}
		if base.Grant != "" {
			s.Grants++
		}
		n, err := retarget(&retargeted, &base)
		if err != nil {
			return fault(UserFile, "%s %s: %v", s.Name, u.Task, err)
		}
		s.Retargets += n
		if len(wanting) == 0 && len(u.calls) > 0 {
			if err := write(&out, &base); err != nil {
				return err
			}
		}
		for j := range wanting {
			one := base
			one.ID, one.Attack, one.Wants = base.ID+"/"+wanting[j].Task, wanting[j].Task, wanting[j].calls
			if err := write(&out, &one); err != nil {
				return err
			}
			s.Pairs++
		}
	}
	s.Cases, s.Retargeted = out.Bytes(), retargeted.Bytes()
	return nil
}

func write(out *bytes.Buffer, c *eval.Case) error {
	line, err := c.Line()
	if err == nil {
		out.Write(line)
	}
	return err
}

func (s *Suite) withCalls(c *catalog, file string, tasks []task) ([]convertedTask, error) {
	all := make([]convertedTask, len(tasks))
	for i := range tasks {
		calls, err := c.convert(&tasks[i], &s.Notes)
		if err != nil {
			return nil, fault(file, "%s", fmt.Sprintf("%s %s: %v", tasks[i].Suite, tasks[i].Task, err))
		}
		all[i] = convertedTask{tasks[i], calls}
	}
	return all, nil
}
