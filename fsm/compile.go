package fsm

import (
	"errors"
	"fmt"
)

// Compile turns a table into a machine, once, at start-up. It reports every mistake at once: the
// error joins one [*Mistake] each. Besides what [Prove] finds, a guard without an Allow function is
// a mistake.
func Compile[S any](t Table[S]) (*Machine[S], error) {
	var mistakes []error
	spec := t.Spec()
	for i, r := range t.Rows {
		if r.Guard.Allow == nil {
			text := fmt.Sprintf("%s: guard %q has no Allow function", rowName(spec, i), r.Guard.Name)
			mistakes = append(mistakes, &Mistake{Table: t.Name, Rule: "allow", Text: text})
		}
	}
	for _, v := range examineSpec(spec) {
		for _, fault := range v.faults {
			mistakes = append(mistakes, &Mistake{Table: t.Name, Rule: v.id, Text: fault})
		}
	}
	if len(mistakes) > 0 {
		return nil, errors.Join(mistakes...)
	}
	return newMachine(t), nil
}

// rowName names a row for people: its position from 1 and what it says.
func rowName(s *Spec, i int) string { return fmt.Sprintf("row %d (%s)", i+1, s.Rows[i]) }
