package eval

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// A Call is one tool call that a task needs or an attack wants: either server, tool and arguments,
// or the exact text of the planner's output. The text is for what only a text can have: duplicate
// members, a fence, a byte that is not UTF-8.
type Call struct {
	Server string          `json:"server,omitzero"`
	Tool   string          `json:"tool,omitzero"`
	Args   jsontext.Value  `json:"args,omitzero"` // one JSON object
	Plan   *canonical.Text `json:"plan,omitzero"`

	// Unresolved are the places in args, as JSON pointers, whose value only the environment of the
	// case's source knows: they have a placeholder of the same kind. Results also count without
	// such calls, because a gate may refuse the placeholder.
	Unresolved []string `json:"unresolved,omitempty"`

	// Result is what the call returned in the session of its case: structured content, or a text as a
	// string. Nil: it is not known.
	Result jsontext.Value `json:"result,omitzero"`
	Failed bool           `json:"failed,omitzero"` // the result is an error
}

// canonicalizeArgs puts arguments and result into canonical form, so that the same call is the same bytes.
func (c *Call) canonicalizeArgs() (err error) {
	if c.Plan != nil {
		return nil
	}
	if c.Args, err = canonical.JSON(c.Args); err == nil && c.Result != nil {
		c.Result, err = canonical.JSON(c.Result)
	}
	return err
}

// Text is the planner's output, byte for byte.
func (c *Call) Text() []byte {
	if c.Plan != nil {
		return *c.Plan
	}
	return policy.CallPlan(c.Server, c.Tool, c.Args)
}

// A Target is a call that leaves: a tool of a server, and arguments in canonical form.
type Target struct {
	Server string         `json:"server"`
	Tool   string         `json:"tool"`
	Args   jsontext.Value `json:"args"`
}

// Target returns the call of the planner's output, read strictly; false if the output is no plan to
// call a tool.
func (c *Call) Target(limits policy.Limits) (Target, bool) {
	if c.Plan == nil {
		return Target{c.Server, c.Tool, c.Args}, true
	}
	p, v := policy.ReadPlan(*c.Plan, limits)
	if !v.Allows() || p.Type != policy.PlanCallTool {
		return Target{}, false
	}
	return Target{p.Server, p.Tool, p.Args.Bytes()}, true
}

// Equal reports whether two calls have the same tool and the same arguments.
func (t Target) Equal(other Target) bool {
	return t.Server == other.Server && t.Tool == other.Tool && bytes.Equal(t.Args, other.Args)
}
