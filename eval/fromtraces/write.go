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
	"runtime"
	"slices"

	"pgfsm/eval"
	"pgfsm/eval/attack"
	"pgfsm/internal/canonical"
	"pgfsm/internal/config"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"

	"golang.org/x/sync/errgroup"
)

const (
	fileMode = 0o600
	dirMode  = 0o700
)

// A Suite is the cases of traces whose bundles judge alike.
type Suite struct {
	Cases   string             `json:"cases"`          // the file of cases
	Tools   string             `json:"tools"`          // a tools file of one of them; each case names its own
	Bundles []canonical.Digest `json:"bundle_digests"` // the digests of the traces' bundles, sorted
	Count   int                `json:"case_count"`     // cases in the file
	Checked bool               `json:"checked"`        // each case was judged by the traces' own bundle, and came out as recorded
}

// Left is a trace that is no case.
type Left struct {
	Path   string `json:"path"`
	RunID  string `json:"run_id,omitzero"`
	Reason string `json:"reason"`
}

// A Maker takes traces and writes suites. It is used by one goroutine.
type Maker struct {
	dir    string
	groups map[canonical.Digest]*group
	order  []*group
	runs   map[string]canonical.Digest // heads by run
	left   []Left
}

// group is a suite on its way.
type group struct {
	digest  canonical.Digest
	content policy.Content
	bundles []canonical.Digest
	cases   []*taken
}

// taken is a trace that became a case.
type taken struct {
	path string
	c    *eval.Case
}

// ErrTaken means that the folder for the suites holds something already.
var ErrTaken = errors.New("it is not empty: name a folder that is not there yet")

// NewMaker writes to a folder that is not there yet, or empty.
func NewMaker(dir string) (*Maker, error) {
	found, err := os.ReadDir(dir)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("%s: %w", filepath.ToSlash(dir), ErrTaken)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(dir, dirMode)
	}
	if err != nil {
		return nil, err
	}
	return &Maker{dir: dir, groups: make(map[canonical.Digest]*group), runs: make(map[string]canonical.Digest)}, nil
}

// maxBatch is the number of traces that are in memory at once.
const maxBatch = 64

// AddFiles executes trace files again, several at the same time, and adds them in their order. bad are those that do not replay. done is
// called after each file, by several goroutines.
func (m *Maker) AddFiles(ctx context.Context, p *traces.Replayer, paths []string, done func()) (bad []traces.Checked, err error) {
	type checked struct {
		traces.Checked
		trace *traces.Trace
		run   *states.Run
	}
	for batch := range slices.Chunk(paths, maxBatch) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		all := make([]checked, len(batch))
		var group errgroup.Group
		group.SetLimit(runtime.GOMAXPROCS(0))
		for i, path := range batch {
			group.Go(func() error {
				all[i].Checked, all[i].trace, all[i].run = p.CheckFile(path, "")
				done()
				return nil
			})
		}
		_ = group.Wait() // no function returns an error
		for i, c := range all {
			if !c.OK {
				bad = append(bad, c.Checked)
			} else if err := m.Add(batch[i], c.trace, c.run); err != nil {
				return nil, fmt.Errorf("%s: %w", batch[i], err)
			}
		}
	}
	return bad, nil
}

// Add takes a trace and the run that it was executed again as. A trace that becomes no case is remembered as left out.
func (m *Maker) Add(path string, t *traces.Trace, run *states.Run) error {
	err := m.add(path, t, run)
	var none errNoCase
	if errors.As(err, &none) {
		m.left = append(m.left, Left{filepath.ToSlash(path), run.ID(), none.Error()})
		return nil
	}
	return err
}

func (m *Maker) add(path string, t *traces.Trace, run *states.Run) error {
	if head, ok := m.runs[run.ID()]; ok {
		if head == t.Head {
			return errNoCase("the same trace was there already")
		}
		return errNoCase("another trace of the same run was there already")
	}
	c, err := convert(t, run)
	if err != nil {
		return err
	}
	tools, err := toolsOf(t, run)
	if err != nil {
		return err
	}
	d := divide(run.Bundle().Content())
	if c.Tools, err = m.keep("tools-", tools); err != nil {
		return err
	}
	if d.grant != nil {
		doc, err := encodeGrant(d.grant)
		if err != nil {
			return errNoCase(err.Error())
		}
		if c.Grant, err = m.keep("grants/", doc); err != nil {
			return err
		}
	}
	if err := fits(c); err != nil {
		return err
	}
	digest, err := d.digest()
	if err != nil {
		return err
	}
	g := m.groups[digest]
	if g == nil {
		g = &group{digest: digest, content: d.content}
		m.groups[digest], m.order = g, append(m.order, g)
	}
	if b := run.Bundle().Digest(); !slices.Contains(g.bundles, b) {
		g.bundles = append(g.bundles, b)
	}
	g.cases = append(g.cases, &taken{path, c})
	m.runs[run.ID()] = t.Head
	return nil
}

// fits sees to it that the case can be read back.
func fits(c *eval.Case) error {
	line, err := c.Line()
	if err == nil {
		_, err = eval.ReadCases("cases", bytes.NewReader(line))
	}
	if err != nil {
		return errNoCase("it does not fit into a cases file: " + err.Error())
	}
	return nil
}

// keep writes a document under the name of its digest, once.
func (m *Maker) keep(prefix string, doc []byte) (name string, err error) {
	name = prefix + canonical.Sum("suite file", doc).Short() + ".json"
	path := filepath.Join(m.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return "", err
	}
	return name, os.WriteFile(path, doc, fileMode)
}

// Finish writes the suites, judges each by its own bundle, and returns the suites and the traces that are no case, sorted by path.
// open reads grants.
func (m *Maker) Finish(ctx context.Context, open config.Open) ([]Suite, []Left, error) {
	slices.SortFunc(m.order, func(a, b *group) int { return cmp.Compare(a.digest, b.digest) })
	suites := []Suite{}
	for _, g := range m.order {
		s, err := m.finish(ctx, g, open)
		if err != nil {
			return nil, nil, err
		}
		if s.Count > 0 {
			suites = append(suites, s)
		}
	}
	slices.SortFunc(m.left, func(a, b Left) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Reason, b.Reason)) })
	return suites, m.left, nil
}

func (m *Maker) finish(ctx context.Context, g *group, open config.Open) (Suite, error) {
	slices.Sort(g.bundles)
	slices.SortFunc(g.cases, func(a, b *taken) int { return cmp.Compare(a.c.Task, b.c.Task) }) // by run, which is by time
	s := Suite{
		Cases: filepath.Join(m.dir, "cases-"+g.digest.Short()+".jsonl"), Tools: filepath.Join(m.dir, g.cases[0].c.Tools), Bundles: g.bundles,
	}
	if err := writeCases(s.Cases, g.cases); err != nil {
		return s, err
	}
	if err := m.check(ctx, g, &s, open); err != nil {
		return s, err
	}
	s.Count = len(g.cases)
	return s, nil
}

func writeCases(path string, cases []*taken) error {
	var b bytes.Buffer
	for _, t := range cases {
		line, err := t.c.Line()
		if err != nil {
			return err
		}
		b.Write(line)
	}
	return os.WriteFile(path, b.Bytes(), fileMode)
}

// check judges every case by the traces' own bundle, and removes cases that do not come out as recorded.
func (m *Maker) check(ctx context.Context, g *group, s *Suite, open config.Open) error {
	result, err := attack.Run(ctx, attack.Options{
		Open: open, Tools: s.Tools, Cases: s.Cases, Content: &g.content, Arms: []attack.Arm{attack.Approvals},
	})
	if err != nil {
		return err
	}
	wrong := make(map[string]string)
	for _, b := range result.Broken {
		wrong[b.Case] = fmt.Sprintf("judged alone it does not come out as recorded (%s): %s", b.Want, b.Got)
	}
	for _, slip := range result.Slips {
		wrong[slip.Case] = "judged alone it does not come out as recorded: " + slip.Slip
	}
	s.Checked = true
	if len(wrong) == 0 {
		return nil
	}
	g.cases = slices.DeleteFunc(g.cases, func(t *taken) bool {
		why, bad := wrong[t.c.ID]
		if bad {
			m.left = append(m.left, Left{filepath.ToSlash(t.path), t.c.Task, why})
		}
		return bad
	})
	if len(g.cases) == 0 {
		return os.Remove(s.Cases)
	}
	return writeCases(s.Cases, g.cases)
}
