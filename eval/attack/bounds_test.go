package attack

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/eval"
)

func TestJobsAreBounded(t *testing.T) {
	o := many(t, 3)
	o.Jobs = MaxJobs
	if r := mustRun(t, o); r.Overall.Cases != 3 {
		t.Errorf("%d cases, want 3", r.Overall.Cases)
	}
	for _, jobs := range []int{MaxJobs + 1, 1 << 60} {
		o.Jobs = jobs
		if r, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "too many") {
			t.Errorf("Run(%d jobs) = %v, %v", jobs, r, err)
		}
	}
}

// TestCasesThatChangeMeanwhile: a file that is shorter or longer than when it was counted is no evaluation of what was asked for.
func TestCasesThatChangeMeanwhile(t *testing.T) {
	o := many(t, 3)
	o.Jobs = 1
	for _, counted := range []int{2, 3, 4} {
		s := &suite{
			o: o, arms: Arms(), rows: rowsOf(o.Machine), files: newFiles(o.Open), sum: newSum(o.Machine, Arms()), tasks: make(map[taskKey]bool),
		}
		var fault *eval.Fault
		if err := s.each(t.Context(), counted); errors.As(err, &fault) != (counted != 3) {
			t.Errorf("each() of 3 cases, where %d were counted: %v", counted, err)
		}
	}
}

// TestAnotherBuildJudgesAnew: what a program found says nothing of one with other gates.
func TestAnotherBuildJudgesAnew(t *testing.T) {
	o := many(t, 3)
	path := filepath.Join(t.TempDir(), "cases.jsonl")
	run := func(build string) string {
		l := mustLog(t, path, true)
		o.Log, o.Build = l, build
		mustRun(t, o)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return string(mustRead(t, path))
	}
	one := run("1")
	forged := strings.Replace(one, `"made":true`, `"made":false`, 1)
	if forged == one {
		forged = strings.Replace(one, `"side":"needs"`, `"side":"wants"`, 1)
	}
	if forged == one {
		t.Fatal("nothing of the log was changed, so this test shows nothing")
	}
	write(t, path, forged)
	if again := run("1"); again != forged {
		t.Error("the same build does not take what is in the log")
	}
	if other := run("2"); other == forged || strings.Count(other, "\n") != strings.Count(one, "\n") {
		t.Errorf("another build takes what is in the log:\n%s", other)
	}
}

func TestTwoAtOnceDoNotShareALog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cases.jsonl")
	l := mustLog(t, path, false)
	for _, resume := range []bool{false, true} {
		if _, err := OpenLog(path, resume); err == nil || !strings.Contains(err.Error(), "another evaluation writes it") {
			t.Errorf("OpenLog(%t) = %v", resume, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	mustLog(t, path, true)
}
