package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pgfsm/policy/rules"
	"pgfsm/policy/ruling"
	"pgfsm/policy/visible"
)

// changesSeen is what came of all traces together.
type changesSeen struct {
	judged    int
	decisions map[[2]string]int // by the old one and the new one
	kinds     map[string]int
	changed   []compared
	faulty    []compared
}

func (o *diffOptions) sum(all []compared) changesSeen {
	s := changesSeen{decisions: make(map[[2]string]int), kinds: make(map[string]int)}
	for _, c := range all {
		switch {
		case c.fault != "":
			s.faulty = append(s.faulty, c)
		case c.judged:
			s.judged++
			s.decisions[[2]string{c.Old, c.New}]++
			for _, kind := range c.Kinds {
				s.kinds[kind]++
			}
			if len(c.Kinds) > 0 {
				s.changed = append(s.changed, c)
			}
		}
	}
	return s
}

// code is the exit code: a trace that cannot be used is graver than any change.
func (o *diffOptions) code(s changesSeen) int {
	switch {
	case len(s.faulty) > 0:
		return exitCould
	case slices.ContainsFunc(o.failOn, func(kind string) bool { return s.kinds[kind] > 0 }):
		return exitNo
	}
	return exitYes
}

func (o *diffOptions) report(w world, all []compared) error {
	s := o.sum(all)
	if o.json {
		return errors.Join(o.printDocument(w, s, len(all)), exit(o.code(s)))
	}
	for _, c := range s.faulty {
		fmt.Fprintf(w.stderr, "pgfsm: %s cannot be used: %s\n", visible.Text(c.Path), visible.Text(c.fault))
	}
	s.print(w)
	fmt.Fprintf(w.stdout, "%s, %d came as far as the policy, %d change\n", count(len(all), "trace"), s.judged, len(s.changed))
	return exit(o.code(s))
}

// decided are the decisions, in the order in which pairs of them are shown.
var decided = []string{rules.Allow, rules.Pending, rules.Deny}

func (o *diffOptions) printDocument(w world, s changesSeen, traces int) error {
	type cell struct {
		Old   string `json:"old"`
		New   string `json:"new"`
		Calls int    `json:"calls"`
	}
	type kindCount struct {
		Kind  string `json:"kind"`
		Calls int    `json:"calls"`
	}
	type fault struct {
		Path  string `json:"path"`
		Error string `json:"error"`
	}
	doc := struct {
		SchemaVersion int         `json:"schema_version"`
		Traces        int         `json:"traces"`
		Judged        int         `json:"judged"`
		Unusable      int         `json:"unusable"`
		Errors        []fault     `json:"errors"` // of the traces that cannot be used
		Decisions     []cell      `json:"decisions"`
		Kinds         []kindCount `json:"kinds"`
		Changed       []compared  `json:"changed"`
	}{SchemaVersion: schemaVersion, Traces: traces, Judged: s.judged, Unusable: len(s.faulty), Changed: s.changed}
	for _, c := range s.faulty {
		doc.Errors = append(doc.Errors, fault{c.Path, c.fault})
	}
	for _, from := range decided {
		for _, to := range decided {
			doc.Decisions = append(doc.Decisions, cell{from, to, s.decisions[[2]string{from, to}]})
		}
	}
	for _, kind := range ruling.Kinds() {
		doc.Kinds = append(doc.Kinds, kindCount{kind, s.kinds[kind]})
	}
	return printJSON(w.stdout, doc)
}

// print shows every call that is decided or held otherwise, and counts the calls of which only the policy or the risk is
// another: one policy that gets a new name would fill the screen.
func (s changesSeen) print(w world) {
	out := w.stdout
	quiet := make(map[string]int)
	for _, c := range s.changed {
		at := fmt.Sprintf("%s  by %s  %s", visible.Text(c.Tool), decidedBy(c.After), visible.Text(c.Path))
		switch {
		case c.Old != c.New:
			fmt.Fprintf(out, "%s -> %s  %s\n", c.Old, c.New, at)
		case slices.ContainsFunc(c.Kinds, isHoldKind):
			fmt.Fprintf(out, "%s  %s\n  %s\n", c.Kinds[0], at, otherTerms(c.Before, c.After))
		default:
			for _, line := range quieter(c.Before, c.After) {
				quiet[c.New+" "+line]++
			}
		}
	}
	lines := make([]string, 0, len(quiet))
	for line := range quiet { // sorted below
		lines = append(lines, line)
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintf(out, "%s  %s\n", line, count(quiet[line], "call"))
	}
	for _, from := range decided {
		for _, to := range decided {
			if n := s.decisions[[2]string{from, to}]; n > 0 {
				fmt.Fprintf(out, "%-8s -> %-8s %d\n", from, to, n)
			}
		}
	}
	for _, kind := range ruling.Kinds() {
		if n := s.kinds[kind]; n > 0 {
			fmt.Fprintf(out, "%-17s %d\n", kind, n)
		}
	}
}

func isHoldKind(kind string) bool {
	return kind == ruling.HoldWeakened || kind == ruling.HoldStrengthened || kind == ruling.HoldChanged
}

// decidedBy is which policy decided, and by which of its conditions.
func decidedBy(t *ruling.Ruling) string {
	by := fmt.Sprintf("%q", visible.Text(t.Policy))
	if t.Condition != "" {
		by += " (" + visible.Text(t.Condition) + ")"
	}
	if t.GaveUp() {
		by += " [" + visible.Text(string(t.Code)) + "]"
	}
	return by
}

// otherTerms shows what differs between two holds.
func otherTerms(before, after *ruling.Ruling) string {
	anyone := func(roles []string) string { return cmp.Or(strings.Join(roles, ", "), "any approver") }
	var parts []string
	for _, p := range []struct{ what, before, after string }{
		{"quorum", fmt.Sprint(before.Quorum), fmt.Sprint(after.Quorum)},
		{"approvers", anyone(before.Approvers), anyone(after.Approvers)},
		{"until", cmp.Or(before.Expires, "passed"), cmp.Or(after.Expires, "passed")},
	} {
		if p.before != p.after {
			parts = append(parts, fmt.Sprintf("%s %s -> %s", p.what, p.before, p.after))
		}
	}
	return visible.Text(strings.Join(parts, "; "))
}

// quieter says how two decisions differ that come to the same: by whom, and at what risk.
func quieter(before, after *ruling.Ruling) (lines []string) {
	if a, b := decidedBy(before), decidedBy(after); a != b {
		lines = append(lines, fmt.Sprintf("by %s -> %s", a, b))
	}
	a, b := visible.Text(before.RiskMode), visible.Text(after.RiskMode)
	switch {
	case a != b:
		lines = append(lines, fmt.Sprintf("risk %s -> %s", a, b))
	case before.RiskScore != after.RiskScore:
		lines = append(lines, fmt.Sprintf("risk %s, another score", a))
	}
	return lines
}
