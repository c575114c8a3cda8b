package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"pgfsm/policy/condition"
	"pgfsm/policy/lint"
)

// Places finds the places of the entries of a file of policies or of risk rules.
type Places struct {
	file   *file
	asking Errors // errors for conditions that read earlier calls
}

// File returns the path of the file.
func (p *Places) File() string { return p.file.name }

// LintError returns a finding as an error, with its place in the file and the source line.
func (l *Loaded) LintError(f lint.Finding) *Error {
	problem, places := f.Problem, l.RiskPlaces
	switch f.List {
	case lint.Allowlist:
		return &Error{File: l.AllowlistPath, Problem: f.Problem, Remedy: f.Remedy}
	case lint.Policies:
		places = l.PolicyPlaces
	case lint.LabelledTools, lint.LabelledRoles:
		places = l.LabelPlaces
	}
	if f.Policy != "" {
		problem = fmt.Sprintf("%q: %s", f.Policy, problem)
	}
	return places.Fault(f.List, f.Place, f.Key, f.Line, f.Column, problem, f.Remedy)
}

// Fault returns an error at a key of entry i of a list, with the source line and a caret. If the
// key holds an expression, line and column are a place in the expression, as in [condition.Error];
// 0 is its start. Lists and keys have the names of [pgfsm/policy/risk.Error]; the list of policies
// is "policies", and an i of -1 is the list itself. A missing key has the place of its entry.
// Without a file, the error has no place.
func (p *Places) Fault(list string, i int, key string, line, column int, problem, remedy string) *Error {
	e := &Error{Problem: problem, Remedy: remedy}
	if p != nil {
		position, where := p.findKey(list, i, key)
		if value := p.file.get(where); value != nil && line > 0 {
			position = p.file.locateCharacter(value, line, column)
		}
		e.File, e.Line, e.Col, e.Key, e.Source = p.file.name, position.line, position.col, where.String(),
			p.file.sourceLine(position.line)
	}
	return e
}

// noteFaults notes the faults that the entries' package found. It also notes the expressions about
// earlier calls, which are errors if the gateway records nothing.
func (p *Places) noteFaults(err error, asking []condition.Placed) {
	var faults condition.Faults
	if err != nil && !errors.As(err, &faults) {
		p.file.addFaultAt(place{1, 1}, "", "", "%s", err)
	}
	for _, one := range faults {
		line, column := 0, 0
		if one.Cause != nil {
			line, column = one.Cause.Line, one.Cause.Column
		}
		e := p.Fault(one.List, one.Index, one.Key, line, column, one.Problem, one.Remedy)
		p.file.addFaultAt(place{e.Line, e.Col}, e.Key, one.Remedy, "%s: %s", e.Key, one.Problem)
	}
	for _, one := range asking {
		p.asking = append(p.asking, p.Fault(one.List, one.Index, one.Key, 0, 0,
			one.Program.Queries()[0].String()+" needs the calls before, and serve.record is none",
			"remove serve.record, or name a ledger"))
	}
}

// findKey returns the path and the place of an entry's key. The key has its name in the packages
// rules and risk.
func (p *Places) findKey(list string, i int, key string) (place, path) {
	entry := path{list}
	entries := p.file.get(entry)
	if entries == nil || i < 0 || i >= len(entries.members) {
		return p.file.findNearest(entry).value.at, entry
	}
	if entries.kind == isMap { // an entry is a name and a value
		entry = entry.child(entries.members[i].key)
		if key == "expr" || key == "when" || key == "baseline" {
			return p.file.findNearest(entry).value.at, entry
		}
		return p.file.findNearest(entry).at, entry
	}

	entry = entry.item(i)
	if matched, ok := strings.CutPrefix(key, "match."); ok && list == "rules" {
		key = "when." + matched
	}

	index, part, ok := strings.Cut(strings.TrimPrefix(key, "args["), "].")
	switch j, err := strconv.Atoi(index); {
	case key == "":
	case list == "rules" && key == "args":
		entry = entry.child("when", "args")
	case ok && err == nil:
		return p.findPredicate(entry.child("when", "args"), j, part)
	default:
		entry = entry.child(strings.Split(strings.ReplaceAll(key, "[", ".["), ".")...)
	}

	return p.file.findNearest(entry).value.at, entry
}

// findPredicate returns the place of predicate j of a rule: its path, or its value.
func (p *Places) findPredicate(args path, j int, part string) (place, path) {
	for _, arg := range p.file.findNearest(args).value.members {
		if j -= len(arg.value.members); j >= 0 {
			continue
		}
		if part == "path" {
			return arg.at, args.child(arg.key)
		}
		op := arg.value.members[j+len(arg.value.members)]
		return op.value.at, args.child(arg.key, op.key)
	}
	return p.file.findNearest(args[:2]).value.at, args
}
