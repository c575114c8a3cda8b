package fsmtest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"pgfsm/fsm"
)

// Report says in text what a table means, place by place: what is established, which triggers are handled and by which
// guard, and which are missing. It takes any Spec, also one that does not compile.
func Report(s *fsm.Spec) []byte {
	var b bytes.Buffer
	triggers := s.Triggers()
	fmt.Fprintf(&b, "machine %q: %d states, %d rows, %d triggers\n", s.Name, len(s.Places), len(s.Rows), len(triggers))
	for i, p := range s.Places {
		fmt.Fprintf(&b, "\n%d %s", i+1, p.State)
		if i == 0 {
			b.WriteString(", start")
		}
		if p.Terminal {
			b.WriteString(", terminal")
		}
		fmt.Fprintf(&b, "\n    established: %s\n", p.Established)

		var entries, missing []string
		for _, r := range s.Rows {
			if r.To == p.State {
				entries = append(entries, fmt.Sprintf("%s by %s", r.From, r.On))
			}
		}
		for _, trigger := range triggers {
			if !slices.ContainsFunc(s.Rows, func(r fsm.SpecRow) bool { return r.From == p.State && r.On == trigger }) {
				missing = append(missing, string(trigger))
			}
		}
		if len(entries) > 0 {
			fmt.Fprintf(&b, "    entered from: %s\n", strings.Join(entries, ", "))
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
			fmt.Fprintf(&b, "    missing: %s\n", strings.Join(missing, ", "))
		}
	}
	return b.Bytes()
}
