package policy

import (
	"errors"
	"fmt"
	"slices"

	"pgfsm/internal/canonical"
	"pgfsm/policy/evidence"
	"pgfsm/policy/schema"
)

// Validate judges a plan against the live catalog (INV-2): the server and the tool exist under
// exactly these names, and the arguments conform to the tool's inputSchema in a closed world. The
// schema of a tool outside of the allowlist is never compiled, so this gate already refuses such a
// plan, with the allowlist's code. It also refuses a tool that is on the allowlist of groups of
// which the caller is no member.
func (b *Bundle) Validate(c *Catalog, p *Plan, id *Identity) (*Tool, Verdict) {
	if c == nil || p == nil || p.Type != PlanCallTool {
		return nil, blockedBy(GateSchema, CodePlanInvalid, "There is no plan to call a tool.")
	}
	t, v := c.Find(p.Server, p.Tool)
	if !v.Allows() {
		return nil, v
	}
	if v := b.Listed(t, id); !v.Allows() {
		return t, v
	}
	if !t.Effective() {
		return t, blockedBy(GateSchema, t.Code,
			fmt.Sprintf("Tool %q of %q cannot be called: %s", clip(t.Name), clip(t.Server), t.Reason))
	}
	if err := t.input.Judge(p.Args.Bytes()); err != nil {
		return t, blockedBy(GateSchema, schemaCode(err), asSentence(err)+leaveOut(err))
	}
	return t, allowedBy(GateSchema, t.conform)
}

// schemaCode returns the schema's code for an error, or arguments_invalid for a document that does
// not conform.
func schemaCode(err error) Code {
	var invalid *schema.InvalidError
	if errors.As(err, &invalid) && invalid.Code == schema.CodeDocumentTooCostly {
		return "arguments_too_complex"
	}
	return CodeArgumentsInvalid
}

// leaveOut returns a remedy for null arguments: some clients send null for an optional argument
// without a value.
func leaveOut(err error) (text string) {
	var invalid *schema.InvalidError
	if !errors.As(err, &invalid) {
		return ""
	}
	for _, place := range invalid.Nulls {
		text += fmt.Sprintf(" %q is null: leave it out if it is optional.", place)
	}
	return text
}

// Names reports whether the operator's allowlist names a tool for everybody, or for a group of the
// caller.
func (b *Bundle) Names(server, tool string, id *Identity) bool {
	return slices.ContainsFunc(b.allow[toolKey{server, tool}],
		func(group string) bool { return group == "" || id.InGroup(group) })
}

// ListedFor reports whether the tool is on the effective allowlist of the caller.
func (b *Bundle) ListedFor(t *Tool, id *Identity) bool {
	return t != nil && t.Allowed && b.Names(t.Server, t.Name, id)
}

// EffectiveFor returns the effective allowlist of a caller, in catalog order.
func (b *Bundle) EffectiveFor(c *Catalog, id *Identity) []*Tool {
	return slices.DeleteFunc(c.Effective(), func(t *Tool) bool { return !b.ListedFor(t, id) })
}

// Listed judges whether the caller may call the tool at all (INV-3): the operator's allowlist names
// it, its definition equals its pin if it has one, and every grant names it. By default, no tool is
// listed.
func (b *Bundle) Listed(t *Tool, id *Identity) Verdict {
	if !b.ListedFor(t, id) {
		name, server := "", ""
		if t != nil {
			name, server = t.Name, t.Server
		}
		return blockedBy(GateAllowlist, CodeToolNotAllowed,
			fmt.Sprintf("Tool %q of server %q is not on the allowlist.", clip(name), clip(server)))
	}
	if t.Drifted() {
		return blockedBy(GateAllowlist, CodeToolDefinitionChanged,
			fmt.Sprintf("Tool %q of %q: %s", clip(t.Name), clip(t.Server), t.Reason))
	}
	if code, reason := b.missingGrant(toolKey{t.Server, t.Name}); code != "" {
		return blockedBy(GateGrant, code,
			fmt.Sprintf("Tool %q of %q cannot be called: %s", clip(t.Name), clip(t.Server), reason))
	}
	return allowedBy(GateAllowlist, t.listed)
}

// Authorize judges the validated call (INV-3): the tool is on the effective allowlist, its
// definition is the one that validated the arguments, and every grant covers exactly this call of
// this task.
func (b *Bundle) Authorize(t *Tool, id *Identity, validated canonical.Digest, args []byte, task *Task) Verdict {
	v := b.Listed(t, id)
	if v.Allows() && (!t.Effective() || t.Digest != validated) {
		return blockedBy(GateAllowlist, CodeToolDefinitionChanged,
			fmt.Sprintf("The definition of %q changed after the arguments were judged.", clip(t.Name)))
	}
	if v.Allows() && len(b.grants) > 0 {
		if v := b.Granted(t, args, task); !v.Allows() {
			return v
		}
		cover := "1 grant covers"
		if n := len(b.grants); n > 1 {
			cover = fmt.Sprintf("%d grants cover", n)
		}
		v.Reason += " " + cover + " this call."
	}
	return v
}

// Typed judges a result's structured content against the tool's output type (INV-4). The digest
// identifies the type.
func (b *Bundle) Typed(t *Tool, structured []byte) Verdict {
	if t == nil || t.output == nil {
		return blockedBy(GateOutput, CodeOutputUntyped, "no output type is registered or declared for this tool")
	}
	if err := t.output.Judge(structured); err != nil {
		return blockedBy(GateOutput, CodeOutputUntyped,
			"the structured content is not of the tool's output type: "+err.Error())
	}
	return allowedBy(GateOutput, "The structured content conforms to the tool's output type.")
}

// Lock judges a summary against the typed payload (INV-5) and locates each piece of evidence.
func (b *Bundle) Lock(typed, summary []byte) ([]evidence.Located, Verdict) {
	s, err := evidence.Parse(summary)
	if err != nil {
		return nil, refusedSummary(err)
	}
	located, err := evidence.Lock(typed, s)
	if err != nil {
		return nil, refusedSummary(err)
	}
	return located, allowedBy(GateEvidence, "Every item quotes the result word for word, with its place.")
}

func refusedSummary(err error) Verdict {
	var refused *evidence.RefusedError
	if errors.As(err, &refused) {
		return blockedBy(GateEvidence, Code(refused.Code), refused.Reason)
	}
	return blockedBy(GateEvidence, "summary_not_strict", err.Error())
}
