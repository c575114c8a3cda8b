package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy/schema"
)

// A Grant narrows what may be called, for all runs or for one. Every grant of a run must cover a
// call, and every other gate must allow it. So a grant never adds a right.
type Grant struct {
	Name  string    `json:"name"` // the operator's name for it, in messages
	Tools []Granted `json:"tools"`
}

// Granted is one tool of a grant.
type Granted struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
	// The number of calls that a task may make to it, 1 or more; nil: not counted.
	Calls *int         `json:"calls,omitzero"`
	Args  []Constraint `json:"args"`
}

// A Constraint restricts the value at one place in the arguments. A missing place is refused.
type Constraint struct {
	At string `json:"at"` // JSON pointer (RFC 6901) into the arguments; empty: all of them
	// JSON Schema in an open world: keys that it does not name are allowed.
	Schema jsontext.Value `json:"schema"`
}

// A Task groups runs, so that a grant can count their calls together.
type Task struct {
	Calls []TaskCalls // begun before this run
	ID    string
}

// CheckTaskID checks the name of a task: 1 to [MaxTaskBytes] bytes of printable UTF-8.
func CheckTaskID(id string) error {
	hidden := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	if id == "" || len(id) > MaxTaskBytes || strings.IndexFunc(id, hidden) >= 0 {
		return fmt.Errorf("the task's id must have 1 to %d bytes of text that can be shown", MaxTaskBytes)
	}
	return nil
}

// TaskCalls counts the calls of a task to one tool. A call with an unknown effect counts.
type TaskCalls struct {
	Calls  int    `json:"calls"`
	Server string `json:"server"`
	Tool   string `json:"tool"`
}

// callCount counts the calls to a tool. Records are untrusted and may list a tool twice: the sum is
// bounded and never decreases.
func (t *Task) callCount(server, tool string) (n int) {
	for _, c := range t.Calls {
		if c.Server == server && c.Tool == tool {
			n += min(max(c.Calls, 0), MaxGrantCalls)
			n = min(n, MaxGrantCalls)
		}
	}
	return n
}

// Bounds of grants.
const (
	MaxGrants     = 16
	MaxGrantTools = 1024
	MaxGrantArgs  = 64
	MaxGrantCalls = 1_000_000
	MaxTaskBytes  = 128 // in a task's id
)

// grant is a compiled [Grant].
type grant struct {
	name  string
	tools map[toolKey]*granted
}

type granted struct {
	calls int // 0: not counted
	args  []constraint
}

type constraint struct {
	at     jsontext.Pointer
	schema *schema.Schema
}

func compileGrant(from *Grant, limits schema.Limits) (*grant, error) {
	g := &grant{name: from.Name, tools: make(map[toolKey]*granted)}
	var errs []error

	for _, t := range from.Tools {
		where := fmt.Sprintf("grant %q, %s %s", clip(from.Name), clip(t.Server), clip(t.Tool))
		key := toolKey{t.Server, t.Tool}
		if g.tools[key] != nil {
			errs = append(errs, fmt.Errorf("%s: it stands twice", where))
		}

		compiled := &granted{}
		if t.Calls != nil {
			errs = append(errs, checkBound(where+": calls", int64(*t.Calls), MaxGrantCalls))
			compiled.calls = *t.Calls
		}

		for _, c := range t.Args {
			s, err := schema.CompileOpen(c.Schema, limits)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s, at %q: %w", where, clip(c.At), err))
				continue
			}
			pointer := jsontext.Pointer(c.At)
			if !pointer.IsValid() {
				errs = append(errs, fmt.Errorf("%s: %q is not a JSON pointer", where, clip(c.At)))
				continue
			}
			compiled.args = append(compiled.args, constraint{pointer, s})
		}

		g.tools[key] = compiled
	}

	return g, errors.Join(errs...)
}

// missingGrant returns why a tool cannot be called with any arguments; empty if it can.
func (b *Bundle) missingGrant(key toolKey) (Code, string) {
	for _, g := range b.grants {
		if g.tools[key] == nil {
			return CodeToolNotGranted, fmt.Sprintf("The grant %q does not name the tool.", clip(g.name))
		}
	}
	return "", ""
}

// Granted judges a call to an allowlisted tool by every grant of the run. Without grants it allows
// the call.
func (b *Bundle) Granted(t *Tool, args []byte, task *Task) Verdict {
	if t == nil {
		return blockedBy(GateGrant, CodeToolNotGranted, "There is no tool to judge.")
	}
	key := toolKey{t.Server, t.Name}
	for _, g := range b.grants {
		if v := g.judgeCall(key, args, task); !v.Allows() {
			return v
		}
	}
	return allowedBy(GateGrant, "Every grant covers the call.")
}

func (g *grant) judgeCall(key toolKey, args []byte, task *Task) Verdict {
	name := clip(g.name)
	t := g.tools[key]
	if t == nil {
		return blockedBy(GateGrant, CodeToolNotGranted,
			fmt.Sprintf("The grant %q does not name %q of %q.", name, clip(key.tool), clip(key.server)))
	}

	// Every constraint must find its place in the arguments, and fit the value there.
	for _, c := range t.args {
		value, there := valueAt(args, c.at)
		if !there {
			return blockedBy(GateGrant, CodeArgumentsNotGranted,
				fmt.Sprintf("The grant %q restricts %q, which the arguments do not have.", name, clip(string(c.at))))
		}
		if err := c.schema.Judge(value); err != nil {
			return blockedBy(GateGrant, CodeArgumentsNotGranted,
				fmt.Sprintf("The grant %q does not cover the arguments: %s.", name, c.describeRefusal(err)))
		}
	}

	switch {
	case t.calls == 0:
	case task == nil || task.ID == "":
		return blockedBy(GateGrant, CodeGrantTaskMissing,
			fmt.Sprintf("The grant %q counts calls, and the run belongs to no task: name one with --task.", name))
	case task.callCount(key.server, key.tool) >= t.calls:
		return blockedBy(GateGrant, CodeGrantExhausted,
			fmt.Sprintf("The grant %q allows %d calls of %q in the task %q, and as many were made.",
				name, t.calls, clip(key.tool), clip(task.ID)))
	}

	return allowedBy(GateGrant, "")
}

// describeRefusal describes the refused values by their places in the arguments.
func (c *constraint) describeRefusal(err error) string {
	var invalid *schema.InvalidError
	if !errors.As(err, &invalid) {
		return fmt.Sprintf("the value at %q: %v", clip(string(c.at)), err)
	}
	moved := *invalid
	moved.Issues = slices.Clone(invalid.Issues)
	for i := range moved.Issues {
		moved.Issues[i].Path = string(c.at) + moved.Issues[i].Path
	}
	return strings.TrimPrefix(moved.Error(), "does not fit the schema: ")
}

// valueAt returns the value at a place of a canonical document. The pointer may pass through
// objects only; a schema can describe what is in a list.
func valueAt(doc []byte, at jsontext.Pointer) (jsontext.Value, bool) {
	value := jsontext.Value(doc)
	for token := range at.Tokens() {
		var next jsontext.Value
		for name, v := range canonical.Members(value) {
			if name == token {
				next = v
			}
		}
		if next == nil {
			return nil, false
		}
		value = next
	}
	return value, true
}
