package gates

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// few are options for a test: enough plans for every class, and a number that no chunk divides.
func few(jobs int) Options { return Options{Plans: 2*chunk + 77, Seed: DefaultSeed, Jobs: jobs} }

// A whole run of the evaluation, with its progress.
type whole struct {
	report *Report
	doc    []byte
	last   map[string]int // the last progress of each suite
	faults []string
}

// once is the one run that several tests share.
var once struct {
	sync.Once
	whole
}

func wholeRun(t *testing.T) *whole {
	t.Helper()
	once.Do(func() {
		once.last = make(map[string]int)
		o := Options{Plans: DefaultPlans, Seed: DefaultSeed, Jobs: 3}
		o.Progress = func(suite string, done, of int) {
			if once.last[suite] >= done || done > of {
				once.faults = append(once.faults, fmt.Sprintf("progress of %s: %d of %d after %d", suite, done, of, once.last[suite]))
			}
			once.last[suite] = done
		}
		r, err := Run(context.Background(), o)
		if err != nil {
			t.Fatalf("Run() error = %v", err)
		}
		if once.doc, err = r.JSON(); err != nil {
			t.Fatalf("JSON() error = %v", err)
		}
		once.report = r
	})
	if once.report == nil {
		t.Fatal("the evaluation could not be done")
	}
	return &once.whole
}

// TestNothingSlips is the evaluation itself.
func TestNothingSlips(t *testing.T) {
	var names []string
	w := wholeRun(t)
	r, doc, last := w.report, w.doc, w.last
	for _, fault := range w.faults {
		t.Error(fault)
	}
	for _, s := range r.Suites {
		names = append(names, s.Name)
		if s.Cases == 0 || s.Passed != s.Cases || s.Slips != 0 || len(s.Slipped) != 0 || s.Counted == "" {
			t.Errorf("%s: %d cases, %d passed, %d slips (%q)", s.Name, s.Cases, s.Passed, s.Slips, s.Counted)
		}
		if last[s.Name] != s.Cases {
			t.Errorf("%s: progress ended at %d of %d cases", s.Name, last[s.Name], s.Cases)
		}
		for _, c := range s.Classes {
			if c.Cases == 0 || c.Allowed+c.Asked+c.Blocked != c.Cases {
				t.Errorf("%s: class %+v does not add up", s.Name, c)
			}
		}
	}
	if diff := cmp.Diff(Names(), names); diff != "" {
		t.Errorf("suites (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Names(), topLevel(t, doc)); diff != "" {
		t.Errorf("top-level keys of the file (-want +got):\n%s", diff)
	}
	if most := 200 << 10; len(doc) > most {
		t.Errorf("the file has %d bytes, want at most %d", len(doc), most)
	}
	for _, id := range []string{"disallowed_tool_by_allowlist", "final_answer_needs_more_info_true"} {
		if !slices.ContainsFunc(suiteOf(r, "plan_gate").Results, func(c Result) bool { return c.ID == id && c.OK }) {
			t.Errorf("plan_gate has no case %s that is as it must be", id)
		}
	}
	if n := suiteOf(r, "plan_fuzz").BlockedByAllowlist; n == nil || *n == 0 {
		t.Error("plan_fuzz blocked nothing by the allowlist")
	}
}

func suiteOf(r *Report, name string) *Suite {
	for i := range r.Suites {
		if r.Suites[i].Name == name {
			return &r.Suites[i]
		}
	}
	return &Suite{}
}

func topLevel(t *testing.T, doc []byte) (names []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^ "([a-z_]+)": \{$`).FindAllSubmatch(doc, -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// TestCommittedResult: the file that docs/guide/evaluation.md speaks of is the command's output of today, with any number of jobs.
// `make eval` writes it.
func TestCommittedResult(t *testing.T) {
	want, err := os.ReadFile("../results/offline_gate_eval.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(wholeRun(t).doc, want) {
		t.Errorf("the result has changed: look at git diff eval/results/ after `make eval`, and commit it")
	}
}

// TestAnotherSeedGivesOtherCases, and the same seed the same ones.
func TestAnotherSeedGivesOtherCases(t *testing.T) {
	one := evaluates(t, real())
	other := evaluates(t, real())
	other.options.Seed++
	if diff := cmp.Diff(suite(t, one, "plan_fuzz").Classes, suite(t, other, "plan_fuzz").Classes); diff == "" {
		t.Error("another seed gives the same counts of plans: nothing is drawn")
	}
	for _, c := range append(planClasses(), groundClasses()...) {
		one, again, others := c.draw(newGen(1, 0)), c.draw(newGen(1, 0)), 0
		for seed := range uint64(20) {
			if !cmp.Equal(one, c.draw(newGen(2+seed, 0)), cmp.AllowUnexported(sample{})) {
				others++
			}
		}
		if !cmp.Equal(one, again, cmp.AllowUnexported(sample{})) || others == 0 {
			t.Errorf("the class %s does not depend on the seed, or on more than it", c.name)
		}
	}
}

func TestOptionsHaveBounds(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    Options
		ok   bool
	}{
		{"least", Options{Plans: 1, Jobs: 1}, true},
		{"most", Options{Plans: MaxPlans, Jobs: MaxJobs}, true},
		{"zero", Options{}, false},
		{"no-plans", Options{Jobs: 1}, false},
		{"no-jobs", Options{Plans: 1}, false},
		{"plans-one-past", Options{Plans: MaxPlans + 1, Jobs: 1}, false},
		{"jobs-one-past", Options{Plans: 1, Jobs: MaxJobs + 1}, false},
		{"negative", Options{Plans: -1, Jobs: -1}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := newEvaluation(context.Background(), tc.o, real()); (err == nil) != tc.ok {
				t.Errorf("newEvaluation(%+v) error = %v, want ok %t", tc.o, err, tc.ok)
			}
		})
	}
}

// TestAnEvaluationThatIsStopped ends with the cause, and with no report that could be taken for a whole one.
func TestAnEvaluationThatIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	o := few(2)
	o.Progress = func(suite string, _, _ int) {
		if suite == "plan_fuzz" {
			stop()
		}
	}
	if r, err := Run(ctx, o); !errors.Is(err, context.Canceled) || r != nil {
		t.Errorf("Run() = %v, %v, want %v", r, err, context.Canceled)
	}
}

// TestSamplesAreIndependent: the ith case is the same in any order, and each class has its share.
func TestSamplesAreIndependent(t *testing.T) {
	f, err := evaluates(t, real()).planFuzzer()
	if err != nil {
		t.Fatal(err)
	}
	const n = 600
	classes, texts := make(map[int]int), make(map[string]bool)
	all := make([]sample, n)
	for i := range all {
		var class int
		class, all[i] = f.sample(i)
		classes[class]++
		texts[string(all[i].input)] = true
	}
	for i := n - 1; i >= 0; i-- {
		if _, s := f.sample(i); !bytes.Equal(s.input, all[i].input) {
			t.Fatalf("plan %d is %q, and was %q", i, s.input, all[i].input)
		}
	}
	if len(classes) != len(f.classes) || len(texts) < n*2/3 {
		t.Errorf("%d plans have %d of %d classes, and %d texts", n, len(classes), len(f.classes), len(texts))
	}
}

// TestTables holds the tables to what their readers assume.
func TestTables(t *testing.T) {
	for _, s := range wholeRun(t).report.Suites {
		seen := make(map[string]bool)
		for _, c := range s.Results {
			if seen[c.ID] || strings.Trim(c.ID, "abcdefghijklmnopqrstuvwxyz0123456789_/+") != "" {
				t.Errorf("%s has the case %q twice, or its name is odd", s.Name, c.ID)
			}
			seen[c.ID] = true
		}
	}
	cases, err := load[planCase]("plan_gate")
	if err != nil {
		t.Fatal(err)
	}
	worlds := setups()
	for _, c := range cases {
		delete(worlds, c.World)
	}
	if len(worlds) > 0 {
		t.Errorf("no case of plan_gate is in the worlds %v", worlds)
	}
	harmful, err := load[screenCase]("policy_gate")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range harmful {
		if c.Core != "" && !strings.Contains(strings.ToLower(c.Text), c.Core) {
			t.Errorf("the request %s does not hold its core %q", c.ID, c.Core)
		}
	}
}

func evaluates(t *testing.T, s subject) *evaluation {
	t.Helper()
	e, err := newEvaluation(context.Background(), few(2), s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
