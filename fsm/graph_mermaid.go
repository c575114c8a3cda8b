package fsm

import (
	"bytes"
	"fmt"
)

// Mermaid draws the machine as a stateDiagram-v2. With marks, the steps taken are numbered and
// their states coloured; Mermaid cannot colour single transitions of such a diagram.
func Mermaid(s *Spec, m Marks) []byte {
	var b bytes.Buffer
	w, c := s.trackWay(m), newChart(s)
	fmt.Fprintf(&b, "stateDiagram-v2\n    accTitle: %s\n    direction TB\n", escapeMermaid(s.Name))
	id := func(state State) string { return escapeMermaid(string(state)) } // a name needs no escape
	if len(s.Places) > 0 {
		fmt.Fprintf(&b, "    [*] --> %s\n", id(s.Start()))
	}

	for i, r := range s.Rows {
		if c.rankOf(r.From) == noIndex || c.rankOf(r.To) == noIndex {
			continue
		}
		fmt.Fprintf(&b, "    %s --> %s: %s\n", id(r.From), id(r.To), escapeMermaid(w.rowLabel(r.On, i)))
	}

	for _, p := range s.Places {
		if p.Terminal {
			fmt.Fprintf(&b, "    %s --> [*]\n", id(p.State))
		}
	}

	for _, mark := range w.strange {
		fmt.Fprintf(&b, "    %%%% not in the table: %s\n", escapeMermaid(mark.String()))
	}

	if len(m) == 0 {
		return b.Bytes()
	}

	b.WriteString("    classDef taken stroke:#0969da,stroke-width:3px\n    classDef faded opacity:0.4\n")
	for _, p := range s.Places {
		class := "faded"
		if w.visited[p.State] {
			class = "taken"
		}
		fmt.Fprintf(&b, "    class %s %s\n", id(p.State), class)
	}

	return b.Bytes()
}
