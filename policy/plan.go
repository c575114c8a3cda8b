package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
)

// MaxAnswerBytes bounds the answer of a planner that calls no tool.
const MaxAnswerBytes = 500

// The two plans.
const (
	PlanCallTool    = "call_tool"
	PlanFinalAnswer = "final_answer"
)

// A Plan is the planner's proposal, read strictly (INV-1). Either Type is [PlanCallTool] and
// Server, Tool and Args are set, or it is [PlanFinalAnswer] and Answer is.
type Plan struct {
	Type   string
	Server string
	Tool   string
	Args   canonical.Object // these bytes are judged, and these bytes are sent
	Answer string

	canonical          []byte
	digest, argsDigest canonical.Digest
}

// CallPlan returns the canonical form of a plan to call a tool. args is one JSON object in
// canonical form.
func CallPlan(server, tool string, args []byte) []byte {
	return canonical.MustSorted(&struct {
		Args   jsontext.Value `json:"args"`
		Server string         `json:"server"`
		Tool   string         `json:"tool"`
		Type   string         `json:"type"`
	}{args, server, tool, PlanCallTool})
}

// QuestionPlan returns the canonical form of a plan to ask for more information.
func QuestionPlan(answer string) []byte {
	return canonical.MustSorted(&struct {
		Answer        string `json:"answer"`
		NeedsMoreInfo bool   `json:"needs_more_info"`
		Type          string `json:"type"`
	}{answer, true, PlanFinalAnswer})
}

// Canonical returns the plan in canonical form. It must not be changed.
func (p *Plan) Canonical() []byte { return p.canonical }

// Digest names the plan. It was computed when the plan was read.
func (p *Plan) Digest() canonical.Digest { return p.digest }

// ArgsDigest names the arguments. It was computed when the plan was read.
func (p *Plan) ArgsDigest() canonical.Digest { return p.argsDigest }

// setCanonical sets the plan's canonical form, and computes the digests.
func (p *Plan) setCanonical(text []byte) {
	p.canonical, p.digest = text, canonical.Sum("plan", text)
	if p.Type == PlanCallTool {
		p.argsDigest = canonical.Sum("arguments", p.Args.Bytes())
	}
}

// ReadPlan judges the planner's output: exactly one strict JSON object of one of the two shapes.
// For any other output, the verdict blocks and the plan is nil.
func ReadPlan(doc []byte, limits Limits) (*Plan, Verdict) {
	if len(doc) > limits.PlanBytes {
		return nil, blockedBy(GatePlan, CodePlanTooLarge,
			fmt.Sprintf("The plan has %d bytes; at most %d are read.", len(doc), limits.PlanBytes))
	}
	return readPlan(doc, limits)
}

// ReadCall judges a call that is sent as its own plan: one strict JSON object of the first shape.
// The input gate bounds its size.
func ReadCall(doc []byte, limits Limits) (*Plan, Verdict) {
	p, v := readPlan(doc, limits)
	if p != nil && p.Type != PlanCallTool {
		return nil, blockedBy(GatePlan, CodePlanInvalid, "A call must be a call_tool plan.")
	}
	return p, v
}

func readPlan(doc []byte, limits Limits) (*Plan, Verdict) {
	if len(bytes.TrimSpace(doc)) == 0 {
		return nil, blockedBy(GatePlan, CodePlanEmpty, "The planner's output is empty.")
	}
	if err := canonical.CheckDepth(doc, limits.JSONDepth); err != nil {
		return nil, notStrict(doc, err)
	}
	object, err := canonical.JSON(doc)
	if err != nil {
		return nil, notStrict(doc, err)
	}
	if object[0] != '{' {
		return nil, notStrict(doc, errors.New("not a JSON object"))
	}

	// From here on only the canonical form counts: it is judged, recorded and sent.
	p, err := planOf(maps.Collect(canonical.Members(object)))
	switch {
	case errors.Is(err, errFinalAnswer):
		return nil, blockedBy(GatePlan, CodeFinalAnswer, asSentence(err))
	case err != nil:
		return nil, blockedBy(GatePlan, CodePlanInvalid, asSentence(err))
	}

	p.setCanonical(object)
	return p, strictPlan()
}

func strictPlan() Verdict { return allowedBy(GatePlan, "One strict JSON plan.") }

// Refused is the plan gate's verdict for a model that refuses to answer.
func Refused(words []byte) Verdict {
	return blockedBy(GatePlan, CodePlanEmpty, fmt.Sprintf("The model refused to answer: %q.", clip(string(words))))
}

// notStrict quotes the beginning of the planner's output, because the fault is mostly there: a code
// fence or a preface.
func notStrict(doc []byte, err error) Verdict {
	return blockedBy(GatePlan, CodePlanNotStrict, fmt.Sprintf("The plan is %s. It begins with %q.",
		strings.TrimPrefix(err.Error(), "the plan is "),
		visible.Clip(string(doc[:min(len(doc), 4*maxBeginning)]), maxBeginning)))
}

// maxBeginning bounds the quotation, in bytes.
const maxBeginning = 60

// asSentence makes an error a sentence.
func asSentence(err error) string {
	s := err.Error()
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

var errFinalAnswer = errors.New("a final_answer only asks for what is missing")

// planOf reads the members of one object. Its conversion to the canonical form has refused
// duplicate names at any depth, invalid UTF-8, lone surrogates, and text after the value.
func planOf(members map[string]jsontext.Value) (*Plan, error) {
	kind, err := textMember("type", members)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains([]string{"type", "server", "tool", "args", "answer", "needs_more_info"}, name) {
			return nil, fmt.Errorf("the plan has a member %q that no plan has", clip(cmp.Or(name, "(an empty name)")))
		}
	}
	switch kind {
	case PlanCallTool:
		return callTool(members)
	case PlanFinalAnswer:
		return finalAnswer(members)
	}
	return nil, fmt.Errorf("the plan's type is %q; it must be %q or %q", clip(kind), PlanCallTool, PlanFinalAnswer)
}

func callTool(members map[string]jsontext.Value) (*Plan, error) {
	if members["answer"] != nil || members["needs_more_info"] != nil {
		return nil, errors.New("a call_tool plan has no answer and no needs_more_info")
	}
	server, err := textMember("server", members)
	if err != nil {
		return nil, err
	}
	tool, err := textMember("tool", members)
	if err != nil {
		return nil, err
	}
	args, err := canonical.ReadObject(members["args"])
	if err != nil {
		return nil, errors.New("args must be a JSON object")
	}
	return &Plan{Type: PlanCallTool, Server: server, Tool: tool, Args: args}, nil
}

func finalAnswer(members map[string]jsontext.Value) (*Plan, error) {
	if members["server"] != nil || members["tool"] != nil || members["args"] != nil {
		return nil, fmt.Errorf("%w: it has no server, tool or args", errFinalAnswer)
	}
	if string(members["needs_more_info"]) != "true" {
		return nil, fmt.Errorf("%w: needs_more_info must be true", errFinalAnswer)
	}
	answer, err := textMember("answer", members)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFinalAnswer, err)
	}
	if visible.Blank(answer) {
		return nil, fmt.Errorf("%w: the answer is blank", errFinalAnswer)
	}
	if len(answer) > MaxAnswerBytes {
		return nil, fmt.Errorf("%w: the answer has %d bytes, at most %d are allowed", errFinalAnswer, len(answer),
			MaxAnswerBytes)
	}
	return &Plan{Type: PlanFinalAnswer, Answer: answer}, nil
}

// textMember reads a member that must be a non-empty string.
func textMember(name string, members map[string]jsontext.Value) (string, error) {
	v := members[name]
	if v == nil {
		return "", fmt.Errorf("the plan has no %q", name)
	}
	if v.Kind() != '"' {
		return "", fmt.Errorf("%s must be a string", name)
	}
	s, err := canonical.Unquote(v)
	if err != nil {
		return "", err
	}
	if s == "" {
		return "", fmt.Errorf("%s is empty", name)
	}
	return s, nil
}

// clip keeps quoted outside text short enough for a sentence.
func clip(s string) string {
	const most = 80
	return visible.Cut(s, most, "…")
}
