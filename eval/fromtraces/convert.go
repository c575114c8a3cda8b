package fromtraces

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/eval"
	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

const (
	suite = "traces"
	// held is the attack of a case with a held call.
	held = "held"
	// refused is the outcome of a call, or a request, that was stopped without asking an approver.
	refused = "refused"
)

// errNoCase means that a valid trace becomes no case.
type errNoCase string

func (e errNoCase) Error() string { return string(e) }

// caseOf makes a case of a trace and of the run that it was executed again as. The error is an
// [errNoCase].
func caseOf(t *traces.Trace, run *states.Run) (*eval.Case, error) {
	request := run.Request()
	if !utf8.Valid(request.Text) {
		return nil, errNoCase("its request is not UTF-8")
	}
	if request.Large != nil {
		return nil, errNoCase("its arguments were refused for their size and are not recorded")
	}
	if len(request.Round) > 0 {
		return nil, errNoCase("it sends more than a call, and a case has only calls")
	}

	c := &eval.Case{
		Suite:   suite,
		Task:    run.ID(),
		Request: string(request.Text),
		Actor:   request.Actor,
		At:      request.At,
	}

	last, err := states.DecodeEvent(t.Steps[len(t.Steps)-1].Event)
	if err != nil {
		return nil, errNoCase("its last event cannot be read: " + err.Error())
	}

	call, err := proposedCall(t, run)
	if err != nil {
		return nil, err
	}

	facts, o := run.Facts(), t.Outcome
	c.ID = nameOf(&call, o.Code, run.ID())
	interrupted, _ := last.(*states.Interrupted)

	switch {
	case facts.Held != nil:
		c.Attack, c.Wants, c.Expect = held, []eval.Call{call}, &eval.Expect{Wants: string(policy.CodeApprovalDenied)}
		return c, nil
	case facts.ConsumedPermit() != "":
		c.Needs, c.Expect = []eval.Call{call}, &eval.Expect{Needs: eval.Made}
		return c, nil
	case interrupted != nil && interrupted.Code != policy.CodeToolDefinitionChanged:
		return nil, errNoCase(fmt.Sprintf("it was interrupted (%s) before anything was decided", o.Code))
	case o.Type != states.TypeBlocked:
		return nil, errNoCase(fmt.Sprintf("it ended as %s before anything was decided", o.Type))
	}

	c.Changes = interrupted != nil
	c.Attack, c.Wants, c.Expect = refused, []eval.Call{call}, &eval.Expect{Wants: string(o.Code)}

	return c, nil
}

// proposedCall is the call that the run's planner proposed: server, tool and arguments if it is a
// plan, and else the planner's output.
func proposedCall(t *traces.Trace, run *states.Run) (eval.Call, error) {
	if p := run.Plan(); p != nil {
		if p.Type != policy.PlanCallTool {
			return eval.Call{}, errNoCase("the planner asked back, and called for nothing")
		}
		return eval.Call{Server: p.Server, Tool: p.Tool, Args: jsontext.Value(bytes.Clone(p.Args.Bytes()))}, nil
	}
	words := canonical.Text{} // empty for a request that was refused before a planner was asked
	if run.Request().Kind != states.KindAsk {
		words = canonical.Text(bytes.Clone(run.Request().Text))
	}
	completed, err := firstEvent[*states.Completed](t)
	if completed != nil {
		words = completed.Content
	}
	return eval.Call{Plan: &words}, err
}

// firstEvent returns the first event of a kind in a trace; nil if it has none.
func firstEvent[E states.Event](t *traces.Trace) (none E, _ error) {
	for _, s := range t.Steps {
		event, err := states.DecodeEvent(s.Event)
		if err != nil {
			return none, errNoCase("an event of it cannot be read: " + err.Error())
		}
		if found, ok := event.(E); ok {
			return found, nil
		}
	}
	return none, nil
}

// toolsOf writes the tools that the servers of a run offered as a tools file. Of a run that never
// asked them it holds the servers of the bundle, which offer nothing.
func toolsOf(t *traces.Trace, run *states.Run) ([]byte, error) {
	offered := make(map[string][]jsontext.Value)
	for _, s := range run.Bundle().Content().Servers {
		offered[s.Name] = []jsontext.Value{}
	}

	listed, err := firstEvent[*states.ToolsListed](t)
	if err != nil {
		return nil, err
	}
	if listed != nil {
		for _, l := range listed.Servers {
			tools, err := listedTools(l.Pages)
			switch {
			case l.Status != policy.ServerUp:
				delete(offered, l.Server)
			case err != nil:
				return nil, errNoCase(fmt.Sprintf("the listing of %s cannot be written anew: %v",
					visible.Text(l.Server), err))
			default:
				offered[l.Server] = tools
			}
		}
	}

	servers := make(map[string]any)
	for name, tools := range offered { // sorted when it is written
		servers[name] = map[string]any{"tools": tools}
	}

	doc, err := textOf(map[string]any{"servers": servers})
	if err != nil {
		return nil, errNoCase("its tools cannot be written: " + err.Error())
	}
	if _, err := eval.ReadTools("tools.json", doc); err != nil {
		return nil, errNoCase("its tools cannot be written: " + err.Error())
	}

	return doc, nil
}

// listedTools are the tools of a server's answers, in order.
func listedTools(pages []canonical.Text) ([]jsontext.Value, error) {
	tools := []jsontext.Value{}
	for _, page := range pages {
		var doc struct {
			Tools []jsontext.Value `json:"tools"`
		}
		if err := canonical.Check(page, 0); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(page, &doc); err != nil {
			return nil, err
		}
		tools = append(tools, doc.Tools...)
	}
	return tools, nil
}

// maxNameBytes is the room for a name in a case's id, beside the mark of a cut, a slash and the
// run's id.
const maxNameBytes = eval.MaxIDBytes - len("…/01a1fd20-a47b-755b-89de-7c5c3de87485")

// nameOf is the id of a case: the tool, or the code that stopped a request without a plan, and the
// run. A planner may call a tool anything: invisible characters are escaped, and a long name is
// cut.
func nameOf(call *eval.Call, code policy.Code, run string) string {
	name := call.Tool
	if call.Plan != nil {
		name = string(code)
	}
	return visible.Cut(visible.Text(name), maxNameBytes, "…") + "/" + run
}
