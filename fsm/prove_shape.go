package fsm

import (
	"fmt"
	"slices"
	"strings"
)

// proveNamed proves that names are fit to be ids in traces and pictures.
func (c *chart) proveNamed() examination {
	v := examination{id: "named", sentence: "States and triggers are written in lower-case letters, digits and underscores."}
	for i, p := range c.spec.Places {
		if !isName(string(p.State)) {
			v.faults = append(v.faults, fmt.Sprintf("place %d is named %q", i+1, p.State))
		}
	}
	for i, r := range c.spec.Rows {
		if !isName(string(r.On)) {
			v.faults = append(v.faults, fmt.Sprintf("%s has a trigger named %q", rowName(c.spec, i), r.On))
		}
	}
	v.witness = fmt.Sprintf("%d states; triggers: %s", len(c.spec.Places), list(c.spec.Triggers()))
	return v
}

func isName(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z'
		if !letter && (i == 0 || (r != '_' && (r < '0' || r > '9'))) {
			return false
		}
	}
	return s != ""
}

// proveWritten proves that nobody left out a sentence.
func (c *chart) proveWritten() examination {
	v := examination{id: "written", sentence: "The table has a name; every place, row and guard says what it is for."}
	need := func(text, where, what string) {
		if strings.TrimSpace(text) == "" {
			v.faults = append(v.faults, where+" has no "+what)
		}
	}
	need(c.spec.Name, "the table", "name")
	for i, p := range c.spec.Places {
		need(p.Established, fmt.Sprintf("place %d (%s)", i+1, p.State), "established sentence")
	}
	for i, r := range c.spec.Rows {
		need(r.Guard, rowName(c.spec, i), "guard name")
		need(r.GuardWhy, rowName(c.spec, i), "guard why")
		need(r.Why, rowName(c.spec, i), "why")
	}
	v.witness = fmt.Sprintf("%q: %d places, %d rows", c.spec.Name, len(c.spec.Places), len(c.spec.Rows))
	return v
}

// proveDeclared proves that every name in rows and claims is a place of the table, declared once.
func (c *chart) proveDeclared() examination {
	v := examination{id: "declared",
		sentence: "Every state is declared once; rows and claims name only declared states."}
	if len(c.spec.Places) == 0 || len(c.spec.Rows) == 0 {
		v.faults = append(v.faults, "the table is empty")
	}

	for i, p := range c.spec.Places {
		if first := c.rankOf(p.State); first != i {
			v.faults = append(v.faults, fmt.Sprintf("place %d (%s) is place %d again", i+1, p.State, first+1))
		}
	}

	need := func(where string, states ...State) {
		for _, s := range states {
			if c.rankOf(s) == noIndex {
				v.faults = append(v.faults, fmt.Sprintf("%s names the unknown state %q", where, s))
			}
		}
	}

	for i, r := range c.spec.Rows {
		need(rowName(c.spec, i), r.From, r.To)
	}

	for i, e := range c.spec.Claims.Effects {
		need(fmt.Sprintf("the claim effect %d", i+1), append([]State{e.State}, e.Dominators...)...)
	}

	for i, b := range c.spec.Claims.Between {
		need(fmt.Sprintf("the claim between %d", i+1), b.From, b.To, b.Via)
	}

	for i, e := range c.spec.Claims.Exits {
		need(fmt.Sprintf("the claim exits %d", i+1), e.States...)
	}

	need("the claim sole entry", c.spec.Claims.SoleEntry...)
	v.witness = fmt.Sprintf("%d places: %s", len(c.spec.Places), list(c.allStates()))

	return v
}

func (c *chart) allStates() []State {
	states := make([]State, len(c.spec.Places))
	for i, p := range c.spec.Places {
		states[i] = p.State
	}
	return states
}

// proveUsed proves that a row uses every place and every claimed trigger.
func (c *chart) proveUsed() examination {
	v := examination{id: "used", sentence: "Every place and every trigger that a claim names is used by a row."}
	for i, p := range c.spec.Places {
		if c.rankOf(p.State) == i && len(c.in[i])+len(c.out[i]) == 0 {
			v.faults = append(v.faults, fmt.Sprintf("no row uses place %d (%s)", i+1, p.State))
		}
	}
	var claimed []Trigger
	for _, e := range c.spec.Claims.Effects {
		claimed = append(claimed, e.On)
	}
	for _, e := range c.spec.Claims.Exits {
		claimed = append(claimed, e.On...)
	}
	triggers := c.spec.Triggers()
	for i, on := range claimed {
		if !slices.Contains(triggers, on) && slices.Index(claimed, on) == i {
			v.faults = append(v.faults, fmt.Sprintf("no row uses the claimed trigger %q", on))
		}
	}
	v.witness = fmt.Sprintf("%d places and %d triggers in %d rows", len(c.spec.Places), len(triggers), len(c.spec.Rows))
	return v
}

// proveDeterministic proves that a state and a trigger choose one row.
func (c *chart) proveDeterministic() examination {
	v := examination{id: "deterministic", sentence: "A state and a trigger choose at most one row."}
	for i, r := range c.spec.Rows {
		first := slices.IndexFunc(c.spec.Rows, func(o SpecRow) bool { return o.From == r.From && o.On == r.On })
		if first < i {
			v.faults = append(v.faults, rowName(c.spec, i)+" competes with "+rowName(c.spec, first))
		}
	}
	v.witness = fmt.Sprintf("%d rows, %d different pairs of state and trigger", len(c.spec.Rows), len(c.spec.Rows))
	return v
}

// proveOneMeaning proves that a trigger always establishes the same state: a redirected row shows.
func (c *chart) proveOneMeaning() examination {
	v := examination{id: "one-meaning", sentence: "A trigger always establishes the same state."}
	var pairs []string
	for i, r := range c.spec.Rows {
		first := slices.IndexFunc(c.spec.Rows, func(o SpecRow) bool { return o.On == r.On })
		if c.spec.Rows[first].To != r.To {
			v.faults = append(v.faults, rowName(c.spec, i)+" goes elsewhere than "+rowName(c.spec, first))
		} else if first == i {
			pairs = append(pairs, fmt.Sprintf("%s→%s", r.On, r.To))
		}
	}
	v.witness = strings.Join(pairs, ", ")
	return v
}
