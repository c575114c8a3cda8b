package fsm

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// graphNode, graphEdge and graphDocument are the document that JSON writes.
type graphNode struct {
	ID          State  `json:"id"`
	Rank        int    `json:"rank"` // from 1
	Established string `json:"established"`
	Terminal    bool   `json:"terminal"`
	Visited     bool   `json:"visited"`
}

type graphEdge struct {
	From     State   `json:"from"`
	On       Trigger `json:"on"`
	To       State   `json:"to"`
	Guard    string  `json:"guard"`
	GuardWhy string  `json:"guard_why"`
	Why      string  `json:"why"`
	Steps    []int   `json:"steps"` // numbers, from 1, of the steps that took it
}

type graphDocument struct {
	Name       string      `json:"name"`
	Start      State       `json:"start"`
	Nodes      []graphNode `json:"nodes"`
	Edges      []graphEdge `json:"edges"`
	Way        Marks       `json:"way"`
	NotInTable Marks       `json:"not_in_table"` // steps of the way that the table does not have
}

// JSON writes the machine as nodes and edges for other programs to draw, indented, the members always all there. With
// marks, way holds the steps, and nodes and edges say whether and when they were taken.
func JSON(s *Spec, m Marks) []byte {
	w := s.way(m)
	d := graphDocument{Name: s.Name, Start: s.Start(), Way: m, NotInTable: w.strange}
	for i, p := range s.Places {
		d.Nodes = append(d.Nodes, graphNode{ID: p.State, Rank: i + 1, Established: p.Established, Terminal: p.Terminal,
			Visited: w.visited[p.State]})
	}
	for i, r := range s.Rows {
		d.Edges = append(d.Edges, graphEdge{From: r.From, On: r.On, To: r.To, Guard: r.Guard, GuardWhy: r.GuardWhy,
			Why: r.Why, Steps: w.steps[i]})
	}
	out, err := json.Marshal(d, jsontext.WithIndent("  "), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("fsm: plain strings and numbers could not be written as JSON: " + err.Error())
	}
	return append(out, '\n')
}
