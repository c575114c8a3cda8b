package gates

import (
	"fmt"
	"slices"

	"pgfsm/fsm"
	"pgfsm/states"
)

// strangeTrigger is a trigger that the table does not have.
const strangeTrigger fsm.Trigger = "mutate"

// mutations are all ways of breaking one thing of the table, class by class. Each copy must be refused.
func mutations() (all []mutation) {
	t := states.Table()
	all = append(all, rowMutations(t)...)
	all = append(all, addedRows(t)...)
	all = append(all, placeMutations(t)...)
	return append(all, claimMutations(t)...)
}

// rowMutations break rows that are there.
func rowMutations(t fsm.Table[*states.Run]) (all []mutation) {
	type table = fsm.Table[*states.Run]
	each := func(class string, change func(t *table, i int)) {
		for _, r := range t.Rows {
			all = append(all, rowMutation(class, class+": "+rowName(r), r, change))
		}
	}
	each("row_removed", func(t *table, i int) { t.Rows = slices.Delete(slices.Clone(t.Rows), i, i+1) })
	each("guard_removed", func(t *table, i int) { t.Rows[i].Guard = fsm.Guard[*states.Run]{} })
	each("guard_without_function", func(t *table, i int) { t.Rows[i].Guard.Allow = nil })
	each("guard_without_name", func(t *table, i int) { t.Rows[i].Guard.Name = "" })
	each("row_without_reason", func(t *table, i int) { t.Rows[i].Why = "" })
	each("row_twice", func(t *table, i int) { t.Rows = append(t.Rows, t.Rows[i]) })
	each("row_on_nothing", func(t *table, i int) { t.Rows[i].On = "" })
	for _, r := range t.Rows {
		for _, p := range t.Places {
			if p.State == r.To {
				continue
			}
			all = append(all, rowMutation("row_redirected", fmt.Sprintf("row_redirected: %s to %s", rowName(r), p.State), r,
				func(t *table, i int) { t.Rows[i].To = p.State }))
		}
	}
	return all
}

// free lets everything pass.
func free() fsm.Guard[*states.Run] {
	return fsm.Guard[*states.Run]{Name: "free", Why: "a mutant lets everything pass", Allow: func(*states.Run) error { return nil }}
}

// addedRows add a row that leads where none may lead.
func addedRows(t fsm.Table[*states.Run]) (all []mutation) {
	add := func(class string, from fsm.State, on fsm.Trigger, to fsm.State) {
		row := fsm.Row[*states.Run]{From: from, On: on, Guard: free(), To: to, Why: "a mutant's way"}
		all = append(all, mutation{class, class + ": " + rowName(row), from, func(t *fsm.Table[*states.Run]) {
			t.Rows = append(slices.Clone(t.Rows), row)
		}})
	}
	has := func(from fsm.State, on fsm.Trigger) bool {
		return slices.ContainsFunc(t.Rows, func(r fsm.Row[*states.Run]) bool { return r.From == from && r.On == on })
	}
	for _, p := range t.Places {
		for _, on := range append(t.Spec().Triggers(), strangeTrigger) {
			if !p.Terminal && (on == t.Claims.EffectOn || !has(p.State, on)) {
				add("second_way_to_the_call", p.State, on, t.Claims.Effect)
			}
		}
	}
	for i, from := range t.Places {
		for j, to := range t.Places {
			switch {
			case from.Terminal:
				add("way_out_of_the_end", from.State, strangeTrigger, to.State)
			case j <= i:
				add("way_back", from.State, strangeTrigger, to.State)
			case to.Terminal || to.State == t.Claims.Effect || mintsPermit(from.State, to.State):
				// The call's were added above. A second way to mint a permit where the table mints one, and a way to an end from
				// anywhere, are no mistake to the proofs, which look at ways and not at guards: what stands before an answer is
				// for the guards of the rows that lead to it.
			default:
				add("shortcut", from.State, strangeTrigger, to.State)
			}
		}
	}
	return all
}

// mintsPermit reports whether the table itself goes that way.
func mintsPermit(from, to fsm.State) bool {
	return to == states.Permitted && (from == states.Assessed || from == states.Approved)
}

// placeMutations break the list of places.
func placeMutations(t fsm.Table[*states.Run]) (all []mutation) {
	type table = fsm.Table[*states.Run]
	each := func(class string, change func(t *table, i int)) {
		for i, p := range t.Places {
			all = append(all, mutation{class, class + ": " + string(p.State), "", func(t *table) {
				t.Places = slices.Clone(t.Places)
				change(t, i)
			}})
		}
	}
	each("place_removed", func(t *table, i int) { t.Places = slices.Delete(t.Places, i, i+1) })
	each("place_twice", func(t *table, i int) { t.Places = append(t.Places, t.Places[i]) })
	each("place_without_sentence", func(t *table, i int) { t.Places[i].Established = "" })
	each("place_renamed", func(t *table, i int) { t.Places[i].State += "_" })
	each("end_is_none", func(t *table, i int) { t.Places[i].Terminal = !t.Places[i].Terminal })
	for i := range len(t.Places) - 1 {
		if a, b := t.Places[i], t.Places[i+1]; !a.Terminal && !b.Terminal {
			all = append(all, mutation{"places_swapped", fmt.Sprintf("places_swapped: %s and %s", a.State, b.State), "", func(t *table) {
				t.Places = slices.Clone(t.Places)
				t.Places[i], t.Places[i+1] = t.Places[i+1], t.Places[i]
			}})
		}
	}
	return all
}

// claimMutations claim something else than what the table does.
func claimMutations(t fsm.Table[*states.Run]) (all []mutation) {
	type table = fsm.Table[*states.Run]
	for _, p := range t.Places {
		if p.State != t.Claims.Effect {
			all = append(all, mutation{"claim_of_another_call", "claim_of_another_call: " + string(p.State), "", func(t *table) {
				t.Claims.Effect = p.State
			}})
		}
	}
	for _, on := range append(t.Spec().Triggers(), strangeTrigger, "") {
		if on != t.Claims.EffectOn {
			all = append(all, mutation{"claim_of_another_trigger", "claim_of_another_trigger: " + string(on), "", func(t *table) {
				t.Claims.EffectOn = on
			}})
		}
	}
	return all
}
