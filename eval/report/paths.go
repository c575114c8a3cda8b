package report

import (
	"fmt"
	"slices"

	"pgfsm/eval/attack"
	"pgfsm/fsm"
)

// paths shows in which state attacks stop: the machine with the runs of the last arm, and a table of all arms.
func (f *attackFile) paths(machine *machine) []block {
	r := f.result
	last := f.lastArm()
	drawn := edgesOf(r.Overall.Arms[last].Edges.Wants)
	if len(drawn) == 0 {
		return nil
	}
	says := fmt.Sprintf("How the calls that attacks want went through the machine in the arm %s. The more runs took an edge, the wider it is; "+
		"no run took a pale edge.", r.Arms[last])
	blocks := []block{{Heading: f.name}}
	if r.Machine != machine.digest {
		blocks[0].Para = "These results are of another machine than that of this version of pgfsm, which is drawn. Edges that it does not have are in the table only."
	}
	return append(blocks, block{Picture: &picture{Caption: says, Drawing: draw(machine.spec, drawn)}}, block{Table: f.edges(machine.spec)})
}

// edges is how many runs took each edge: attacks in every arm that has a machine, and tasks in the last one.
func (f *attackFile) edges(spec *fsm.Spec) *table {
	r := f.result
	t := table{Caption: "Runs that took each edge", Columns: words("from", "on", "to")}
	var columns [][]edge
	for i, a := range r.Overall.Arms {
		if a.Arm != attack.Naive {
			t.Columns = append(t.Columns, numbers("attacks, "+string(a.Arm))...)
			columns = append(columns, edgesOf(r.Overall.Arms[i].Edges.Wants))
		}
	}
	last := f.lastArm()
	t.Columns = append(t.Columns, numbers("tasks, "+string(r.Arms[last]))...)
	columns = append(columns, edgesOf(r.Overall.Arms[last].Edges.Needs))
	runs := make(map[fsm.Mark][]int) // looked up, never ranged over
	var all []edge
	for c, column := range columns {
		for _, e := range column {
			if runs[e.Mark] == nil {
				runs[e.Mark] = make([]int, len(columns))
				all = append(all, edge{Mark: e.Mark})
			}
			runs[e.Mark][c] += e.Runs
		}
	}
	byTable(spec, all)
	for _, e := range all {
		row := []cell{text(show(string(e.From))), text(show(string(e.On))), text(show(string(e.To)))}
		for _, n := range runs[e.Mark] {
			row = append(row, number(n))
		}
		t.add(row...)
	}
	t.cut()
	return &t
}

func edgesOf(all []attack.Edge) []edge {
	edges := make([]edge, 0, len(all))
	for _, e := range all {
		edges = append(edges, edge{fsm.Mark{From: e.From, On: e.On, To: e.To}, e.Runs})
	}
	return slices.Clip(edges)
}
