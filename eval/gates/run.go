package gates

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"pgfsm/states"
)

// Options say how much is generated, and from what.
type Options struct {
	Plans int    // 1 to [MaxPlans]: the plans of plan_fuzz; grounding_fuzz makes a tenth as many summaries
	Seed  uint64 // of everything that is generated
	Jobs  int    // 1 to [MaxJobs]: how many cases are judged at a time; the result does not depend on it

	// Progress is told how far a suite is, out of so many cases; nil if nobody wants to know. It is called by one goroutine
	// at a time.
	Progress func(suite string, done, of int)
}

// Bounds and defaults of [Options].
const (
	DefaultPlans = 100_000
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

// definitions are the suites in the order in which the file has them.
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

// Names are the suites in the order in which the file has them: its top-level keys.
func Names() (names []string) {
	for _, d := range definitions() {
		names = append(names, d.name)
	}
	return names
}

// Run runs every suite. Slips are in the report and no error; an error means that the evaluation itself could not be done,
// or that ctx ended.
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
	machine *states.Machine
	suiting string // the suite that is under way

	mu   sync.Mutex // of the progress
	done int
}

func newEvaluation(ctx context.Context, o Options, s subject) (*evaluation, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	m, err := states.NewMachine()
	if err != nil {
		return nil, err
	}
	return &evaluation{ctx: ctx, options: o, subject: s, machine: m}, nil
}

func (e *evaluation) suite(d definition) (Suite, error) {
	e.suiting, e.done = d.name, 0
	s, err := d.run(e)
	if err == nil {
		err = e.ctx.Err()
	}
	s.Name = d.name
	for i := range s.Slipped {
		s.Slipped[i].Suite = d.name
	}
	return s, err
}

// each does cases 0 to n-1 in parts, as many parts at a time as there are jobs. What a part does may depend on its own number
// and on nothing that another part does.
func (e *evaluation) each(n, size int, do func(part, from, to int)) {
	parts := (n + size - 1) / size
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(e.options.Jobs, parts) {
		wg.Go(func() {
			for e.ctx.Err() == nil {
				part := int(next.Add(1)) - 1
				if part >= parts {
					return
				}
				from := part * size
				to := min(from+size, n)
				do(part, from, to)
				e.progress(to-from, n)
			}
		})
	}
	wg.Wait()
}

func (e *evaluation) progress(more, of int) {
	if e.options.Progress == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done += more
	e.options.Progress(e.suiting, e.done, of)
}

// table runs the cases of a table.
func (e *evaluation) table(counted string, trials []trial) Suite {
	s := Suite{Cases: len(trials), Counted: counted, Results: make([]Result, len(trials))}
	e.each(len(trials), 1, func(_, i, _ int) {
		t := &trials[i]
		got := t.got(t.input)
		s.Results[i] = Result{ID: t.id, Want: t.want, Got: got, OK: got == t.want}
	})
	for i := range s.Results {
		if s.Results[i].OK {
			s.Passed++
			continue
		}
		if s.Slips++; len(s.Slipped) < maxSlipped && e.ctx.Err() == nil {
			s.Slipped = append(s.Slipped, trials[i].slip(s.Results[i].Got))
		}
	}
	return s
}
