package report

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"pgfsm/eval/endtoend"
)

func checkMetrics(m *endtoend.Metrics) error {
	if m.Format != endtoend.Format {
		return fmt.Errorf("its format is %q, not %q", show(m.Format), endtoend.Format)
	}
	if !sameBuckets(m.Safe.Latency.Buckets, m.Naive.Latency.Buckets) {
		return errors.New("the two histograms have other buckets")
	}
	return nil
}

func sameBuckets(a, b []endtoend.Bucket) bool {
	return slices.EqualFunc(a, b, func(a, b endtoend.Bucket) bool { return a.Upper == b.Upper })
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
	return section{ID: "endtoend", Title: "End to end, beside an agent without gates", Blocks: append(blocks, latencies(m)...)}
}

// latencies is the histogram of both agents, from the first bucket with a case to the last.
func latencies(m *endtoend.Metrics) []block {
	safe, naive := m.Safe.Latency.Buckets, m.Naive.Latency.Buckets
	holds := func(i int) bool { return safe[i].Count > 0 || naive[i].Count > 0 }
	first, last := 0, len(safe)-1
	for first <= last && !holds(first) {
		first++
	}
	for last >= first && !holds(last) {
		last--
	}
	if first > last {
		return nil
	}
	t := table{Caption: "How long cases took, from the request to the answer", Columns: slices.Concat(words("took"), numbers("pgfsm", "naive"))}
	for i := first; i <= last; i++ {
		t.add(text(upTo(safe, i)), number(safe[i].Count), number(naive[i].Count))
	}
	return []block{{Table: &t}}
}

// upTo names a bucket by its upper end. The last one has none.
func upTo(all []endtoend.Bucket, i int) string {
	switch upper := all[i].Upper; {
	case upper > 0:
		return "≤ " + millis(upper)
	case i > 0:
		return "> " + millis(all[i-1].Upper)
	}
	return "any"
}

// millis writes a time in its shortest form.
func millis(ms int64) string {
	if ms >= 1000 && ms%1000 == 0 {
		return strconv.FormatInt(ms/1000, 10) + " s"
	}
	return strconv.FormatInt(ms, 10) + " ms"
}
