package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
)

// arguments returns the shape of the arguments of the allowlisted tools that a match covers; nil if a tool's schema is unknown, or if there is no such
// tool.
func (l *linter) arguments(m *match) *condition.Shape {
	key := m[toolName].String() + "\x00" + m[serverName].String()
	if known, ok := l.shapes[key]; ok {
		return known
	}
	var shape *condition.Shape
	first := true
	for i := range l.tools {
		t := &l.tools[i]
		if !m[serverName].Match(t.server) || !m[toolName].Match(t.name) {
			continue
		}
		if shape = either(shape, t.shape); first {
			shape, first = t.shape, false
		}
	}
	l.shapes[key] = shape
	return shape
}

// misuses finds uses of arguments in an expression that are wrong for every tool that the match fits.
func (l *linter) misuses(p place, key string, x *expression, m *match) {
	if !x.reading.Uses("args") {
		return
	}
	args := l.arguments(m)
	if args == nil {
		return
	}
	for _, m := range x.reading.Misuses(args) {
		code := ArgumentType
		if m.Unknown {
			code = ArgumentUnknown
		}
		f := l.add(p, key, code, m.Remedy, "%s", m.Problem)
		f.Line, f.Column = m.Line, m.Column
	}
}

// predicates does the same for the predicates of a risk rule.
func (l *linter) predicates(p place, all []risk.Predicate, m *match) {
	args := l.arguments(m)
	for i := range all {
		l.predicate(p, i, &all[i], args)
	}
	l.optional(p, all, m)
}

// optional finds predicates on arguments that a tool does not require, beside no predicate that asks whether they exist.
func (l *linter) optional(p place, all []risk.Predicate, m *match) {
	for i := range all {
		name := stepsOf(all[i].Path)[0]
		if slices.ContainsFunc(all, func(q risk.Predicate) bool { return q.Op == risk.OpExists && stepsOf(q.Path)[0] == name }) {
			continue
		}
		for k := range l.tools {
			t := &l.tools[k]
			if _, known := t.shape.Member(name); t.shape == nil || !known || !m[serverName].Match(t.server) || !m[toolName].Match(t.name) {
				continue
			}
			if !requires(t.live.Input().Root(), name, 0) {
				l.add(p, fmt.Sprintf("args[%d]", i), ArgumentOptional, "if a call without it is harmless, add exists: true",
					"a call of %q may lack the argument %q; the rule then counts as matched, where it raises the risk", clip(t.name), clip(name))
				break
			}
		}
	}
}

// requires reports whether a schema requires a member of the value itself.
func requires(n *jsonschema.Schema, name string, depth int) bool {
	return n != nil && depth <= maxShapeDepth && (slices.Contains(n.Required, name) || requires(n.Ref, name, depth+1) ||
		slices.ContainsFunc(n.AllOf, func(of *jsonschema.Schema) bool { return requires(of, name, depth+1) }))
}

// stepsOf returns the names on the way to the place of a predicate.
func stepsOf(path string) []string {
	if !strings.HasPrefix(path, "/") {
		return []string{path}
	}
	steps := strings.Split(path[1:], "/")
	for k, step := range steps {
		steps[k] = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
	}
	return steps
}

func (l *linter) predicate(p place, i int, from *risk.Predicate, args *condition.Shape) {
	key := fmt.Sprintf("args[%d]", i)
	at := args
	for _, step := range stepsOf(from.Path) {
		if at == nil {
			return
		}
		next, ok := into(at, step)
		if !ok {
			l.add(p, key+".path", ArgumentUnknown, "", "no tool that this rule is about has an argument %q", clip(from.Path))
			return
		}
		at = next
	}
	if at == nil {
		return
	}
	if takes := taken(from); at.Kinds&takes == 0 {
		l.add(p, key+".value", ArgumentType, "",
			"%q is %s, and %s with this value is about %s, so the answer is never known and the rule counts as matched",
			clip(from.Path), at.Kinds, from.Op, takes)
	}
}

// into returns the member of a name or, in a list, the item at an index.
func into(s *condition.Shape, step string) (*condition.Shape, bool) {
	member, ok := s.Member(step)
	if s.Kinds&condition.KindList == 0 {
		return member, ok
	}
	if _, err := strconv.ParseUint(step, 10, 31); err != nil {
		return member, ok
	}
	if ok {
		return nil, true // object or list: it depends on the value
	}
	return s.Items, true
}

// taken returns the kinds of arguments that a predicate has an answer for.
func taken(p *risk.Predicate) condition.Kinds {
	var value any
	if err := json.Unmarshal(p.Value, &value); err != nil {
		return condition.KindsJSON
	}
	switch p.Op {
	case risk.OpEq, risk.OpNe:
		return kindsOf(value)
	case risk.OpGt, risk.OpGte, risk.OpLt, risk.OpLte:
		return condition.KindNumber
	case risk.OpIn:
		list, _ := value.([]any)
		return kindsOf(list...)
	case risk.OpContains:
		if _, ok := value.(string); ok {
			return condition.KindText | condition.KindList
		}
		return condition.KindList
	case risk.OpMatches:
		return condition.KindText
	}
	return condition.KindsJSON // exists
}
