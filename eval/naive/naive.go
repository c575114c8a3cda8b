// Package naive is an agent without gates: what pgfsm is measured against, and nothing else. It asks the same model with
// the same prompts, and then does what agents without a machine do. It shows the model every tool that any server offers,
// takes the first JSON object that it finds in the model's output, and sends that call. It asks for a summary of
// whatever comes back, and passes it on unread.
//
// # What it leaves out
//
// There is no input policy, no strict plan, no schema, no allowlist, no pin, no policy, no approval, no output type and
// no evidence. A plan with a code fence around it, with text behind it, with a member twice or in another case is taken,
// as the usual decoders take it. A server that the plan misnames is guessed from the tool.
//
// # What it keeps
//
// It is naive about the model, not about the network: headers that a server is configured with go to that server's
// origin only, no redirect is followed, and a child process gets no more of our environment than pgfsm gives it. So a
// figure says what the gates are worth, and measuring it gives no secret away.
//
// Package eval/endtoend alone may import this package; a test holds the module to that. Nothing that pgfsm run or
// pgfsm serve does can reach it.
package naive

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/llm"
	"pgfsm/mcp/upstream"
)

// An Agent answers requests with the help of a model and of servers. It may be used again, and by one goroutine at a time.
type Agent struct {
	Planner    llm.Planner
	Summarizer llm.Summarizer
	Servers    []upstream.Server // each with a ConnectTimeout; 0 means upstream.DefaultConnectTimeout
}

// A Call is one call that was sent to a server.
type Call struct {
	Server string
	Tool   string
	Args   jsontext.Value

	Done bool // the server answered with a result that is not an error: whatever the tool does was done
}

// An Answer is the result of one request.
type Answer struct {
	Said    []byte // what the model said when it was asked for a plan
	Call    *Call  // nil: what the model said holds no call of a tool
	Result  []byte // what is shown of the call's result: JSON, or the error's words
	Summary string // what the model said of the result, unread; empty where it said nothing
}

// ErrNoServer means that no server listed its tools, so there was no tool to call.
var ErrNoServer = errors.New("no server could be reached")

// Answer makes every call that the model writes. An error means that no server listed tools, or that the model gave no plan; later failures are part of the
// answer.
func (a *Agent) Answer(ctx context.Context, request string) (Answer, error) {
	links, err := a.connect(ctx)
	defer closeAll(links)
	if err != nil {
		return Answer{}, err
	}
	var tools []llm.Tool
	for _, l := range links {
		tools = append(tools, l.tools...)
	}
	said, err := a.Planner.Plan(ctx, request, tools)
	answer := Answer{Said: said.Content}
	if err != nil {
		return answer, fmt.Errorf("the model gave no plan: %w", err)
	}
	wanted, ok := firstCall(said.Content)
	if !ok {
		return answer, nil
	}
	to := addressee(links, wanted)
	if to == nil {
		return answer, nil
	}
	answer.Call = &Call{Server: to.server.Name, Tool: wanted.Tool, Args: wanted.args()}
	answer.Result, answer.Call.Done = to.call(ctx, answer.Call)
	if !answer.Call.Done {
		return answer, nil
	}
	summary, err := a.Summarizer.Summarize(ctx, request, answer.Result)
	if err == nil {
		answer.Summary = strings.TrimSpace(string(summary.Content))
	}
	return answer, nil
}

// addressee is the link to the server that a plan names. Where there is none of that name, it is the first server that
// has such a tool, or else any: agents that know tools by their name alone do no better.
func addressee(links []*link, wanted plan) *link {
	for _, l := range links {
		if l.server.Name == wanted.Server {
			return l
		}
	}
	for _, l := range links {
		for _, t := range l.tools {
			if t.Name == wanted.Tool {
				return l
			}
		}
	}
	return nil
}

// call sends the call, whatever it is, and returns what is shown of the result, and whether it is one.
func (l *link) call(ctx context.Context, c *Call) (shown []byte, done bool) {
	got, err := l.session.CallTool(ctx, &sdk.CallToolParams{Name: c.Tool, Arguments: c.Args})
	if err != nil {
		return []byte(err.Error()), false
	}
	return resultOf(got), !got.IsError
}
