package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pgfsm/policy/condition"
	"pgfsm/policy/lint"
)

// Places has the places of the entries of a file of policies or of risk rules.
type Places struct {
	src  *source
	root *node
}

// File is the path of the file.
func (p *Places) File() string { return p.src.name }

// LintError returns a finding as an error, with its place in the file and the line there.
func (l *Loaded) LintError(f lint.Finding) *Error {
	problem, places := f.Problem, l.RiskPlaces
	switch f.List {
	case lint.Allowlist:
		return &Error{File: l.AllowlistPath, Problem: f.Problem, Remedy: f.Remedy}
	case lint.Policies:
		places = l.PolicyPlaces
	}
	if f.Policy != "" {
		problem = fmt.Sprintf("%q: %s", f.Policy, problem)
	}
	return places.Fault(f.List, f.Place, f.Key, f.Line, f.Column, problem, f.Remedy)
}

// Fault returns an error at a key of entry i of a list, with the line and a caret. If the key holds an expression, line and column are a place
// in that, as a [condition.Error] has it; 0 is its begin. Lists and keys are those of [pgfsm/policy/risk.Error]; the list of policies is
// "policies", and an i of -1 is the list itself. A key that is not written is at its entry. Without a file the error has no place.
func (p *Places) Fault(list string, i int, key string, line, column int, problem, remedy string) *Error {
	e := &Error{Problem: problem, Remedy: remedy}
	if p != nil {
		found := p.find(list, i, key)
		at := found.within(p.src, line, column)
		e.File, e.Line, e.Col, e.Key, e.Source = p.src.name, at.line, at.col, found.path, p.src.show(at.line)
	}
	return e
}

// found is a place in a file of policies or risk rules.
type found struct {
	path  string
	at    place
	value *node // nil: the place is a name, or empty
}

// find looks up a key of an entry, by its name in the packages rules and risk. The place of a missing key is that of its entry, its list, or the beginning
// of the file.
func (p *Places) find(list string, i int, key string) found {
	out := found{list, place{1, 1}, nil}
	in := p.root.get(list)
	if in == nil {
		return out
	}
	out.at, out.value = in.at, in
	switch {
	case i >= 0 && i < len(in.items):
		out.path = list + "[" + strconv.Itoa(i) + "]"
		out.at, out.value = in.items[i].at, in.items[i]
	case i >= 0 && i < len(in.members): // an entry is a name and a value
		m := in.members[i]
		out.path, out.at, out.value = join(list, m.key), m.at, nil
		if key == "expr" || key == "when" || key == "baseline" {
			out.at, out.value = m.value.at, m.value
		}
		return out
	}
	if list == "rules" {
		return out.rule(key)
	}
	return out.down(key)
}

// down follows the names of a key.
func (f found) down(key string) found {
	if key == "" {
		return f
	}
	for name := range strings.SplitSeq(key, ".") {
		f.path = join(f.path, name)
		if v := f.value.get(name); v != nil {
			f.at, f.value = v.at, v
		} else {
			f.value = nil
		}
	}
	return f
}

// rule finds a key of a risk rule: match.server is under when, and predicates have indexes.
func (f found) rule(key string) found {
	if rest, ok := strings.CutPrefix(key, "match."); ok {
		return f.down("when." + rest)
	}
	rest, ok := strings.CutPrefix(key, "args[")
	index, part, _ := strings.Cut(rest, "].")
	j, err := strconv.Atoi(index)
	all := f.value.get("when").predicates()
	switch {
	case key == "args":
		return f.down("when.args")
	case !ok || err != nil || j < 0 || j >= len(all):
		return f.down(key)
	}
	one := all[j]
	f.path = join(join(f.path, "when.args"), one.path.key)
	if part == "path" {
		f.at, f.value = one.path.at, nil
		return f
	}
	f.path = join(f.path, one.op.key)
	f.at, f.value = one.op.value.at, one.op.value
	return f
}

// within converts a place in the expression to a place in the file, or to the expression's beginning if the place is unknown.
func (f found) within(src *source, line, column int) place {
	if line < 1 || f.value == nil || f.value.kind != isText {
		return f.at
	}
	all := src.positions(f.value)
	if all == nil {
		return f.at
	}
	i, at := 0, place{1, 1}
	for _, r := range f.value.text {
		if at == (place{line, column}) || at.line > line {
			break
		}
		i++
		if at.col++; r == '\n' {
			at = place{at.line + 1, 1}
		}
	}
	if length := len([]rune(strings.TrimRight(f.value.text, " \n"))); i >= length && length > 0 {
		end := all[length-1] // what is missing behind the expression is missing there
		end.col++
		return end
	}
	if i >= len(all) {
		return f.at
	}
	return all[i]
}

// note notes the fault of an expression.
func (p *Places) note(at found, cause *condition.Error) {
	if p.refused(at.value) {
		return
	}
	p.src.fault(at.within(p.src, cause.Line, cause.Column), at.path, cause.Remedy, "%s: %s", at.path, cause.Problem)
}

// fault notes another fault.
func (p *Places) fault(at found, remedy, problem string) {
	if p.refused(at.value) {
		return
	}
	p.src.fault(at.at, at.path, remedy, "%s: %s", at.path, problem)
}

// refused reports whether something in n is refused already: what else is wrong with n may come from that.
func (p *Places) refused(n *node) bool {
	if n == nil {
		return false
	}
	if p.src.refused[n.at] {
		return true
	}
	for _, m := range n.members {
		if p.src.refused[m.at] || p.refused(m.value) {
			return true
		}
	}
	return slices.ContainsFunc(n.items, p.refused)
}
