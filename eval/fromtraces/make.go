package fromtraces

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"pgfsm/eval"
	"pgfsm/eval/attack"
	"pgfsm/internal/canonical"
	"pgfsm/internal/safefile"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

const (
	fileMode = 0o600
	dirMode  = 0o700
)

// A Suite is what became of traces.
type Suite struct {
	Cases string           // the file of cases
	Tools string           // the tools file of the first case; each case names its own
	Count int              // cases in the file
	Left  []Left           // the traces that are no case, sorted by path
	Bad   []traces.Checked // the files that do not replay, in their order
}

// Left is a trace that is no case.
type Left struct{ Path, Reason string }

// maker is a suite on its way.
type maker struct {
	dir   string
	suite Suite
	runs  map[string]canonical.Digest // heads by run
	cases []*taken
	// Configurations by bundle, without the grants that cases name.
	contents map[canonical.Digest]*policy.Content
}

// taken is a trace that became a case.
type taken struct {
	path   string
	c      *eval.Case
	bundle canonical.Digest
}

// ErrTaken means that the folder for the suite holds something already.
var ErrTaken = errors.New("it is not empty: name a folder that is not there yet")

// Make executes trace files again, and writes a suite into a folder that is not there yet, or
// empty. It judges every case by the configuration of its trace. done is called after each file.
func Make(ctx context.Context, dir string, p *traces.Replayer, paths []string, done func()) (*Suite, error) {
	found, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(found) > 0 {
		return nil, fmt.Errorf("%s: %w", filepath.ToSlash(dir), ErrTaken)
	}
	if err := os.MkdirAll(filepath.Join(dir, "grants"), dirMode); err != nil {
		return nil, err
	}

	m := &maker{dir: dir, runs: make(map[string]canonical.Digest), contents: make(map[canonical.Digest]*policy.Content)}
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		checked, t, run := p.CheckFile(path, "")
		if !checked.OK {
			m.suite.Bad = append(m.suite.Bad, checked)
		} else if err := m.addTrace(path, t, run); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		done()
	}

	if err := m.judgeCases(ctx); err != nil {
		return nil, err
	}

	slices.SortFunc(m.suite.Left, func(a, b Left) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Reason, b.Reason))
	})
	return &m.suite, nil
}

// addTrace takes a trace and the run that it was executed again as. A trace that becomes no case is
// left out.
func (m *maker) addTrace(path string, t *traces.Trace, run *states.Run) error {
	c, err := m.makeCase(t, run)
	var none errNoCase
	if errors.As(err, &none) {
		m.leaveOut(path, none.Error())
		return nil
	}
	if err != nil {
		return err
	}
	bundle := run.Bundle().Digest()
	if m.contents[bundle] == nil {
		content := *run.Bundle().Content()
		content.Grants = content.Grants[:max(len(content.Grants)-1, 0)]
		m.contents[bundle] = &content
	}
	m.runs[run.ID()] = t.Head
	m.cases = append(m.cases, &taken{path, c, bundle})
	return nil
}

func (m *maker) leaveOut(path, reason string) {
	m.suite.Left = append(m.suite.Left, Left{filepath.ToSlash(path), reason})
}

// makeCase makes the case of a trace, and writes the files that it names.
func (m *maker) makeCase(t *traces.Trace, run *states.Run) (*eval.Case, error) {
	if head, ok := m.runs[run.ID()]; ok {
		if head == t.Head {
			return nil, errNoCase("the same trace was there already")
		}
		return nil, errNoCase("another trace of the same run was there already")
	}
	c, err := caseOf(t, run)
	if err != nil {
		return nil, err
	}
	tools, err := toolsOf(t, run)
	if err != nil {
		return nil, err
	}
	if c.Tools, err = m.writeShared("tools-", tools); err != nil {
		return nil, err
	}

	if grants := run.Bundle().Content().Grants; len(grants) > 0 {
		doc, err := encodeGrant(&grants[len(grants)-1])
		if err != nil {
			return nil, err
		}
		if c.Grant, err = m.writeShared("grants/", doc); err != nil {
			return nil, err
		}
	}

	return c, checkReadable(c)
}

// checkReadable sees to it that the case can be read back.
func checkReadable(c *eval.Case) error {
	line, err := c.Line()
	if err != nil {
		return errNoCase("it cannot be written: " + err.Error())
	}
	if _, err := eval.ReadCases("cases", bytes.NewReader(line)); err != nil {
		return errNoCase("it does not fit into a cases file: " + err.Error())
	}
	return nil
}

// writeShared writes a document under the name of its digest, and returns the name.
func (m *maker) writeShared(prefix string, doc []byte) (name string, err error) {
	name = prefix + canonical.Sum("suite file", doc).Short() + ".json"
	return name, os.WriteFile(filepath.Join(m.dir, filepath.FromSlash(name)), doc, fileMode)
}

// judgeCases writes the cases, judges each by its own configuration, and removes those that do not
// come out as recorded.
func (m *maker) judgeCases(ctx context.Context) error {
	if len(m.cases) == 0 {
		return nil
	}

	// By run, which is by time.
	slices.SortFunc(m.cases, func(a, b *taken) int { return cmp.Compare(a.c.Task, b.c.Task) })
	m.suite.Cases = filepath.Join(m.dir, "cases.jsonl")
	m.suite.Tools = filepath.Join(m.dir, m.cases[0].c.Tools)
	if err := m.writeCases(); err != nil {
		return err
	}

	bundles := make(map[string]canonical.Digest)
	for _, t := range m.cases {
		bundles[t.c.ID] = t.bundle
	}

	// A case is judged alone, and may lack what decided about the recorded call.
	result, err := attack.Run(ctx, attack.Options{
		Open:    safefile.ReadTrusted,
		Tools:   m.suite.Tools,
		Cases:   m.suite.Cases,
		Content: func(c *eval.Case) *policy.Content { return m.contents[bundles[c.ID]] },
		Arms:    []attack.Arm{attack.Approvals},
	})
	if err != nil {
		return err
	}

	wrong := make(map[string]string)
	for _, b := range result.Broken {
		wrong[b.Case] = fmt.Sprintf(" (%s): %s", b.Want, b.Got)
	}

	for _, slip := range result.Slips {
		wrong[slip.Case] = ": " + slip.Slip
	}

	m.cases = slices.DeleteFunc(m.cases, func(t *taken) bool {
		mistake, bad := wrong[t.c.ID]
		if bad {
			m.leaveOut(t.path, "judged alone it does not come out as recorded"+mistake)
		}
		return bad
	})

	m.suite.Count = len(m.cases)
	return m.writeCases()
}

func (m *maker) writeCases() error {
	var b bytes.Buffer
	for _, t := range m.cases {
		line, err := t.c.Line()
		if err != nil {
			return err
		}
		b.Write(line)
	}
	return os.WriteFile(m.suite.Cases, b.Bytes(), fileMode)
}
