package hook

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// CheckTool is the name of a tool that no client has. The gateway denies it, unless a server of
// that client has a tool of that name.
const CheckTool = "pgfsm_hook_check"

// CheckCommand is a shell command that does nothing. [Translate] turns a client's call with it into
// a call of [CheckTool], so that no policy can allow the command, or hold it for an approver.
const CheckCommand = ": " + CheckTool

// A Limit says what a client does that no hook can change.
type Limit struct {
	Title string // the client's name for people
	// FailsOpen says that the client cannot be told to deny a call whose hook does not answer.
	FailsOpen bool
	// Runs are the cases in which a call runs although nobody allowed it.
	Runs []string
}

// limits follow the documents and the source of each client; docs/guide/hooks.md names them.
var limits = map[string]Limit{
	"claude": {Title: "Claude Code", Runs: []string{
		"before version 2.1.295: the hook cannot start, is killed, or takes too long",
		"another hook rewrites the input of a call after the gateway judged it",
		"the settings are changed, or Claude Code starts with settings that disable hooks",
		"the user runs a command with !, or mentions a file with @",
	}},
	"codex": {Title: "Codex", FailsOpen: true, Runs: []string{
		"the hook cannot start, is killed, or takes too long",
		"nobody trusted this hook with /hooks, or its entry changed since",
		"Codex starts no hook for the tool, as for its own web search",
		"features.hooks is false",
	}},
	"gemini": {Title: "Gemini CLI", FailsOpen: true, Runs: []string{
		"the hook is killed or takes too long; by its documents also if it cannot start",
		"another hook rewrites the input of a call after the gateway judged it",
		"hooks are disabled in the settings",
	}},
	"cursor": {Title: "Cursor", Runs: []string{
		"failClosed is not set at the hook, and it cannot start, is killed, or takes too long",
		"another hook rewrites the input of a call after the gateway judged it",
		"Cursor runs as a background agent, which does not read the user's hooks",
	}},
	"vscode": {Title: "VS Code", FailsOpen: true, Runs: []string{
		"the hook takes too long; with VS Code's own agent also: it cannot start, or is killed",
		"another hook rewrites the input of a call after the gateway judged it",
		"the organization or the user disabled hooks, which are a preview",
	}},
}

// LimitsOf returns what a client does that no hook can change. The client is one of [Clients].
func LimitsOf(client string) Limit { return limits[client] }

// CheckInput returns what a client would write before it calls [CheckTool].
func CheckInput(client string) []byte {
	f := findForm(client)
	if f == nil {
		panic("there is no client " + client)
	}
	input := map[string]any{
		f.session[0]: "pgfsm-hook-check",
		"tool_name":  CheckTool,
		"tool_input": jsontext.Value("{}"),
	}
	for name, ef := range f.events { // one of them has the kind, and no tool of its own
		if ef.kind == KindCall && ef.tool == "" && !ef.mcp {
			input[eventNames[0]] = name
		}
	}
	text, err := json.Marshal(input, json.Deterministic(true))
	if err != nil {
		panic("an input of ours is not JSON: " + err.Error())
	}
	return text
}
