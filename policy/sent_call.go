package policy

import (
	"unicode/utf8"

	"pgfsm/internal/canonical"
)

// A SentCall is a call as an agent sent it, with its server, tool and arguments apart, so that the
// plan is read from the arguments and not from a text. [Bundle.ReadSentCall] makes it.
type SentCall struct {
	// Text is the call as a plan, in canonical form; if the plan gate refuses it, with the arguments
	// as they were sent, and without arguments that are too large. [ReadCall] reads the same plan
	// from it.
	Text  []byte
	Large *LargeArguments // stands for the arguments that Text lacks
	plan  *Plan           // nil if the plan gate refuses the call: ReadCall says why
}

// Plan returns the plan, or nil if the plan gate refuses the call.
func (c *SentCall) Plan() *Plan { return c.plan }

// Read is [ReadCall] of the text. The limits are those of the bundle that read the call.
func (c *SentCall) Read(limits Limits) (*Plan, Verdict) {
	if c.plan != nil {
		return c.plan, strictPlan()
	}
	return ReadCall(c.Text, limits)
}

// ReadSentCall reads a call. The arguments are one JSON object.
func (b *Bundle) ReadSentCall(server, tool string, args []byte) *SentCall {
	text := sentText(server, tool, args)
	c := &SentCall{}
	if c.Text, c.Large = b.CutArguments(text); c.Large == nil {
		c.plan = readSentPlan(server, tool, args, text, b.Limits())
	}
	if c.plan != nil {
		c.Text = c.plan.canonical
	}
	return c
}

// sentText returns a call as a plan, in canonical form if the arguments are.
func sentText(server, tool string, args []byte) []byte {
	b := make([]byte, 0, len(args)+len(server)+len(tool)+64)
	return appendNames(append(append(b, `{"args":`...), args...), server, tool)
}

func appendNames(b []byte, server, tool string) []byte {
	b = canonical.AppendText(append(b, `,"server":`...), server)
	b = canonical.AppendText(append(b, `,"tool":`...), tool)
	return append(b, `,"type":"`+PlanCallTool+`"}`...)
}

// readSentPlan returns the plan that ReadCall reads from text; nil if it refuses text.
func readSentPlan(server, tool string, args, text []byte, limits Limits) *Plan {
	if server == "" || tool == "" || !utf8.ValidString(server) || !utf8.ValidString(tool) ||
		canonical.CheckDepth(text, limits.JSONDepth) != nil {
		return nil
	}

	b, object, err := canonical.AppendObject(append(make([]byte, 0, len(text)), `{"args":`...), args)
	if err != nil {
		return nil
	}

	p := &Plan{Type: PlanCallTool, Server: server, Tool: tool, Args: object}
	p.setCanonical(appendNames(b, server, tool))
	return p
}
