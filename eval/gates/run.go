package gates

import (
	"context"
	"fmt"
	"pgfsm/internal/runner"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Options say how much is generated, and from what.
type Options struct {
	Plans int    // 1 to [MaxPlans]: the plans of plan_fuzz; grounding_fuzz makes a tenth as many summaries
	Seed  uint64 // of everything that is generated
	Jobs  int    // 1 to [MaxJobs]: how many parts are judged at the same time; the result does not depend on it

	// Progress reports how many cases of a suite are judged; it may be nil. One goroutine at a time calls it.
	Progress func(suite string, done, of int)
}

// Bounds and defaults of [Options].
const (
	DefaultPlans = 20_000
	DefaultSeed  = 1
	MaxPlans     = 100_000_000
	MaxJobs      = 1024

	groundingShare = 10 // plans for each generated summary
)

func (o *Options) check() error {
	switch {
	case o.Plans < 1 || o.Plans > MaxPlans:
		return fmt.Errorf("plans: %d is not between 1 and %d", o.Plans, MaxPlans)
	case o.Jobs < 1 || o.Jobs > MaxJobs:
		return fmt.Errorf("jobs: %d is not between 1 and %d", o.Jobs, MaxJobs)
	}
	return nil
}

// A definition is one suite of the evaluation.
type definition struct {
	name string
	run  func(*evaluation) (Suite, error)
}

// definitions are the suites in the order of the result file.
func definitions() []definition {
	return []definition{
		{"policy_gate", screening},
		{"plan_parse", parsing},
		{"plan_gate", planning},
		{"plan_fuzz", planFuzz},
		{"typed_output", typing},
		{"grounding", grounding},
		{"grounding_fuzz", groundingFuzz},
		{"machine", mutating},
		{"schema", schemas},
		{"approval_binding", binding},
		{"policy", deciding},
	}
}

// Names are the suites in the order of the result file: its top-level keys.
func Names() (names []string) {
	for _, d := range definitions() {
		names = append(names, d.name)
	}
	return names
}

// Run runs every suite. Slips are part of the report and no error; an error means that the evaluation could not be done, or that
// ctx ended.
func Run(ctx context.Context, o Options) (*Report, error) {
	return run(ctx, o, real())
}

// run measures a subject, which a test may have broken.
func run(ctx context.Context, o Options, s subject) (*Report, error) {
	e, err := newEvaluation(ctx, o, s)
	if err != nil {
		return nil, err
	}
	r := new(Report)
	for _, d := range definitions() {
		suite, err := e.suite(d)
		if err != nil {
			return nil, fmt.Errorf("suite %s: %w", d.name, err)
		}
		r.Suites = append(r.Suites, suite)
	}
	return r, nil
}

// An evaluation is what all suites share.
type evaluation struct {
	ctx     context.Context
	options Options
	subject subject
	runner  *runner.Runner
	running string // the name of the suite that runs
}

func newEvaluation(ctx context.Context, o Options, s subject) (*evaluation, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	r, err := runner.New(runner.Options{Unrecorded: true})
	if err != nil {
		return nil, err
	}
	return &evaluation{ctx: ctx, options: o, subject: s, runner: r}, nil
}

func (e *evaluation) suite(d definition) (Suite, error) {
	e.running = d.name
	s, err := d.run(e)
	if err == nil {
		err = e.ctx.Err()
	}
	s.Name = d.name
	return s, err
}

// each judges the cases 0 to n-1 in parts of some size. A part must not depend on what another part does.
func (e *evaluation) each(n, size int, do func(part, from, to int)) {
	var group errgroup.Group
	group.SetLimit(e.options.Jobs)
	var mu sync.Mutex
	done := 0
	for part := 0; part*size < n && e.ctx.Err() == nil; part++ {
		group.Go(func() error {
			from, to := part*size, min((part+1)*size, n)
			do(part, from, to)
			if e.options.Progress != nil {
				mu.Lock()
				defer mu.Unlock()
				done += to - from
				e.options.Progress(e.running, done, n)
			}
			return nil
		})
	}
	_ = group.Wait() // no part returns an error
}

// A trial is one case of a table: an input, the right answer, and how to get the answer that the gate gives.
type trial struct {
	id, want string
	input    []byte
	got      func(input []byte) string
}

// table runs the cases of a table.
func (e *evaluation) table(counted string, trials []trial) Suite {
	s := Suite{Cases: len(trials), Counted: counted, Results: make([]Result, len(trials))}
	e.each(len(trials), 1, func(_, i, _ int) {
		t := &trials[i]
		got := t.got(t.input)
		s.Results[i] = Result{ID: t.id, Want: t.want, Got: got, OK: got == t.want}
	})
	for i, r := range s.Results {
		if r.OK {
			s.Passed++
			continue
		}
		s.slip(r.ID, trials[i].input, r.Want, r.Got)
	}
	return s
}
