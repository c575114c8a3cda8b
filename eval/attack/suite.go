package attack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"pgfsm/config"
	"pgfsm/eval"
	"pgfsm/fsm"
	"pgfsm/policy/canonical"
	"pgfsm/states"
)

// Options say what is run.
type Options struct {
	Machine *states.Machine
	Open    config.Open // opens bundles, all that they name, and grants

	Tools  string // the tools file
	Cases  string // the cases file
	Bundle string // the pgfsm.yaml of cases that name none; may be empty
	Arms   []Arm  // none: all
	Jobs   int    // units at once, at most [MaxJobs]; less than 1 is 1
	Log    *Log   // nil: nothing is kept
	Build  string // which program judges; what another one judged is not taken from the log

	Progress func(done, all int) // told after each batch of cases; may be nil
}

// batch is how many cases are read, judged and put together at once, for each job. More are never in memory.
const batch = 16

// MaxJobs bounds how many units are judged at once.
const MaxJobs = 1024

// suite is one run of all cases.
type suite struct {
	o     Options
	arms  []Arm
	rows  map[fsm.Mark]int
	files *files
	sum   *sum
	tasks map[taskKey]bool // whose needs were judged
}

// taskKey names a task's unit within a suite, or within all of them.
type taskKey struct {
	suite string // empty: all
	unit  canonical.Digest
}

// Run judges every case and puts the result together. The cases file is read twice: first as a whole, so that what is wrong
// anywhere in it is said before anything is run. A run that is cancelled returns the context's error; what was judged until
// then is in the log.
func Run(ctx context.Context, o Options) (*Result, error) {
	arms, err := chosen(o.Arms)
	if err != nil {
		return nil, err
	}
	if o.Jobs > MaxJobs {
		return nil, fmt.Errorf("%d jobs are too many: at most %d units are judged at once", o.Jobs, MaxJobs)
	}
	all, err := count(ctx, o.Cases)
	if err != nil {
		return nil, err
	}
	if o.Log != nil {
		if err := o.Log.begin(o.Build); err != nil {
			return nil, err
		}
	}
	s := &suite{
		o: o, arms: arms, rows: rowsOf(o.Machine), files: newFiles(o.Open), sum: newSum(o.Machine, arms),
		tasks: make(map[taskKey]bool),
	}
	if s.o.Jobs < 1 {
		s.o.Jobs = 1
	}
	if err := s.each(ctx, all); err != nil {
		return nil, err
	}
	if o.Log != nil {
		if err := o.Log.finish(); err != nil {
			return nil, err
		}
	}
	return s.sum.result(), nil
}

// count reads the whole file and counts its cases.
func count(ctx context.Context, path string) (n int, err error) {
	f, err := openRegular(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for r := eval.NewReader(filepath.ToSlash(path), f); ; n++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if _, err := r.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return 0, err
		}
	}
	if n == 0 {
		return 0, &eval.Fault{File: filepath.ToSlash(path), Problem: "it has no case"}
	}
	return n, nil
}

// each reads the cases, batch by batch.
func (s *suite) each(ctx context.Context, all int) error {
	f, err := openRegular(s.o.Cases)
	if err != nil {
		return err
	}
	defer f.Close()
	name := filepath.ToSlash(s.o.Cases)
	r := eval.NewReader(name, f)
	for done := 0; ; {
		var cases []*judged
		for len(cases) < batch*s.o.Jobs {
			c, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			j, err := s.prepare(c)
			if err != nil {
				return &eval.Fault{File: name, Line: r.Line(), Problem: err.Error()}
			}
			cases = append(cases, j)
		}
		if len(cases) == 0 && done != all {
			return &eval.Fault{File: name, Problem: fmt.Sprintf("it had %d cases, and has %d now", all, done), Remedy: "leave it alone while it is run"}
		}
		if len(cases) == 0 {
			return nil
		}
		if err := s.take(ctx, cases); err != nil {
			return err
		}
		if done += len(cases); s.o.Progress != nil {
			s.o.Progress(done, all)
		}
	}
}

// judged is a case and what has to be judged of it.
type judged struct {
	c     *eval.Case
	units []*unitJob
}

// unitJob is a unit on its way. A task's unit that an earlier case of the suite has had judged is shared by name only: its
// outcome is with the sum, under its digest. The unit of a task that another suite has as well is judged again, for the figures
// of this suite alone.
type unitJob struct {
	unit *unit
	old  bool // judged with an earlier case of the same suite
	both bool // judged with an earlier case of another suite
	out  *unitOutcome
	new  bool // judged now, and not taken from the log
	err  error
}

func (s *suite) prepare(c *eval.Case) (*judged, error) {
	units, err := s.units(c)
	if err != nil {
		return nil, err
	}
	j := &judged{c: c}
	for _, u := range units {
		job := &unitJob{unit: u}
		if u.side == needs {
			here, anywhere := taskKey{c.Suite, u.digest}, taskKey{"", u.digest}
			job.old = s.tasks[here]
			job.both = !job.old && s.tasks[anywhere]
			s.tasks[here], s.tasks[anywhere] = true, true
		}
		if !job.old && !job.both && s.o.Log != nil {
			if job.out, err = s.o.Log.get(u, len(s.arms), len(s.rows)); err != nil {
				return nil, err
			}
		}
		j.units = append(j.units, job)
	}
	return j, nil
}

// take judges what is left to judge of a batch, as many at once as there are jobs, and adds all of it to the sum, in order.
func (s *suite) take(ctx context.Context, cases []*judged) error {
	next := make(chan *unitJob)
	var workers sync.WaitGroup
	for range s.o.Jobs {
		workers.Go(func() {
			for job := range next {
				job.out, job.err = s.judge(ctx, job.unit)
				job.new = job.err == nil && !job.both
			}
		})
	}
	for _, j := range cases {
		for _, job := range j.units {
			if !job.old && job.out == nil {
				next <- job
			}
		}
	}
	close(next)
	workers.Wait()
	return s.keep(cases)
}

// keep puts a batch into the log and the sum. What was judged before something went wrong is kept all the same.
func (s *suite) keep(cases []*judged) error {
	var failed error
	for _, j := range cases {
		for _, job := range j.units {
			switch {
			case job.err != nil:
				failed = errors.Join(failed, job.err)
			case job.new && s.o.Log != nil:
				if err := s.o.Log.put(job.out); err != nil {
					return err
				}
			}
		}
	}
	if failed != nil {
		return first(failed)
	}
	for _, j := range cases {
		if s.o.Log != nil {
			for _, job := range j.units {
				if !job.old && !job.both {
					if err := s.o.Log.use(job.unit.digest); err != nil {
						return err
					}
				}
			}
		}
		s.sum.add(j)
	}
	return nil
}

// first is the first of joined errors: one cancelled context fails many units.
func first(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return first(joined.Unwrap()[0])
	}
	return err
}
