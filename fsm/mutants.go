package fsm

import (
	"fmt"
	"slices"
)

// Mutant is a copy of a table with one thing broken. Name says which.
type Mutant[S any] struct {
	Name  string
	Table Table[S]
}

// strangeTrigger is a trigger that no table of ours has.
const strangeTrigger Trigger = "mutate"

// Mutants makes every broken copy that a good table must have refused by [Compile]: each row removed, redirected to
// every other place and robbed of its guard; and from every state that is not terminal a second way into the effect, by
// every trigger that the state does not have yet (the effect's own among them) and by a new one.
func Mutants[S any](t Table[S]) []Mutant[S] {
	var all []Mutant[S]
	add := func(rows []Row[S], format string, args ...any) {
		mutant := t
		mutant.Rows = rows
		all = append(all, Mutant[S]{Name: fmt.Sprintf(format, args...), Table: mutant})
	}
	spec := t.Spec()
	for i, r := range t.Rows {
		add(slices.Delete(slices.Clone(t.Rows), i, i+1), "remove %s", rowName(spec, i))
		for _, p := range t.Places {
			if p.State == r.To {
				continue
			}
			rows := slices.Clone(t.Rows)
			rows[i].To = p.State
			add(rows, "redirect %s to %s", rowName(spec, i), p.State)
		}
		rows := slices.Clone(t.Rows)
		rows[i].Guard = Guard[S]{}
		add(rows, "drop the guard of %s", rowName(spec, i))
	}
	triggers := append(spec.Triggers(), strangeTrigger)
	for _, p := range t.Places {
		if p.Terminal {
			continue
		}
		for _, on := range triggers {
			has := func(r Row[S]) bool { return r.From == p.State && r.On == on }
			if on != t.Claims.EffectOn && slices.ContainsFunc(t.Rows, has) {
				continue
			}
			free := Guard[S]{Name: "free", Why: "A mutant lets everything pass.", Allow: func(S) error { return nil }}
			row := Row[S]{From: p.State, On: on, Guard: free, To: t.Claims.Effect, Why: "A mutant's way into the effect."}
			add(append(slices.Clone(t.Rows), row), "add %s -%s-> %s", p.State, on, t.Claims.Effect)
		}
	}
	return all
}
