package fsm

import (
	"strings"

	"github.com/emicklei/dot"
)

// DOT draws the machine for Graphviz. Each node carries its state's name as id and label. With
// marks, the steps taken are bold and numbered and everything else is faded.
func DOT(s *Spec, m Marks) []byte {
	g, w := dot.NewGraph(dot.Directed), s.trackWay(m)
	g.Attrs("label", dotText(s.Name), "labelloc", "t", "rankdir", "TB", "fontname", "Helvetica")
	node := func(state State) dot.Node { return g.Node(dotText(string(state))) }

	for i, p := range s.Places {
		n := node(p.State)
		n.Attrs("id", dotText(string(p.State)), "shape", "box", "style", "rounded", "tooltip", dotText(p.Established),
			"fontname", "Helvetica")
		if p.Terminal {
			n.Attrs("peripheries", 2)
		}
		if i == 0 {
			n.Attrs("penwidth", 2)
		}
		styleStep(n.AttributesMap, m, w.visited[p.State])
	}

	for i, r := range s.Rows {
		e := g.Edge(node(r.From), node(r.To))
		e.Attrs("label", dotText(w.rowLabel(r.On, i)), "tooltip", dotText(r.Guard+": "+r.Why), "fontname", "Helvetica",
			"fontsize", 10)
		styleStep(e.AttributesMap, m, len(w.steps[i]) > 0)
	}

	for _, mark := range w.strange {
		e := g.Edge(node(mark.From), node(mark.To))
		e.Attrs("label", dotText(string(mark.On))+" (not in the table)", "style", "dashed",
			"color", "red", "fontcolor", "red")
	}

	return []byte(strings.TrimSpace(g.String()) + "\n")
}

func styleStep(a dot.AttributesMap, m Marks, taken bool) {
	switch {
	case len(m) == 0:
	case taken:
		a.Attrs("color", "#0969da", "penwidth", 3)
	default:
		a.Attrs("color", "#c0c7cf", "fontcolor", "#8c959f")
	}
}

// dotText keeps Graphviz from reading entities in text; quotes and backslashes are escaped where it
// is written.
func dotText(s string) string { return strings.ReplaceAll(legibleText(s), "&", "&amp;") }
