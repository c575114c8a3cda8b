package gates

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// few are options for a test: enough plans for every class, and a share that no chunk divides.
func few(jobs int) Options { return Options{Plans: 2*chunk + 77, Seed: DefaultSeed, Jobs: jobs} }

func runs(t *testing.T, o Options) (*Report, []byte) {
	t.Helper()
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatalf("Run() error = %v", err)
	}
	doc, err := r.JSON()
	if err != nil {
		t.Fatalf("JSON() error = %v", err)
	}
	return r, doc
}

// A whole run of the evaluation, with what its progress said.
type whole struct {
	report *Report
	doc    []byte
	last   map[string]int // how far each suite came, by its progress
	faults []string
}

// once is the one run that several tests look at.
var once struct {
	sync.Once
	whole
}

func wholeRun(t *testing.T) *whole {
	t.Helper()
	once.Do(func() {
		once.last = make(map[string]int)
		o := few(3)
		o.Progress = func(suite string, done, of int) {
			if once.last[suite] >= done || done > of {
				once.faults = append(once.faults, fmt.Sprintf("progress of %s: %d of %d after %d", suite, done, of, once.last[suite]))
			}
			once.last[suite] = done
		}
		once.report, once.doc = runs(t, o)
	})
	if once.report == nil {
		t.Fatal("the evaluation could not be done")
	}
	return &once.whole
}

// TestNothingSlips is the evaluation itself, on fewer plans.
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
			t.Errorf("%s: %d cases, %d passed, %d slips (%q): %+v", s.Name, s.Cases, s.Passed, s.Slips, s.Counted, s.Slipped)
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
	if most := 300 << 10; len(doc) > most {
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
	_, _, parts := pieces(doc)
	for _, p := range parts {
		var name string
		if err := json.Unmarshal(bytes.TrimSuffix(p.name, []byte(":")), &name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// TestTheSameSeedGivesTheSameBytes, whatever the number of jobs; and another seed gives others.
func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	w := wholeRun(t)
	_, one := runs(t, few(1))
	if !bytes.Equal(one, w.doc) {
		t.Errorf("one job and three differ:\n%s", cmp.Diff(string(one), string(w.doc)))
	}
	other := evaluates(t, real())
	other.options.Seed++
	if diff := cmp.Diff(suiteOf(w.report, "plan_fuzz").Classes, suite(t, other, "plan_fuzz").Classes); diff == "" {
		t.Error("another seed gives the same counts of plans: nothing is drawn")
	}
	for _, c := range groundClasses() {
		payload, summary := c.make(newGen(1, 0))
		again, same := c.make(newGen(1, 0))
		others, _ := c.make(newGen(2, 0))
		if !bytes.Equal(payload, again) || !bytes.Equal(summary, same) || bytes.Equal(payload, others) {
			t.Errorf("summaries of the class %s do not depend on the seed, or on more than it", c.name)
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

// TestPlansDoNotDependOnOneAnother: the ith plan is the same whether the ones before it were made or not, and each class gets
// its share.
func TestPlansDoNotDependOnOneAnother(t *testing.T) {
	e := evaluates(t, real())
	f, err := newFuzzer(e.machine, &e.subject, 7)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[int]int)
	texts := make(map[string]bool)
	var forth [][]byte
	for i := range 600 {
		class, doc := f.plan(i)
		seen[class]++
		texts[string(doc)] = true
		forth = append(forth, doc)
	}
	for i := 599; i >= 0; i-- {
		if _, doc := f.plan(i); !bytes.Equal(doc, forth[i]) {
			t.Fatalf("plan %d is %q, and was %q", i, doc, forth[i])
		}
	}
	if len(seen) != len(f.classes) {
		t.Errorf("%d classes among 600 plans, want all %d", len(seen), len(f.classes))
	}
	if len(texts) < 400 {
		t.Errorf("only %d plans of 600 differ", len(texts))
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
