package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
)

// MaxAnswerBytes bounds what a planner may say instead of calling a tool.
const MaxAnswerBytes = 500

// The two plans.
const (
	PlanCallTool    = "call_tool"
	PlanFinalAnswer = "final_answer"
)

// A Plan is what the planner proposed, read strictly (INV-1). Either Type is [PlanCallTool] and Server, Tool and Args
// are set, or it is [PlanFinalAnswer] and Answer is.
type Plan struct {
	Type   string
	Server string
	Tool   string
	Args   []byte // one JSON object in canonical form: these bytes are judged, and these bytes are sent
	Answer string
}

// planJSON has its members in canonical order.
type planJSON struct {
	Args   jsontext.Value `json:"args"`
	Server string         `json:"server"`
	Tool   string         `json:"tool"`
	Type   string         `json:"type"`
}

type answerJSON struct {
	Answer        string `json:"answer"`
	NeedsMoreInfo bool   `json:"needs_more_info"`
	Type          string `json:"type"`
}

// Canonical returns the plan in canonical form: what its digest is taken over.
func (p *Plan) Canonical() []byte {
	if p.Type == PlanCallTool {
		return canonical.MustSorted(planJSON{p.Args, p.Server, p.Tool, p.Type})
	}
	return canonical.MustSorted(answerJSON{p.Answer, true, p.Type})
}

// ReadPlan judges the planner's output: exactly one strict JSON object of one of the two shapes. The verdict blocks,
// and the plan is nil, for everything else.
func ReadPlan(doc []byte, limits Limits) (*Plan, Verdict) {
	if len(doc) > limits.PlanBytes {
		return nil, blocked(GatePlan, CodePlanTooLarge,
			fmt.Sprintf("The plan has %d bytes; at most %d are read.", len(doc), limits.PlanBytes))
	}
	if len(bytes.TrimSpace(doc)) == 0 {
		return nil, blocked(GatePlan, CodePlanEmpty, "The planner's output is empty.")
	}
	if err := canonical.CheckDepth(doc, limits.JSONDepth); err != nil {
		return nil, notStrict(err)
	}
	members, err := readMembers(doc)
	if err != nil {
		return nil, notStrict(err)
	}
	p, err := members.plan()
	switch {
	case errors.Is(err, errFinalAnswer):
		return nil, blocked(GatePlan, CodeFinalAnswer, sentence(err))
	case err != nil:
		return nil, blocked(GatePlan, CodePlanInvalid, sentence(err))
	}
	return p, allowed(GatePlan, "One strict JSON plan.")
}

func notStrict(err error) Verdict {
	return blocked(GatePlan, CodePlanNotStrict, "The plan is "+strings.TrimPrefix(err.Error(), "the plan is ")+".")
}

// sentence makes an error a sentence.
func sentence(err error) string {
	s := err.Error()
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// planMembers are the members that any plan may have, raw; nil where absent.
type planMembers struct {
	kind, server, tool, args, answer, needsMore jsontext.Value
	unknown                                     string
}

func (m *planMembers) slot(name string) *jsontext.Value {
	switch name {
	case "type":
		return &m.kind
	case "server":
		return &m.server
	case "tool":
		return &m.tool
	case "args":
		return &m.args
	case "answer":
		return &m.answer
	case "needs_more_info":
		return &m.needsMore
	}
	return nil
}

// readMembers reads one object. The decoder refuses duplicate names at every depth, compared after unescaping, invalid
// UTF-8 and lone surrogates.
func readMembers(doc []byte) (*planMembers, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc))
	if dec.PeekKind() != '{' {
		if err := canonical.Check(doc, 0); err != nil {
			return nil, err
		}
		return nil, errors.New("not a JSON object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, canonical.Explain(err)
	}
	var m planMembers
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, canonical.Explain(err)
		}
		member := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return nil, canonical.Explain(err)
		}
		if slot := m.slot(member); slot != nil {
			*slot = bytes.Clone(value)
		} else if m.unknown == "" {
			m.unknown = member
			if m.unknown == "" {
				m.unknown = "(an empty name)"
			}
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, canonical.Explain(err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("more than one JSON value: %w", canonical.ErrTrailing)
	}
	return &m, nil
}

var errFinalAnswer = errors.New("a final_answer only asks for what is missing")

func (m *planMembers) plan() (*Plan, error) {
	kind, err := text("type", m.kind)
	if err != nil {
		return nil, err
	}
	if m.unknown != "" {
		return nil, fmt.Errorf("the plan has a member %q that no plan has", clip(m.unknown))
	}
	switch kind {
	case PlanCallTool:
		return m.callTool()
	case PlanFinalAnswer:
		return m.finalAnswer()
	}
	return nil, fmt.Errorf("the plan's type is %q; it must be %q or %q", clip(kind), PlanCallTool, PlanFinalAnswer)
}

func (m *planMembers) callTool() (*Plan, error) {
	if m.answer != nil || m.needsMore != nil {
		return nil, errors.New("a call_tool plan has no answer and no needs_more_info")
	}
	server, err := text("server", m.server)
	if err != nil {
		return nil, err
	}
	tool, err := text("tool", m.tool)
	if err != nil {
		return nil, err
	}
	if m.args == nil || m.args.Kind() != '{' {
		return nil, errors.New("args must be a JSON object")
	}
	args, err := canonical.JSON(m.args)
	if err != nil {
		return nil, err
	}
	return &Plan{Type: PlanCallTool, Server: server, Tool: tool, Args: args}, nil
}

func (m *planMembers) finalAnswer() (*Plan, error) {
	if m.server != nil || m.tool != nil || m.args != nil {
		return nil, fmt.Errorf("%w: it has no server, tool or args", errFinalAnswer)
	}
	if string(m.needsMore) != "true" {
		return nil, fmt.Errorf("%w: needs_more_info must be true", errFinalAnswer)
	}
	answer, err := text("answer", m.answer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFinalAnswer, err)
	}
	if strings.TrimSpace(answer) == "" {
		return nil, fmt.Errorf("%w: the answer is blank", errFinalAnswer)
	}
	if len(answer) > MaxAnswerBytes {
		return nil, fmt.Errorf("%w: the answer has %d bytes, at most %d are allowed", errFinalAnswer, len(answer), MaxAnswerBytes)
	}
	return &Plan{Type: PlanFinalAnswer, Answer: answer}, nil
}

// text reads a member that must be a non-empty string.
func text(name string, v jsontext.Value) (string, error) {
	if v == nil {
		return "", fmt.Errorf("the plan has no %q", name)
	}
	if v.Kind() != '"' {
		return "", fmt.Errorf("%s must be a string", name)
	}
	b, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return "", canonical.Explain(err)
	}
	if len(b) == 0 {
		return "", fmt.Errorf("%s is empty", name)
	}
	return string(b), nil
}

// clip keeps quoted outside text short enough for a sentence.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
