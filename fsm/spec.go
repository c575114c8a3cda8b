package fsm

import (
	"fmt"
	"slices"
)

// Spec is a table without its functions. Its JSON has a fixed order of members and keeps the order
// of the table, so that it can be digested.
type Spec struct {
	Name   string    `json:"name"`
	Places []Place   `json:"places"`
	Rows   []SpecRow `json:"rows"`
	Claims Claims    `json:"claims"`
}

// SpecRow is a [Row] with its guard's name and sentence instead of the guard.
type SpecRow struct {
	From     State   `json:"from"`
	On       Trigger `json:"on"`
	Guard    string  `json:"guard"`
	GuardWhy string  `json:"guard_why"`
	To       State   `json:"to"`
	Why      string  `json:"why"`
}

// String gives the row as from -trigger-> to.
func (r SpecRow) String() string { return fmt.Sprintf("%s -%s-> %s", r.From, r.On, r.To) }

// Spec returns the table without its functions. It is as good or bad as the table: nothing is
// checked.
func (t Table[S]) Spec() *Spec {
	s := &Spec{Name: t.Name, Places: t.Places, Claims: t.Claims, Rows: make([]SpecRow, len(t.Rows))}
	for i, r := range t.Rows {
		s.Rows[i] = SpecRow{
			From:     r.From,
			On:       r.On,
			Guard:    r.Guard.Name,
			GuardWhy: r.Guard.Why,
			To:       r.To,
			Why:      r.Why,
		}
	}
	return s.clone()
}

// Allows reports whether the table has the row from -on-> to. Guards are not asked.
func (s *Spec) Allows(from State, on Trigger, to State) bool {
	return s.rowIndex(Mark{From: from, On: on, To: to}) >= 0
}

// Start is the first place, or empty if there is none.
func (s *Spec) Start() State {
	if len(s.Places) == 0 {
		return ""
	}
	return s.Places[0].State
}

// Triggers lists every trigger of the rows once, in the order in which the table first names it.
func (s *Spec) Triggers() []Trigger {
	var triggers []Trigger
	for _, r := range s.Rows {
		if !slices.Contains(triggers, r.On) {
			triggers = append(triggers, r.On)
		}
	}
	return triggers
}

// rowIndex finds the row that a mark names, or -1.
func (s *Spec) rowIndex(m Mark) int {
	return slices.IndexFunc(s.Rows, func(r SpecRow) bool { return r.From == m.From && r.On == m.On && r.To == m.To })
}

// clone shares nothing with s, so that no caller can change what a machine was compiled from.
func (s *Spec) clone() *Spec {
	c := *s
	c.Places = slices.Clone(s.Places)
	c.Rows = slices.Clone(s.Rows)
	c.Claims.Effects = slices.Clone(s.Claims.Effects)
	for i := range c.Claims.Effects {
		c.Claims.Effects[i].Dominators = slices.Clone(c.Claims.Effects[i].Dominators)
	}
	c.Claims.Between = slices.Clone(s.Claims.Between)
	c.Claims.SoleEntry = slices.Clone(s.Claims.SoleEntry)
	c.Claims.Exits = slices.Clone(s.Claims.Exits)
	for i, e := range c.Claims.Exits {
		c.Claims.Exits[i] = Exits{States: slices.Clone(e.States), On: slices.Clone(e.On)}
	}
	return &c
}
