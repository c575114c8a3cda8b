// Package gates measures each gate alone, without a model, servers or a network. Each suite takes one gate, or the whole machine
// around it, through cases whose right answer is known (package policy/corpus), and counts wrong answers. A gate alone is called as a
// function; the machine is run by a [runner.Runner], which records nothing.
//
// A wrong answer is a slip: the gate allows what it must refuse, or refuses what it must allow. The result holds no time: it has the
// same bytes on any machine.
package gates

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"pgfsm/internal/runner"
	"pgfsm/policy"
)

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
		{"typed_output", typing},
		{"grounding", grounding},
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
func Run(ctx context.Context) (*Report, error) {
	e, err := newEvaluation(real())
	if err != nil {
		return nil, err
	}
	r := new(Report)
	for _, d := range definitions() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := e.suite(d)
		if err != nil {
			return nil, err
		}
		r.Suites = append(r.Suites, s)
	}
	return r, nil
}

// An evaluation holds the parts that all suites share.
type evaluation struct {
	subject subject
	runner  *runner.Runner
	plain   *policy.Bundle
}

func newEvaluation(s subject) (*evaluation, error) {
	r, err := runner.New(runner.Options{Unrecorded: true})
	if err != nil {
		return nil, err
	}
	plain, err := policy.Compile(content())
	return &evaluation{s, r, plain}, err
}

func (e *evaluation) suite(d definition) (Suite, error) {
	s, err := d.run(e)
	if err != nil {
		return Suite{}, fmt.Errorf("suite %s: %w", d.name, err)
	}
	s.Name = d.name
	return s, nil
}

// A trial is one case: an input, the right answer, and how to get the answer that the gate gives.
type trial struct {
	id, want string
	input    []byte
	got      func(input []byte) string
}

// judge judges the cases of a suite, several at the same time.
func judge(counted string, trials []trial) Suite {
	s := Suite{Cases: len(trials), Counted: counted, Results: make([]Result, len(trials))}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, t := range trials {
		group.Go(func() error {
			got := t.got(t.input)
			s.Results[i] = Result{ID: t.id, Want: t.want, Got: got, OK: got == t.want}
			return nil
		})
	}
	_ = group.Wait() // no trial returns an error
	for i, r := range s.Results {
		if r.OK {
			s.Passed++
		} else {
			s.slip(r.ID, trials[i].input, r.Want, r.Got)
		}
	}
	return s
}

// codeOf is the answer of a gate in one word: otherwise, if it allows.
func codeOf(v policy.Verdict, otherwise string) string {
	if v.Allows() {
		return otherwise
	}
	return string(v.Code)
}
