// Package hookcheck runs a coding agent that is installed, with a scripted model in place of its
// own: the model wants one command to be run and ends when it sees the result. So the agent's hooks
// can be tried without an account, a network, or a real model.
package hookcheck

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// maxOutput is how much of a client's output is kept, in bytes.
const maxOutput = 16 << 10

// startTime is how long the scripted model waits for the header of a request.
const startTime = 10 * time.Second

// A Client is a coding agent that can be run with a scripted model.
type Client struct {
	Name string // as the hook program names it
	// Program is its name on the PATH.
	Program string
	// Tool is its name of the tool that runs commands.
	Tool string

	arguments   func(model string) []string
	environment func(model string) []string
	answer      func(request []byte, command string) reply
	path        string // the end of the path of requests to the model
}

// A reply is what the model answers.
type reply struct {
	text   string
	stream bool
	calls  bool   // the model wants the command to be run
	result string // the request contains this result of the command
}

// Find returns a client, or nil if it cannot be run with a scripted model.
func Find(name string) *Client {
	for i := range clients {
		if clients[i].Name == name {
			return &clients[i]
		}
	}
	return nil
}

// Options say how a client is run.
type Options struct {
	Program     string   // the path of the client; empty: it is on the PATH
	Folder      string   // the working directory
	Environment []string // of the client, NAME=VALUE
	Arguments   []string // further arguments
	Command     string   // the command that the model wants to be run
}

// An Outcome is what became of the command.
type Outcome struct {
	Called bool   // the client asked the model, and the model wanted the command to be run
	Result string // the request with the result, as the client sent it to the model; empty: none
	Output string // what the client printed, and how it ended
}

// Run runs a client until it ends or ctx does. The error says that the model could not be started.
func (c *Client) Run(ctx context.Context, o Options) (outcome Outcome, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return outcome, err
	}
	var mu sync.Mutex
	handler := func(w http.ResponseWriter, r *http.Request) {
		answered := c.serve(w, r, o.Command)
		mu.Lock()
		defer mu.Unlock()
		outcome.Called = outcome.Called || answered.calls
		outcome.Result = cmp.Or(outcome.Result, answered.result)
	}
	server := &http.Server{Handler: http.HandlerFunc(handler), ReadHeaderTimeout: startTime}
	go func() { _ = server.Serve(listener) }() // it ends with Close
	defer server.Close()

	model := "http://" + listener.Addr().String()
	cmd := exec.CommandContext(ctx, cmp.Or(o.Program, c.Program), append(c.arguments(model), o.Arguments...)...)
	cmd.Dir = o.Folder
	cmd.Env = append(o.Environment, c.environment(model)...)
	cmd.WaitDelay = time.Second // a child of the client may hold its output open
	text, err := cmd.CombinedOutput()
	printed := string(text[:min(len(text), maxOutput)])
	if err != nil {
		printed = strings.TrimSpace(printed) + "\n" + err.Error()
	}

	mu.Lock()
	defer mu.Unlock()
	outcome.Output = strings.TrimSpace(printed)
	return outcome, nil
}

// quote returns a text as JSON.
func quote(text string) string {
	b, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(text, "\ufffd"))
	if err != nil {
		panic("a valid text is not JSON: " + err.Error())
	}
	return string(b)
}
