package clientfile

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// hooksKey is the member of a client's settings that has its hooks.
const hooksKey = "hooks"

// hookTimeout is how long a client waits for the hook, in seconds. The hook answers within half of
// it.
const hookTimeout = 10

// Hooks describes the file in which a client has the settings of its hooks.
type Hooks struct {
	Client string
	// File is where the client has the file, below the home folder.
	File string
	// Events are the names of the events that need the hook. The first one asks whether a call may
	// run.
	Events []string

	flat    bool // handlers stand in the list of an event, and not in groups
	version bool // the file has the member version
	millis  bool // times are milliseconds

	blocking      string // the member that makes a failure of the hook deny a call; empty: there is none
	blockingValue string
}

var hookFiles = []Hooks{
	{
		Client:   "claude",
		File:     ".claude/settings.json",
		Events:   []string{"PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SessionEnd"},
		blocking: "onFailure", blockingValue: `"block"`,
	},
	{
		Client: "codex",
		File:   ".codex/hooks.json",
		Events: []string{"PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionEnd"},
	},
	{
		Client: "gemini",
		File:   ".gemini/settings.json",
		Events: []string{"BeforeTool", "AfterTool", "BeforeAgent", "SessionEnd"},
		millis: true,
	},
	{
		Client: "cursor",
		File:   ".cursor/hooks.json",
		// preToolUse is there for every tool. With beforeShellExecution or beforeMCPExecution too,
		// calls would be judged twice.
		Events:   []string{"preToolUse", "postToolUse", "postToolUseFailure", "beforeSubmitPrompt", "sessionEnd"},
		flat:     true,
		version:  true,
		blocking: "failClosed", blockingValue: `true`,
	},
	{
		Client:  "vscode",
		File:    ".copilot/hooks/pgfsm.json",
		Events:  []string{"PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SessionEnd"},
		flat:    true,
		version: true,
	},
}

// FindHooks returns the hooks of a client.
func FindHooks(client string) (*Hooks, error) {
	var names []string
	for i := range hookFiles {
		if hookFiles[i].Client == client {
			return &hookFiles[i], nil
		}
		names = append(names, hookFiles[i].Client)
	}
	return nil, fmt.Errorf("the hooks of %q are not known; known are those of %s", client, strings.Join(names, ", "))
}

// Path returns the path of the file on a system, by its GOOS and the variables of the environment.
func (h *Hooks) Path(system string, env func(string) string) (string, error) {
	return (&Client{file: "~/" + h.File}).Path(system, env)
}

// Value returns the settings that make the client start a command for its events.
func (h *Hooks) Value(command string) jsontext.Value {
	var events wire.Object
	for _, event := range h.Events {
		events.Add(event, wire.Array([]jsontext.Value{h.entry(event, command)}))
	}
	return events.Value()
}

// entry returns the entry in the list of an event. It has no matcher, so that it is there for every
// tool.
func (h *Hooks) entry(event, command string) jsontext.Value {
	timeout := fmt.Sprint(hookTimeout)
	if h.millis {
		timeout += "000"
	}
	var handler wire.Object
	handler.Add("type", wire.Quote("command"))
	handler.Add("command", wire.Quote(command))
	handler.Add("timeout", []byte(timeout))
	handler.AddIf(h.blocking != "" && event == h.Events[0], h.blocking, h.blockingValue)
	if h.flat {
		return handler.Value()
	}
	return wire.Single(hooksKey, wire.Array([]jsontext.Value{handler.Value()}))
}

// ownCommand matches commands that start the hook, whatever else they say.
var ownCommand = regexp.MustCompile(`pgfsm.* (\w+) --gateway `)

func (h *Hooks) isOwn(handler jsontext.Value) bool {
	found := ownCommand.FindStringSubmatch(wire.TextMember(handler, "command"))
	return found != nil && found[1] == h.Client
}

// Command returns the command that the file has for the event that asks; empty if it has none.
func (h *Hooks) Command(f *File) (command string) {
	find := func(handler jsontext.Value) {
		if h.isOwn(handler) {
			command = cmp.Or(command, wire.TextMember(handler, "command"))
		}
	}
	wire.Items(wire.Member(wire.Member(f.text, hooksKey), h.Events[0]), func(item jsontext.Value, _ int) {
		if h.flat {
			find(item)
			return
		}
		wire.Items(wire.Member(item, hooksKey), func(handler jsontext.Value, _ int) { find(handler) })
	})
	return command
}

// Missing returns the events for which the file does not have the entries of a command.
func (h *Hooks) Missing(f *File, command string) (missing []string) {
	for _, event := range h.Events {
		found := false
		wire.Items(wire.Member(wire.Member(f.text, hooksKey), event), func(item jsontext.Value, _ int) {
			found = found || sameJSON(item, h.entry(event, command))
		})
		if !found {
			missing = append(missing, event)
		}
	}
	return missing
}

// Set returns the content of the file with the entries of a command, and what that changes. The
// hooks of others keep their order and their bytes. The errors quote nothing of the file.
func (h *Hooks) Set(f *File, command string) (edited []byte, change string, err error) {
	text, hooks, err := f.readObject(hooksKey)
	if err != nil {
		return nil, "", err
	}

	change = Same
	for _, event := range slices.Backward(h.Events) { // a new member comes in front
		list, did, err := h.setEvent(wire.Member(hooks, event), h.entry(event, command))
		if err != nil {
			return nil, "", fmt.Errorf("%q %w", event, err)
		}
		if did == Same {
			continue
		}
		if change != Replaced {
			change = did
		}
		if hooks, err = wire.Set(hooks, event, list); err != nil {
			return nil, "", err
		}
	}
	if change == Same {
		return f.text, Same, nil
	}

	document, err := wire.Set(text, hooksKey, hooks)
	if err == nil && h.version && wire.Member(text, "version") == nil {
		document, err = wire.Set(document, "version", []byte("1"))
	}
	if err != nil {
		return nil, "", err
	}
	edited, err = indented(document)
	return edited, change, err
}

// setEvent returns the list of an event with an entry, and without other entries of ours.
func (h *Hooks) setEvent(list, entry jsontext.Value) (_ jsontext.Value, change string, err error) {
	if list != nil && list.Kind() != '[' {
		return nil, "", errors.New("is not a list")
	}

	var kept []jsontext.Value
	there, removed := false, false
	wire.Items(list, func(item jsontext.Value, _ int) {
		switch others, own := h.withoutOwn(item); {
		case !there && sameJSON(item, entry):
			there = true
			kept = append(kept, item)
		case !own:
			kept = append(kept, item)
		default:
			removed = true
			if others != nil {
				kept = append(kept, others)
			}
		}
	})

	switch {
	case there && !removed:
		return list, Same, nil
	case removed:
		change = Replaced
	default:
		change = Added
	}
	if !there {
		kept = append(kept, entry)
	}
	return wire.Array(kept), change, nil
}

// withoutOwn reports whether an entry has a handler of ours, and returns what is left without it;
// nil if nothing is.
func (h *Hooks) withoutOwn(item jsontext.Value) (others jsontext.Value, own bool) {
	if h.flat {
		return nil, h.isOwn(item)
	}
	var kept []jsontext.Value
	wire.Items(wire.Member(item, hooksKey), func(handler jsontext.Value, _ int) {
		if h.isOwn(handler) {
			own = true
			return
		}
		kept = append(kept, handler)
	})
	if !own || len(kept) == 0 {
		return nil, own
	}
	others, err := wire.Set(item, hooksKey, wire.Array(kept))
	if err != nil {
		panic("an entry that was read cannot be written: " + err.Error())
	}
	return others, true
}
