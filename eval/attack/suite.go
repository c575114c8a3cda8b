package attack

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"pgfsm/eval"
	"pgfsm/internal/canonical"
	"pgfsm/internal/config"
	"pgfsm/internal/runner"
	"pgfsm/policy"
)

// Options select the parts of an evaluation that run.
type Options struct {
	Open config.Open // opens bundles, the files that they name, and grants

	Tools  string // the tools file
	Cases  string // the cases file
	Bundle string // the pgfsm.yaml of cases that name none; may be empty

	Content func(*eval.Case) *policy.Content // the configuration of a case, instead of a bundle; may be nil

	Arms []Arm // none: all
}

// A suite is one run of all cases.
type suite struct {
	o      Options
	runner *runner.Runner
	arms   []Arm
	files  files
	units  []*unit
	tasks  map[canonical.Digest]*unit // the needs of tasks, by digest: each is judged once
}

// A judged case is a case with its units.
type judged struct {
	c     *eval.Case
	units []*unit
}

// Run judges every case and returns the figures. It reads the whole cases file first, and all files
// that cases name, so that a mistake in them is reported before a run begins. If ctx ends, Run
// returns its error.
func Run(ctx context.Context, o Options) (*Result, error) {
	s, err := newSuite(o)
	if err != nil {
		return nil, err
	}
	cases, err := s.readCases()
	if err != nil {
		return nil, err
	}
	if err := s.judgeUnits(ctx); err != nil {
		return nil, err
	}
	return resultOf(s.runner.Machine().Digest(), s.arms, cases), nil
}

func newSuite(o Options) (*suite, error) {
	arms, err := chooseArms(o.Arms)
	if err != nil {
		return nil, err
	}
	r, err := runner.New(runner.Options{Unrecorded: true})
	if err != nil {
		return nil, err
	}
	return &suite{
		o:      o,
		runner: r,
		arms:   arms,
		files:  newFiles(o.Open),
		tasks:  make(map[canonical.Digest]*unit),
	}, nil
}

// readCases reads the cases file and makes the units of every case.
func (s *suite) readCases() (judgedCases []*judged, err error) {
	name := filepath.ToSlash(s.o.Cases)
	text, err := eval.ReadFile(s.o.Cases)
	if err != nil {
		return nil, err
	}
	cases, err := eval.ReadCases(name, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	for _, c := range cases {
		units, err := s.unitsOf(c)
		if err != nil {
			return nil, &eval.Fault{File: name, Problem: fmt.Sprintf("case %q: %v", c.ID, err)}
		}
		judgedCases = append(judgedCases, &judged{c, units})
	}
	return judgedCases, nil
}

// unitsOf reads the files that a case names and makes its units: the task's calls, if it needs any,
// and the attack's.
func (s *suite) unitsOf(c *eval.Case) (units []*unit, err error) {
	pathOf := func(name string) string { return filepath.Join(filepath.Dir(s.o.Cases), filepath.FromSlash(name)) }
	base := unit{c: c}
	tools, bundle := s.o.Tools, s.o.Bundle
	if c.Tools != "" {
		tools = pathOf(c.Tools)
	}

	if c.Bundle != "" {
		bundle = pathOf(c.Bundle)
	}

	if base.tools, err = s.files.toolsAt(tools); err != nil {
		return nil, err
	}
	if base.usual, err = s.files.toolsAt(s.o.Tools); err != nil {
		return nil, err
	}

	switch {
	case s.o.Content != nil:
		base.config, err = newConfig(s.o.Cases, s.o.Content(c))
	case bundle == "":
		err = errors.New("the case names no bundle, and none is given for all cases; use --bundle")
	default:
		base.config, err = s.files.configAt(bundle)
	}

	if err != nil {
		return nil, err
	}

	if c.Grant != "" {
		if base.grant, err = s.files.grantAt(pathOf(c.Grant)); err != nil {
			return nil, err
		}
	}

	if c.Approved != nil && c.Approved.Bundle != "" {
		if base.then, err = s.files.configAt(pathOf(c.Approved.Bundle)); err != nil {
			return nil, err
		}
	}

	// The calls of the task and those of the attack are judged apart.
	for _, side := range []side{needs, wants} {
		u := base
		u.side = side
		if len(u.calls()) == 0 {
			continue
		}
		if err := u.sumInputs(s.runner.Machine().Digest(), s.arms); err != nil {
			return nil, err
		}
		shared, err := s.judgedUnit(&u)
		if err != nil {
			return nil, err
		}
		units = append(units, shared)
	}

	return units, nil
}

// judgedUnit returns the unit that is judged: for a task's calls that of the first case that needs
// them.
func (s *suite) judgedUnit(u *unit) (*unit, error) {
	if first := s.tasks[u.digest]; first != nil && u.side == needs {
		return first, nil
	}

	for _, arm := range s.arms {
		t := &trial{runner: s.runner, arm: arm, unit: u}
		var err error
		if arm != Naive {
			t.setting, err = s.files.settingOf(arm, u.config, u.grant, u.tools)
		}
		if err != nil {
			return nil, err
		}
		if arm == Approvals && u.c.Approved != nil {
			if t.approved, err = s.files.settingOf(arm, cmp.Or(u.then, u.config), u.grant, u.usual); err != nil {
				return nil, err
			}
		}
		u.trials = append(u.trials, t)
	}

	if u.side == needs {
		s.tasks[u.digest] = u
	}

	s.units = append(s.units, u)
	return u, nil
}

// judgeUnits takes the calls of every unit through every arm.
func (s *suite) judgeUnits(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, u := range s.units {
		group.Go(func() error {
			for _, t := range u.trials {
				outcome, err := t.tryCalls(ctx)
				if err != nil {
					return err
				}
				u.arms = append(u.arms, outcome)
			}
			return nil
		})
	}
	return group.Wait()
}
