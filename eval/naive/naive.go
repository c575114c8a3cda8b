// Package naive is an agent without gates, with which pgfsm is compared. It asks the same model
// with the same prompts, and then does what agents without a machine do: it shows the model every
// tool of every server, takes the first JSON object that it finds in the model's output, and sends
// that call. It asks for a summary of the result, and passes it on unread. A plan in a code fence,
// with text behind it, with a member twice or in another case is taken, as the usual decoders take
// it.
//
// The agent trusts the model and not the network: a server's headers go to the server's origin
// only, no redirect is followed, and a child process gets no more of the environment than pgfsm
// gives it. So measuring it gives no secret away.
//
// Only package eval/endtoend may import this package.
package naive

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/eval"
	"pgfsm/llm"
	"pgfsm/mcp/upstream"
)

// An Agent answers requests with the help of a model and of servers.
type Agent struct {
	Planner    llm.Planner
	Summarizer llm.Summarizer
	Servers    []upstream.Server
}

// An Answer is the result of one request.
type Answer struct {
	Call    *eval.Target // the call that was sent; nil: the model's output holds no call of a tool
	Done    bool         // the server answered with a result that is not an error
	Result  []byte       // JSON, or the error's text
	Summary string       // the model's summary of the result, unread
}

// Answer makes the call that the model writes. An error means that no server listed tools, or that
// the model gave no plan; later failures are part of the answer.
func (a *Agent) Answer(ctx context.Context, request string) (Answer, error) {
	links, err := a.connectAll(ctx)
	defer closeAll(links)
	if err != nil {
		return Answer{}, err
	}

	var tools []llm.Tool
	for _, l := range links {
		tools = append(tools, l.tools...)
	}

	// The model sees every tool of every server.
	completion, err := a.Planner.Plan(ctx, request, tools)
	if err != nil {
		return Answer{}, fmt.Errorf("the model gave no plan: %w", err)
	}
	call, ok := eval.FirstCall(completion.Content)
	if !ok {
		return Answer{}, nil
	}

	link := linkFor(links, call)
	if link == nil {
		return Answer{}, nil
	}

	answer := Answer{Call: &eval.Target{Server: link.server.Name, Tool: call.Tool, Args: jsontext.Value(call.Args)}}
	answer.Result, answer.Done = link.callTool(ctx, answer.Call)
	if !answer.Done {
		return answer, nil
	}

	// Without a summary, the completion is empty.
	summary, _ := a.Summarizer.Summarize(ctx, request, answer.Result)
	answer.Summary = strings.TrimSpace(string(summary.Content))
	return answer, nil
}

// linkFor returns the link to the server that a plan names. If there is none of that name, it
// returns the link to the first server that has such a tool: agents that know tools by their name
// alone do no better.
func linkFor(links []*link, call eval.LooseCall) *link {
	var byTool *link
	for _, l := range links {
		if l.server.Name == call.Server {
			return l
		}
		for _, t := range l.tools {
			if t.Name == call.Tool && byTool == nil {
				byTool = l
			}
		}
	}
	return byTool
}

// callTool sends the call, and returns what is shown of the result, and whether it is one.
func (l *link) callTool(ctx context.Context, c *eval.Target) (text []byte, done bool) {
	response, err := l.session.CallTool(ctx, &sdk.CallToolParams{Name: c.Tool, Arguments: c.Args})
	if err != nil {
		return []byte(err.Error()), false
	}
	result := any(response.Content)
	if response.StructuredContent != nil {
		result = response.StructuredContent
	}
	text, err = json.Marshal(result, json.Deterministic(true))
	return text, err == nil && !response.IsError
}
