package policy

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/condition"
	"pgfsm/policy/origin"
)

// CompileLabels checks and compiles labels and the conditions of trusted_if in them, which may read
// claims of these names. The error is [condition.Faults].
func CompileLabels(labels *origin.Labels, claims ...string) (*origin.Rules, condition.Programs, error) {
	var faults condition.Faults
	compiled, err := origin.Compile(*labels)
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			f := err.(*origin.Fault)
			faults = append(faults, &condition.Fault{List: f.List, Index: f.Index, Key: f.Key, Problem: f.Problem, Remedy: f.Remedy})
		}
	}

	env, err := condition.ItemEnv(claims...)
	if err != nil {
		return nil, nil, err
	}
	var items condition.Programs
	for i := range labels.Tools {
		if label := &labels.Tools[i]; label.TrustedIf != "" {
			program, err := env.Bool(label.TrustedIf)
			if err != nil {
				faults = append(faults, condition.NewFault("tools", i, "", "trusted_if", err))
			}
			items.Add("tools", i, "trusted_if", condition.Globs{}, program)
		}
	}

	if len(faults) > 0 {
		return nil, nil, faults
	}
	return compiled, items, nil
}

// compileLabels compiles the content's labels, if there are any.
func (b *Bundle) compileLabels() (err error) {
	if b.content.Labels != nil {
		b.origins, b.items, err = CompileLabels(b.content.Labels, b.content.Identity.claimNames()...)
	}
	return err
}

// Origins returns the compiled labels; nil if there are none.
func (b *Bundle) Origins() *origin.Rules { return b.origins }

// HoldsItem returns a function for [origin.Session]: it evaluates a condition of trusted_if on an
// item of a result, for an actor. All its evaluations share the budget of one decision; when that is
// spent, no condition holds. The function is for one goroutine at a time.
func (b *Bundle) HoldsItem(actor string, id *Identity) func(condition string, item jsontext.Value) bool {
	subject := condition.NewSubject(&condition.Input{Actor: b.ConditionActor(actor, id)})
	return func(source string, item jsontext.Value) bool {
		i := slices.IndexFunc(b.items, func(one condition.Placed) bool { return one.Program.Source() == source })
		if i < 0 {
			return false
		}
		holds, err := b.items[i].Program.True(subject.WithItem(item))
		return holds && err == nil
	}
}
