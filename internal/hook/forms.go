package hook

// A form is how one client writes its events, and how it wants to be answered.
type form struct {
	name string

	// Members of every event. Of several names, the first that has a value counts.
	session, prompt, agent, folder []string
	events                         map[string]eventForm // by the client's name of the event
	author                         string               // of prompts whose event does not say it; empty: unknown

	// deny is the text that denies a call. The reason is not blank.
	deny func(reason string) any
	// proceed is the text without an objection, by the kind of the event. A kind without a text gets
	// {}.
	proceed map[string]string
}

// An eventForm is how a client writes one of its events. The members tool_name, tool_input and
// tool_use_id describe the call, unless the form says otherwise.
type eventForm struct {
	kind string

	result, failure string // the member with the result, and with the error

	// Of a client that has events for some of its tools: the tool, and the members that are its
	// arguments.
	tool      string
	arguments []string

	// The event is of an MCP tool, and tool_input is a text that contains JSON.
	mcp bool
}

// forms are all clients, in the order in which they are listed. docs/guide/hooks.md shows the
// settings that make each client start the program.
var forms = []form{
	{
		name:    "claude",
		session: claudeSession,
		prompt:  []string{"prompt_id"},
		agent:   []string{"agent_id"},
		folder:  []string{"cwd"},
		events:  claudeEvents,
		deny:    denyNested,
	},
	{
		name:    "codex",
		author:  user,
		session: []string{"session_id"},
		prompt:  []string{"turn_id"},
		agent:   []string{"agent_id"},
		folder:  []string{"cwd"},
		events: map[string]eventForm{
			"PreToolUse":       {kind: KindCall},
			"PostToolUse":      {kind: KindResult, result: "tool_response"},
			"UserPromptSubmit": {kind: KindPrompt},
			"SessionEnd":       {kind: KindEnd},
		},
		deny: denyNested,
	},
	{
		name:    "gemini",
		author:  user,
		session: []string{"session_id"},
		folder:  []string{"cwd"},
		events: map[string]eventForm{
			"BeforeTool":  {kind: KindCall},
			"AfterTool":   {kind: KindResult, result: "tool_response"},
			"BeforeAgent": {kind: KindPrompt},
			"SessionEnd":  {kind: KindEnd},
		},
		deny: func(reason string) any { return decision{Decision: "deny", Reason: reason} },
	},
	{
		name:    "cursor",
		author:  user,
		session: []string{"conversation_id", "session_id"},
		prompt:  []string{"generation_id"},
		folder:  []string{"cwd", "workspace_roots"},
		events: map[string]eventForm{
			"preToolUse":           {kind: KindCall},
			"postToolUse":          {kind: KindResult, result: "tool_output"},
			"postToolUseFailure":   {kind: KindFailure, failure: "error_message"},
			"beforeShellExecution": {kind: KindCall, tool: "Shell", arguments: []string{"command"}},
			"afterShellExecution":  {kind: KindResult, tool: "Shell", arguments: []string{"command"}, result: "output"},
			"beforeMCPExecution":   {kind: KindCall, mcp: true},
			"afterMCPExecution":    {kind: KindResult, mcp: true, result: "result_json"},
			"beforeReadFile":       {kind: KindCall, tool: "Read", arguments: []string{"file_path"}},
			"beforeSubmitPrompt":   {kind: KindPrompt},
			"sessionEnd":           {kind: KindEnd},
		},
		deny: denyCursor,
		// With failClosed, Cursor takes an answer without a decision for a failure. Its own approvals
		// still apply after an allow.
		proceed: map[string]string{
			KindCall:   `{"permission":"allow"}`,
			KindPrompt: `{"continue":true}`,
			kindNone:   `{"permission":"allow","continue":true}`,
		},
	},
	{
		name:    "vscode",
		author:  user,
		session: claudeSession,
		agent:   []string{"agent_id"},
		folder:  []string{"cwd"},
		events:  claudeEvents,
		deny:    denyCopilot,
	},
}

// user is the author of prompts in clients that tell a hook only of what their user submits.
const user = "user"

// kindNone is the kind of an event that was not understood.
const kindNone = ""

// VS Code runs Claude Code's hooks too, and has names of its own for two members.
var (
	claudeEvents = map[string]eventForm{
		"PreToolUse":         {kind: KindCall},
		"PostToolUse":        {kind: KindResult, result: "tool_response"},
		"PostToolUseFailure": {kind: KindFailure, failure: "error"},
		"UserPromptSubmit":   {kind: KindPrompt},
		"SessionEnd":         {kind: KindEnd},
	}
	claudeSession = []string{"session_id", "sessionId"}
	eventNames    = []string{"hook_event_name", "hookEventName"}
)

// noObjection is the answer that lets a client go on as if there were no hook. Allow would be more:
// Claude Code then skips the user's own prompt, and Codex takes it for an error.
const noObjection = `{}`

// Clients returns the names of the clients whose hooks are known.
func Clients() []string {
	names := make([]string, 0, len(forms))
	for i := range forms {
		names = append(names, forms[i].name)
	}
	return names
}

// findForm returns the form of a client, or nil.
func findForm(client string) *form {
	for i := range forms {
		if forms[i].name == client {
			return &forms[i]
		}
	}
	return nil
}

// permission is the decision of Claude Code and those that follow it.
type permission struct {
	Event    string `json:"hookEventName,omitzero"`
	Decision string `json:"permissionDecision"`
	Reason   string `json:"permissionDecisionReason"`
}

// decision is the decision of Gemini CLI.
type decision struct {
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
}

func denyNested(reason string) any {
	return struct {
		Output permission `json:"hookSpecificOutput"`
	}{permission{"PreToolUse", "deny", reason}}
}

// denyCopilot has the decision twice: VS Code's own agent reads the inner one, the Copilot agent in
// VS Code the outer one.
func denyCopilot(reason string) any {
	return struct {
		permission `json:",inline"`
		Output     permission `json:"hookSpecificOutput"`
	}{permission{"", "deny", reason}, permission{"PreToolUse", "deny", reason}}
}

// denyCursor has the reason twice: the documents say that the model reads agent_message, and
// version 3.9 gave it user_message.
func denyCursor(reason string) any {
	return struct {
		Permission string `json:"permission"`
		User       string `json:"user_message"`
		Agent      string `json:"agent_message"`
	}{"deny", reason, reason}
}
