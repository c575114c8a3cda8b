// Package hook is the form in which the hooks of coding agents ask the gateway, and the program
// that a client starts as its hook.
//
// A client starts the program for each event and writes the event to its standard input in the
// client's own form. The program translates it into an [Event], posts that to the gateway, and
// prints the [Answer] in the client's form. The package is small, because the program has to start
// within milliseconds.
package hook

import "github.com/go-json-experiment/json/jsontext"

// MaxBytes is the longest event that a client may write, and the longest body that the gateway
// accepts.
const MaxBytes = 1 << 20

// Path is where the gateway takes events, below its address.
const Path = "/hooks/event"

// The kinds of an [Event].
const (
	KindCall    = "call"    // may this call run?
	KindResult  = "result"  // a call ran and succeeded
	KindFailure = "failure" // a call ran and failed
	KindPrompt  = "prompt"  // the session has a new prompt
	KindEnd     = "end"     // the session ended
)

// An Event is what a client's hook asks or tells.
type Event struct {
	Kind      string         `json:"kind"`
	Client    string         `json:"client"`             // claude, codex, gemini, cursor or vscode
	Session   string         `json:"session"`            // the client's id of the session
	Prompt    string         `json:"prompt,omitzero"`    // the client's id of the prompt
	Call      string         `json:"call,omitzero"`      // the client's id of the call
	Agent     string         `json:"agent,omitzero"`     // the client's id of a subagent
	Folder    string         `json:"folder,omitzero"`    // the working directory
	Server    string         `json:"server,omitzero"`    // the client's name of the MCP server; empty: the client's own tool
	Tool      string         `json:"tool,omitzero"`      // the name of the tool, without the server
	Arguments jsontext.Value `json:"arguments,omitzero"` // a JSON object, as the client sent it
	Result    jsontext.Value `json:"result,omitzero"`    // the result as the client sent it
	Error     string         `json:"error,omitzero"`     // of a failed call
	Source    string         `json:"source,omitzero"`    // the author of a prompt: user, sdk, or what the client says
	Text      string         `json:"text,omitzero"`      // of a prompt
	Observe   bool           `json:"observe,omitzero"`   // the program does not enforce the answer
}

// An Answer is the gateway's answer. The zero Answer denies.
type Answer struct {
	Allowed bool   `json:"allowed"` // no objection; for kinds other than [KindCall] always true
	Code    string `json:"code,omitzero"`
	Reason  string `json:"reason,omitzero"`
	Run     string `json:"run,omitzero"`
	Decide  string `json:"decide,omitzero"` // of a held call: where an approver decides
}
