package report

import (
	"fmt"
	"slices"

	"pgfsm/eval/endtoend"
)

func checkMetrics(m *endtoend.Metrics) error {
	if m.Format != endtoend.Format {
		return fmt.Errorf("its format is %q, not %q", show(m.Format), endtoend.Format)
	}
	return nil
}

// section shows pgfsm beside the agent without gates.
func (f *metricsFile) section() section {
	m := f.metrics
	model := "Model: " + show(m.Model) + "."
	if m.Scripted {
		model = "No model was asked: a scripted model gave both the text of each case."
	}
	lead := fmt.Sprintf("%s went through pgfsm and through an agent without gates, on the same servers. %s Begun %s, pgfsm %s.",
		plural(m.Cases, "case", "cases"), model, show(m.Started), show(m.Version))
	both := table{Caption: "pgfsm beside the agent without gates", Columns: slices.Concat(words("figure"), numbers("pgfsm", "naive"))}
	for _, r := range m.Rows() {
		both.add(text(r.What), text(r.Safe), text(r.Naive))
	}
	blocks := []block{{Para: lead}, {Table: &both}}
	if len(m.Faults) > 0 {
		faults := table{Caption: "Faults of pgfsm", Columns: words("fault")}
		for _, fault := range m.Faults {
			faults.add(text(show(fault)))
		}
		faults.cut()
		blocks = append(blocks, block{Table: &faults})
	}
	if len(m.Safe.Codes) > 0 {
		codes := table{Caption: "What stopped runs of pgfsm", Columns: slices.Concat(words("gate", "code"), numbers("runs"))}
		for _, c := range m.Safe.Codes {
			codes.add(gate(c.Gate), text(show(c.Code)), number(c.Count))
		}
		codes.cut()
		blocks = append(blocks, block{Table: &codes})
	}
	return section{ID: "endtoend", Title: "End to end, beside an agent without gates", Blocks: blocks}
}
