package runner

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/canonical"
	"pgfsm/internal/hook"
	"pgfsm/internal/visible"
	"pgfsm/mcp/gateway"
	"pgfsm/mcp/gateway/front"
	"pgfsm/mcp/gateway/session"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

const (
	maxClientID    = session.MaxName
	maxPromptBytes = 64 << 10 // bytes of a recorded prompt
	gatewayEntry   = "pgfsm"  // the gateway's name in the files of clients, see pgfsm link
	toolSeparator  = "__"     // joins server and tool for agents
	codeHookEvent  = "hook_event_invalid"
)

// Owns implements [front.Delegator].
func (s *Service) Owns(method, path string) (owns, public bool) {
	if path == hook.Path {
		return method == http.MethodPost, false
	}
	return ownsAuthZEN(method, path)
}

// Answer implements [front.Delegator].
func (s *Service) Answer(ctx context.Context, from gateway.Identity, says *policy.Identity, path string,
	body []byte) front.Reply {
	active := s.runner.active.Acquire()
	defer active.Release()
	if path != hook.Path {
		p := &decisionPoint{ConfiguredRunner: active.Value, url: s.agentsURL(), from: from, says: says}
		return p.answer(ctx, path, body)
	}
	if from.Token == "" { // the events of a hook decide which sessions and prompts are recorded
		return jsonReply(http.StatusForbidden, hook.Answer{
			Code:   codeHookEvent,
			Reason: "hooks need a token of pgfsm token create --role hook, and this one is of an identity provider",
		})
	}
	answer, err := active.Value.hookEvent(ctx, from, says, body)
	if err != nil {
		return jsonReply(http.StatusBadRequest, hook.Answer{Code: codeHookEvent, Reason: err.Error()})
	}
	return jsonReply(http.StatusOK, answer)
}

func jsonReply(status int, doc any) front.Reply {
	return front.Reply{Status: status, Body: canonical.MustSorted(doc)}
}

// hookEvent answers an event of a client's hook. An error names what is wrong with the event.
func (r *ConfiguredRunner) hookEvent(ctx context.Context, from gateway.Identity, says *policy.Identity, body []byte) (hook.Answer, error) {
	e, err := readHookEvent(body)
	if err != nil {
		return hook.Answer{}, err
	}
	session := &states.Session{Call: e.Call, Client: e.Client, ID: e.Session, Observed: e.Observe}
	switch e.Kind {
	case hook.KindCall:
		return r.hookCall(ctx, from, says, e, session), nil
	case hook.KindPrompt:
		err = r.hookPrompt(ctx, from, e, session)
	case hook.KindEnd:
		var lapsed int
		lapsed, err = r.runner.options.Ledger.LapseSession(ctx, r.runner.replayer, from.Name, session.Key())
		for range lapsed {
			r.runner.metrics.Reported(states.TypeUnreported)
		}
	default: // a result or a failure
		if e.Server == "" {
			err = r.report(ctx, from, session, e.Client, e.Tool, e.Arguments, e.Result, e.Kind == hook.KindFailure)
		}
	}
	if err != nil {
		return r.answerUnrecorded(ctx, "", err), nil
	}
	return hook.Answer{Allowed: true}, nil
}

// readHookEvent reads and checks an event.
func readHookEvent(body []byte) (*hook.Event, error) {
	e := new(hook.Event)
	if err := json.Unmarshal(body, e, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("the event is not one that this version knows: %w", canonical.Explain(err))
	}
	kinds := []string{hook.KindCall, hook.KindResult, hook.KindFailure, hook.KindPrompt, hook.KindEnd}
	switch {
	case !slices.Contains(kinds, e.Kind):
		return nil, fmt.Errorf("kind is none of %s", strings.Join(kinds, ", "))
	case !slices.Contains(hook.Clients(), e.Client):
		return nil, fmt.Errorf("client is none of %s", strings.Join(hook.Clients(), ", "))
	case e.Session == "":
		return nil, fmt.Errorf("session is empty")
	case e.Tool == "" && e.Kind != hook.KindPrompt && e.Kind != hook.KindEnd:
		return nil, fmt.Errorf("tool is empty")
	}
	for _, m := range []struct{ name, id string }{{"session", e.Session}, {"prompt", e.Prompt}, {"call", e.Call}} {
		if m.id != "" && !session.ValidName(m.id) {
			return nil, fmt.Errorf("%s has more than %d bytes, or others than printable ASCII characters without \\", m.name, maxClientID)
		}
	}
	return e, nil
}

// hookCall answers whether a call may be made. A call of an MCP server behind the gateway is only announced: the
// gateway judges it when it comes.
func (r *ConfiguredRunner) hookCall(ctx context.Context, from gateway.Identity, says *policy.Identity, e *hook.Event,
	session *states.Session) hook.Answer {
	if e.Server != "" {
		server, tool, behind := r.gatewayTool(e.Server, e.Tool)
		if !behind {
			return r.answerDenied("", string(policy.CodeToolNotAllowed),
				fmt.Sprintf("The MCP server %q of the client is not behind the gateway.", e.Server))
		}
		call := ledger.AnnouncedCall{Server: server, Tool: tool, Arguments: digestOf("arguments", e.Arguments)}
		if r.hooksAsk {
			if err := r.runner.options.Ledger.Announce(ctx, askerOf(from), call, *session); err != nil {
				return r.answerUnrecorded(ctx, "", err)
			}
		}
		return hook.Answer{Allowed: true}
	}

	if e.Arguments.Kind() != '{' {
		return r.answerDenied("", string(policy.CodeArgumentsInvalid), "The arguments of the call are no JSON object.")
	}
	if r.Upstreams.ClientTools(e.Client) == nil {
		return r.answerDenied("", string(policy.CodeServerUnknown),
			fmt.Sprintf("The configuration has no server %q of the kind client, so no tool of this client is allowed.", e.Client))
	}
	if err := r.readSession(ctx, from, session); err != nil {
		return r.answerUnrecorded(ctx, "", err)
	}
	return r.delegate(ctx, &delegation{
		kind:      states.KindHook,
		from:      from,
		identity:  says,
		server:    e.Client,
		tool:      e.Tool,
		arguments: e.Arguments,
		session:   session,
	})
}

// readSession adds what is known about a session: the last prompt, and what earlier calls say, if the bundle reads it.
func (r *ConfiguredRunner) readSession(ctx context.Context, from gateway.Identity, session *states.Session) error {
	state, err := r.runner.options.Ledger.ReadSession(ctx, from.Name, session.Key(), r.Bundle.ReadsSession())
	session.Calls, session.Prompt, session.Rewritten = state.Calls, state.Prompt, state.Rewritten
	return err
}

// sessionOf returns the session of an MCP call: the one in which a hook announced it, or the key of its session of MCP,
// or of the one that its client named. The client of an actor whose hook announces calls gets no other session than
// the announced one: it would leave the session by a call that its hook does not announce.
func (r *ConfiguredRunner) sessionOf(ctx context.Context, call *gateway.ToolCall, plan *policy.Plan) (told *states.Session, key string, err error) {
	if r.hooksAsk && plan != nil {
		told, announces, err := r.runner.options.Ledger.Join(ctx, call.From.Name,
			ledger.AnnouncedCall{Server: call.Server, Tool: call.Tool, Arguments: plan.ArgsDigest()})
		switch {
		case err != nil:
			return nil, "", err
		case told != nil:
			return told, "", r.readSession(ctx, call.From, told)
		case announces:
			return nil, "", nil
		}
	}
	key = states.MCPSession(call.MCPSession)
	if key == "" && r.Bundle.Origins().BelievesSessions(call.From.Name) {
		key = states.NamedSession(call.Named)
	}
	return nil, key, nil
}

// gatewayTool returns the server and the tool of an MCP call, if the client's server is an entry of the gateway as
// pgfsm link writes it: pgfsm for all servers, and pgfsm-NAME for one.
func (r *ConfiguredRunner) gatewayTool(entry, name string) (server, tool string, behind bool) {
	if entry == gatewayEntry {
		server, tool, behind = strings.Cut(name, toolSeparator)
	} else {
		server, behind = strings.CutPrefix(entry, gatewayEntry+"-")
		tool = name
	}
	behind = behind && slices.Contains(r.Bundle.Servers(), server)
	return server, tool, behind && r.Upstreams.ClientTools(server) == nil // the gateway gets no call of a client's own tools
}

// hookPrompt records a prompt of a session.
func (r *ConfiguredRunner) hookPrompt(ctx context.Context, from gateway.Identity, e *hook.Event, session *states.Session) error {
	text, source := r.Secrets.String(e.Text), r.Secrets.String(e.Source)
	if e.Agent != "" { // what an agent writes to a subagent is no request of the user
		source = "agent"
	}
	_, err := r.runner.options.Ledger.CapturePrompt(ctx, askerOf(from), ledger.Prompt{
		ID: e.Prompt, Session: session.Key(), Source: visible.Clip(source, maxClientID),
		Text: visible.Cut(text, maxPromptBytes, ""), Cut: len(text) > maxPromptBytes,
	})
	return err
}
