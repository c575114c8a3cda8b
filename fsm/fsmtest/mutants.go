// Package fsmtest makes broken copies of a table, which the table's test must see refused.
package fsmtest

import (
	"fmt"
	"slices"

	"pgfsm/fsm"
)

// Mutant is a copy of a table with one thing broken. Name says which.
type Mutant[S any] struct {
	Name  string
	Table fsm.Table[S]
}

// strangeTrigger is a trigger that no table of ours has.
const strangeTrigger fsm.Trigger = "mutate"

// Mutants makes every broken copy that a good table must have refused by [fsm.Compile]: each row removed, redirected to
// every other place and robbed of its guard; and from every state that is not terminal a second way into each effect, by
// every trigger that the state does not have yet (the effect's own among them) and by a new one.
func Mutants[S any](t fsm.Table[S]) []Mutant[S] {
	var all []Mutant[S]
	add := func(rows []fsm.Row[S], format string, args ...any) {
		mutant := t
		mutant.Rows = rows
		all = append(all, Mutant[S]{Name: fmt.Sprintf(format, args...), Table: mutant})
	}
	for i, r := range t.Rows {
		add(slices.Delete(slices.Clone(t.Rows), i, i+1), "remove %s", rowName(r))
		for _, p := range t.Places {
			if p.State == r.To {
				continue
			}
			rows := slices.Clone(t.Rows)
			rows[i].To = p.State
			add(rows, "redirect %s to %s", rowName(r), p.State)
		}
		rows := slices.Clone(t.Rows)
		rows[i].Guard = fsm.Guard[S]{}
		add(rows, "drop the guard of %s", rowName(r))
	}
	triggers := append(t.Spec().Triggers(), strangeTrigger)
	for _, p := range t.Places {
		if p.Terminal {
			continue
		}
		for _, trigger := range triggers {
			leaves := func(r fsm.Row[S]) bool { return r.From == p.State && r.On == trigger }
			for _, effect := range t.Claims.Effects {
				if trigger != effect.On && slices.ContainsFunc(t.Rows, leaves) {
					continue
				}
				free := fsm.Guard[S]{Name: "free", Why: "A mutant lets everything pass.", Allow: func(S) error { return nil }}
				row := fsm.Row[S]{From: p.State, On: trigger, Guard: free, To: effect.State, Why: "A mutant's way into the effect."}
				add(append(slices.Clone(t.Rows), row), "add %s -%s-> %s", p.State, trigger, effect.State)
			}
		}
	}
	return all
}

func rowName[S any](r fsm.Row[S]) string { return fmt.Sprintf("%s -%s-> %s", r.From, r.On, r.To) }
