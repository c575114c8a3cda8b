package fsm

import (
	"bytes"
	"fmt"
	"slices"
)

// Report says in text what a table means, place by place: what is established, which triggers are handled and by which
// guard, which are missing, and whether the place can be reached. It takes any Spec, also one that does not compile.
func Report(s *Spec) []byte {
	var b bytes.Buffer
	c, triggers := newChart(s), s.Triggers()
	reached := c.reached()
	fmt.Fprintf(&b, "machine %q: %d states, %d rows, %d triggers\n", s.Name, len(s.Places), len(s.Rows), len(triggers))
	for i, p := range s.Places {
		fmt.Fprintf(&b, "\n%d %s", i+1, p.State)
		if i == 0 {
			b.WriteString(", start")
		}
		if p.Terminal {
			b.WriteString(", terminal")
		}
		if !reached[i] {
			b.WriteString(", UNREACHABLE")
		}
		fmt.Fprintf(&b, "\n    established: %s\n", p.Established)
		c.reportEntries(&b, i)
		var missing []Trigger
		for _, on := range triggers {
			row := slices.IndexFunc(s.Rows, func(r SpecRow) bool { return r.From == p.State && r.On == on })
			if row < 0 {
				missing = append(missing, on)
			}
		}
		for _, r := range s.Rows {
			if r.From == p.State {
				fmt.Fprintf(&b, "    %s → %s: %s\n", r.On, r.To, r.Why)
				fmt.Fprintf(&b, "        if %s: %s\n", r.Guard, r.GuardWhy)
			}
		}
		switch {
		case p.Terminal && len(missing) == len(triggers):
			b.WriteString("    handles nothing\n")
		case len(missing) > 0:
			fmt.Fprintf(&b, "    missing: %s\n", list(missing))
		}
	}
	return b.Bytes()
}

func (c *chart) reportEntries(b *bytes.Buffer, place int) {
	if len(c.in[place]) == 0 {
		return
	}
	b.WriteString("    entered from: ")
	for i, row := range c.in[place] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(b, "%s by %s", c.spec.Rows[row].From, c.spec.Rows[row].On)
	}
	b.WriteString("\n")
}
