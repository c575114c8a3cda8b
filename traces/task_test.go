package traces_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/traces"
)

func openTask(t *testing.T, dir, id string) *traces.TaskFile {
	t.Helper()
	f, err := traces.OpenTask(t.Context(), dir, id, nil)
	if err != nil {
		t.Fatalf("OpenTask(%q) = %v", id, err)
	}
	return f
}

func closeTask(t *testing.T, f *traces.TaskFile) {
	t.Helper()
	check.NoError(t, f.Close())
}

func TestTaskRemembersCalls(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "traces")
	f := openTask(t, dir, "nightly")
	if n := len(f.Task().Calls); n != 0 {
		t.Fatalf("a new task has %d entries, want 0", n)
	}
	for _, tool := range []string{"a", "b", "a"} {
		check.NoError(t, f.Count("s", tool))
	}
	closeTask(t, f)
	f = openTask(t, dir, "nightly")
	want := &policy.Task{ID: "nightly", Calls: []policy.TaskCalls{{Calls: 2, Server: "s", Tool: "a"}, {Calls: 1, Server: "s", Tool: "b"}}}
	if d := cmp.Diff(want, f.Task()); d != "" {
		t.Errorf("Task() (-want +got):\n%s", d)
	}
	other := openTask(t, dir, "another")
	if n := len(other.Task().Calls); n != 0 {
		t.Errorf("another task has %d entries, want 0", n)
	}
	closeTask(t, other)
	closeTask(t, f)
}

// TestTaskIsHeldByOneRun: the second run of a task waits until the first has ended, or until its
// own time is over.
func TestTaskIsHeldByOneRun(t *testing.T) {
	dir := t.TempDir()
	first := openTask(t, dir, "one")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f, err := traces.OpenTask(ctx, dir, "one", nil); err == nil {
		t.Fatalf("OpenTask() of a task that is held = %v, want an error when the time is over", f)
	}
	waits, got := make(chan struct{}), make(chan *traces.TaskFile, 1)
	go func() {
		f, err := traces.OpenTask(t.Context(), dir, "one", func() { close(waits) })
		if err != nil {
			t.Error(err)
		}
		got <- f
	}()
	<-waits
	check.NoError(t, first.Count("s", "t"))
	closeTask(t, first)
	second := <-got
	if calls := second.Task().Calls; len(calls) != 1 {
		t.Errorf("the run that waited sees %v, want the call of the first", calls)
	}
	closeTask(t, second)
}

func TestTaskFileThatIsBroken(t *testing.T) {
	dir := t.TempDir()
	f := openTask(t, dir, "x")
	check.NoError(t, f.Count("s", "t"))
	closeTask(t, f)
	found, err := filepath.Glob(filepath.Join(dir, "task_*.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("Glob() = %v, %v, want one file", found, err)
	}
	good, err := os.ReadFile(found[0])
	check.NoError(t, err)
	for _, tt := range []struct{ name, text string }{
		{"empty", ""},
		{"cut", string(good[:len(good)/2])},
		{"duplicate-member", strings.Replace(string(good), `"id"`, `"id":"x","id"`, 1)},
		{"unknown-member", strings.Replace(string(good), `"id"`, `"more":1,"id"`, 1)},
		{"of-another-task", strings.Replace(string(good), `"x"`, `"y"`, 1)},
		{"of-another-format", strings.Replace(string(good), traces.TaskFormat, "pgfsm.task/v2", 1)},
		{"counts-nothing", strings.Replace(string(good), `"calls":1`, `"calls":0`, 1)},
		{"counts-more-than-possible", strings.Replace(string(good), `"calls":1`, `"calls":9223372036854775807`, 1)},
		{"tool-twice", strings.Replace(string(good), `"calls":[`, `"calls":[{"calls":1,"server":"s","tool":"t"},`, 1)},
		{"counts-less-than-nothing", strings.Replace(string(good), `"calls":1`, `"calls":-1`, 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.text == string(good) {
				t.Fatal("the case changes nothing")
			}
			check.NoError(t, os.WriteFile(found[0], []byte(tt.text), 0o600))
			if f, err := traces.OpenTask(t.Context(), dir, "x", nil); err == nil || !strings.Contains(err.Error(), found[0]) {
				t.Errorf("OpenTask() = %v, %v, want an error that names the file", f, err)
			}
		})
	}
}

func TestTaskIDs(t *testing.T) {
	for _, tt := range []struct {
		name, id string
		ok       bool
	}{
		{"word", "nightly", true},
		{"words-and-slashes", "../../etc/pass wd é", true}, // the file is named by a digest
		{"at-the-limit", strings.Repeat("x", policy.MaxTaskBytes), true},
		{"one-past", strings.Repeat("x", policy.MaxTaskBytes+1), false},
		{"empty", "", false},
		{"line-end", "a\nb", false},
		{"not-utf8", "a\xff", false},
		{"bidi", "a\u202eb", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := traces.CheckTaskID(tt.id); (err == nil) != tt.ok {
				t.Errorf("CheckTaskID(%q) = %v, want ok %t", tt.id, err, tt.ok)
			}
		})
	}
}

// TestTaskThatIsTakenAwayIsNotCounted: whoever removes the lock, the counts or the folder under a
// run, or lets another run in that way, makes this run stop before its call.
func TestTaskThatIsTakenAwayIsNotCounted(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, dir string)
	}{
		{"lock-removed", func(t *testing.T, dir string) { removeAll(t, dir, "task_*.lock") }},
		{"lock-removed-and-taken-by-another", func(t *testing.T, dir string) {
			removeAll(t, dir, "task_*.lock")
			other := openTask(t, dir, "one")
			if err := other.Count("s", "t"); err != nil {
				t.Error(err)
			}
			closeTask(t, other)
		}},
		{"counts-removed", func(t *testing.T, dir string) { removeAll(t, dir, "task_*.json") }},
		{"folder-renamed", func(t *testing.T, dir string) {
			check.NoError(t, os.Rename(dir, dir+".old"))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "traces")
			f := openTask(t, dir, "one")
			if err := f.Count("s", "other"); err != nil { // as long as nothing is taken away it counts
				t.Fatal(err)
			}
			tt.do(t, dir)
			if err := f.Count("s", "t"); err == nil {
				t.Error("Count() = nil, want an error: the task is not this run's any more")
			}
			closeTask(t, f)
		})
	}
}

func removeAll(t *testing.T, dir, pattern string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("Glob(%s) = %v, %v, want files", pattern, found, err)
	}
	for _, path := range found {
		check.NoError(t, os.Remove(path))
	}
}
