package traces

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gofrs/flock"

	"pgfsm/internal/canonical"
	"pgfsm/internal/safefile"
	"pgfsm/policy"
	"pgfsm/states"
)

// TaskFormat names the shape of a task's file.
const TaskFormat = "pgfsm.task/v1"

// maxTaskFile bounds the size of a task's file that is read, in bytes.
const maxTaskFile = 16 << 20

// taskPoll is the time between two checks whether another run of the task has ended.
const taskPoll = 20 * time.Millisecond

// errTaskTaken means that another run may have used the task at the same time.
var errTaskTaken = errors.New("the task's lock or counts were changed under this run, so that its call could not be counted")

// A TaskFile stores, beside the traces, how many calls the runs of one task have begun. Its owner
// holds a lock from reading the counts to the end of the run, so that two runs of a task cannot
// both make the last call.
type TaskFile struct {
	path string
	task policy.Task
	lock *flock.Flock
}

// taskDocument is the content of the file.
type taskDocument struct {
	Calls  []policy.TaskCalls `json:"calls"`
	Format string             `json:"format"`
	ID     string             `json:"id"`
}

// CheckTaskID checks the name of a task: 1 to [policy.MaxTaskBytes] bytes of printable UTF-8.
func CheckTaskID(id string) error {
	hidden := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	if id == "" || len(id) > policy.MaxTaskBytes || strings.IndexFunc(id, hidden) >= 0 {
		return fmt.Errorf("the task's id must have 1 to %d bytes of text that can be shown", policy.MaxTaskBytes)
	}
	return nil
}

// OpenTask locks the task for one run and reads its counts. It waits for another run of the task
// until ctx is done; it calls waiting once if it has to wait. waiting may be nil.
func OpenTask(ctx context.Context, dir, id string, waiting func()) (*TaskFile, error) {
	if err := CheckTaskID(id); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, fmt.Errorf("the traces folder cannot be made: %w (set traces.dir or SAFE_TRACE_DIR)", err)
	}

	name := taskName(dir, id)
	t := &TaskFile{path: name + ".json", lock: flock.New(name+".lock", flock.SetPermissions(fileMode))}
	if err := t.lockFile(ctx, waiting); err != nil {
		return nil, fmt.Errorf("the task %q cannot be taken: %w", id, errors.Join(err, t.lock.Close()))
	}
	if !safefile.IsCurrent(t.lock, t.lock.Path()) { // the file was removed while this run waited for the lock
		return nil, fmt.Errorf("the task %q cannot be taken: %w", id, errors.Join(errTaskTaken, t.lock.Close()))
	}

	calls, err := t.readCalls(id)
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}

	t.task = policy.Task{Calls: calls, ID: id}
	return t, nil
}

// lockFile locks the task. If another run has the lock, lockFile calls waiting, unless it is nil,
// and waits until ctx is done.
func (t *TaskFile) lockFile(ctx context.Context, waiting func()) error {
	if locked, err := t.lock.TryLock(); err != nil || locked {
		return err
	}
	if waiting != nil {
		waiting()
	}
	_, err := t.lock.TryLockContext(ctx, taskPoll) // without the lock, it returns the error of ctx
	return err
}

// ReadTask returns the current state of a task. It locks nothing and writes nothing.
func ReadTask(dir, id string) (*policy.Task, error) {
	t := &TaskFile{path: taskName(dir, id) + ".json"}
	calls, err := t.readCalls(id)
	return &policy.Task{ID: id, Calls: calls}, err
}

// taskName returns the path of a task's files without the suffix.
func taskName(dir, id string) string {
	return filepath.Join(dir, "task_"+strings.TrimPrefix(string(canonical.Sum("task", []byte(id))), "sha256:"))
}

func (t *TaskFile) readCalls(id string) ([]policy.TaskCalls, error) {
	unreadable := func(err error) ([]policy.TaskCalls, error) {
		return nil, fmt.Errorf("%s holds the task's counts and cannot be read, so nothing is called: %w; "+
			"mend it, or use another task id", t.path, err)
	}
	info, err := os.Lstat(t.path)

	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []policy.TaskCalls{}, nil
	case err != nil:
		return unreadable(err)
	case !info.Mode().IsRegular():
		return unreadable(errors.New("it is not a regular file"))
	case info.Size() > maxTaskFile:
		return unreadable(fmt.Errorf("it has %d bytes; at most %d are read", info.Size(), maxTaskFile))
	}

	text, err := os.ReadFile(t.path)
	if err != nil {
		return unreadable(err)
	}
	var doc taskDocument
	if err := canonical.Unmarshal(text, &doc); err != nil {
		return unreadable(err)
	}
	if doc.Format != TaskFormat || doc.ID != id {
		return unreadable(fmt.Errorf("its format is %q and its id %q", doc.Format, doc.ID))
	}

	listed := make(map[[2]string]bool)
	for _, c := range doc.Calls {
		key := [2]string{c.Server, c.Tool}
		if c.Calls < 1 || c.Calls > policy.MaxGrantCalls || c.Server == "" || c.Tool == "" || listed[key] {
			return unreadable(errors.New("an entry has no tool, stands twice, or counts no possible number of calls"))
		}
		listed[key] = true
	}

	return append([]policy.TaskCalls{}, doc.Calls...), nil
}

// Task returns the task without this run's call.
func (t *TaskFile) Task() *policy.Task {
	task := t.task
	task.Calls = append([]policy.TaskCalls{}, task.Calls...)
	return &task
}

// Count adds a call that is about to be made. When it returns nil the count is on disk. It checks
// again that this run owns the task and that the counts are unchanged: the locked file, or the
// folder, may have been removed.
func (t *TaskFile) Count(server, tool string) error {
	recorded, err := t.readCalls(t.task.ID)
	if err != nil {
		return err
	}
	if !safefile.IsCurrent(t.lock, t.lock.Path()) || !slices.Equal(recorded, t.task.Calls) {
		return errTaskTaken
	}
	calls := t.Task().Calls
	for i := range calls {
		if calls[i].Server == server && calls[i].Tool == tool {
			calls[i].Calls = min(calls[i].Calls+1, policy.MaxGrantCalls)
			return t.writeCalls(calls)
		}
	}
	return t.writeCalls(append(calls, policy.TaskCalls{Calls: 1, Server: server, Tool: tool}))
}

func (t *TaskFile) writeCalls(calls []policy.TaskCalls) error {
	text, err := canonical.Marshal(taskDocument{Calls: calls, Format: TaskFormat, ID: t.task.ID})
	if err != nil {
		return err
	}
	doc, err := safefile.NewPending(t.path, fileMode)
	if err != nil {
		return fmt.Errorf("the task's counts cannot be written: %w", adviseIfFull(err))
	}
	defer doc.Cleanup()
	if _, err := doc.Write(append(bytes.TrimSpace(text), '\n')); err != nil {
		return fmt.Errorf("the task's counts cannot be written: %w", adviseIfFull(err))
	}
	if err := doc.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("the task's counts cannot be written: %w", adviseIfFull(err))
	}
	if err := syncDir(filepath.Dir(t.path)); err != nil {
		return err
	}
	t.task.Calls = calls
	return nil
}

// Close unlocks the task. The lock file stays: removing it would let two runs hold a lock.
func (t *TaskFile) Close() error { return t.lock.Close() }

// Recorder returns a recorder that counts the run's call before it records the dispatch, so that
// every call that may have been made is counted.
func (t *TaskFile) Recorder(run *states.Run, next states.Recorder) states.Recorder {
	return countingRecorder{next, run, t}
}

type countingRecorder struct {
	states.Recorder
	run  *states.Run
	task *TaskFile
}

func (r countingRecorder) Append(ctx context.Context, s states.Step) error {
	if s.On == states.Dispatch {
		p := r.run.Facts().Permitted
		if p == nil {
			return errors.New("a call is dispatched that nothing permits")
		}
		if err := r.task.Count(p.Server, p.Tool); err != nil {
			return err
		}
	}
	return r.Recorder.Append(ctx, s)
}
