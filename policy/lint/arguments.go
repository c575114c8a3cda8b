package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/schema"
)

// reportMisuses finds uses of arguments in an expression that are wrong for every tool that the
// match fits.
func (l *linter) reportMisuses(p place, key, src string, of *argumentTypes, m *match) {
	for _, found := range l.commonMisuses(src, of, m) {
		code := ArgumentType
		if found.unknown {
			code = ArgumentUnknown
		}
		f := l.add(p, key, code, found.remedy, "%s", found.problem)
		f.Line, f.Column = found.line, found.column
	}
}

// commonMisuses returns the problems of each allowlisted tool that a match covers. It is empty if
// the schema of one of them is unknown.
func (l *linter) commonMisuses(src string, of *argumentTypes, m *match) []misuse {
	var arguments []schema.Shape
	for i := range l.tools {
		t := &l.tools[i]
		if !m.coversTool(t) {
			continue
		}
		if t.live == nil {
			return nil
		}
		arguments = append(arguments, schema.ShapeOf(t.live.Input().Root()))
	}
	if len(arguments) == 0 || !strings.Contains(src, "args") {
		return nil
	}
	return of.findMisuses(src, arguments)
}

// checkPredicates compares the predicates of a risk rule with the arguments of tools.
func (l *linter) checkPredicates(p place, all []risk.Predicate, of *argumentTypes, m *match) {
	for i := range all {
		key, wrong := fmt.Sprintf("args[%d]", i), misuse{}
		for _, src := range asExpressions(&all[i]) {
			found := l.commonMisuses(src, of, m)
			if wrong = (misuse{}); len(found) == 0 {
				break
			}
			wrong = found[0]
		}
		switch {
		case wrong.unknown:
			l.add(p, key+".path", ArgumentUnknown, wrong.remedy, "no tool that this rule is about has an argument %q",
				clip(all[i].Path))
		case wrong.problem != "":
			l.add(p, key+".value", ArgumentType, "",
				"%q has another type than %s with this value is about, so the answer is never known and the rule counts as matched",
				clip(all[i].Path), all[i].Op)
		}
	}
}

// asExpressions returns expressions of which one can be evaluated if the predicate has an answer.
func asExpressions(p *risk.Predicate) []string {
	steps := []string{p.Path}
	if strings.HasPrefix(p.Path, "/") {
		steps = slices.Collect(jsontext.Pointer(p.Path).Tokens())
	}
	path := "args"
	for _, step := range steps {
		if _, err := strconv.ParseUint(step, 10, 31); err != nil || path == "args" {
			step = strconv.Quote(step)
		}
		path += "[" + step + "]"
	}

	value := string(p.Value)
	switch p.Op {
	case condition.OpEq:
		return []string{path + " == " + value}
	case condition.OpNe:
		return []string{path + " != " + value}
	case condition.OpGt, condition.OpGte, condition.OpLt, condition.OpLte:
		return []string{path + " > " + value}
	case condition.OpIn:
		return []string{path + " in " + value}
	case condition.OpContains:
		return []string{path + ".contains(" + value + ")", value + " in " + path}
	case condition.OpMatches:
		return []string{path + `.contains("")`}
	}

	return []string{path + " == " + path} // exists
}
