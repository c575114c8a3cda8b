// Package gates measures each gate alone, without a model, servers or a network. Each suite takes
// one gate, or the whole machine around it, through cases whose right answer is known (package
// policy/corpus), and counts wrong answers. A gate alone is called as a function; the machine is
// run by a [runner.Runner], which records nothing.
//
// A wrong answer is a slip: the gate allows what it must refuse, or refuses what it must allow. The
// result holds no time: it has the same bytes on any machine.
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
	name    string
	counted string // the things that are counted
	trials  func(*evaluation) ([]trial, error)
}

// definitions are the suites in the order of the result.
func definitions() []definition {
	return []definition{
		{"policy_gate", "requests: 20 that must be refused, each in 15 disguises, 35 that must pass, and some of odd size or encoding", screeningTrials},
		{"plan_parse", "outputs of a planner, with the plan or the code that each must get", parsingTrials},
		{"plan_gate", "whole runs: a plan in a small world, and how the run must end", planTrials},
		{"typed_output", "results of a call, and whether their content is of the registered type", typingTrials},
		{"grounding", "summaries of a typed payload, and the verdict that the evidence gate must give", groundingTrials},
		{"machine", "broken copies of the machine's table", mutantTrials},
		{"schema", "schemas and documents, and whether each may be used", schemaTrials},
		{"approval_binding", "approvals: one unchanged, the others with one part changed", bindingTrials},
		{"policy", "calls that risk rules and policies decide about", decisionTrials},
	}
}

// Run runs every suite. Slips are part of the report and no error; an error means that the
// evaluation could not be done, or that ctx ended.
func Run(ctx context.Context) (*Report, error) {
	e, err := newEvaluation(realSubject())
	if err != nil {
		return nil, err
	}
	r := &Report{Format: Format}
	for _, d := range definitions() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := e.runSuite(d)
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
	plain, err := policy.Compile(plainContent())
	return &evaluation{s, r, plain}, err
}

// A trial is one case: an input, the right answer, and how to get the answer that the gate gives.
type trial struct {
	id, want string
	input    []byte
	got      func(input []byte) string
}

// runSuite judges the cases of a suite, several at the same time.
func (e *evaluation) runSuite(d definition) (Suite, error) {
	trials, err := d.trials(e)
	if err != nil {
		return Suite{}, fmt.Errorf("suite %s: %w", d.name, err)
	}

	answers := make([]string, len(trials))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))

	for i, t := range trials {
		group.Go(func() error {
			answers[i] = t.got(t.input)
			return nil
		})
	}

	_ = group.Wait() // no trial returns an error

	s := Suite{Name: d.name, Cases: len(trials), Counted: d.counted}
	for i, t := range trials {
		if answers[i] != t.want {
			s.addSlip(t.id, t.input, t.want, answers[i])
		}
	}

	return s, nil
}

// codeOf is the answer of a gate in one word: otherwise, if it allows.
func codeOf(v policy.Verdict, otherwise string) string {
	if v.Allows() {
		return otherwise
	}
	return string(v.Code)
}
