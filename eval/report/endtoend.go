package report

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"pgfsm/eval/endtoend"
)

// maxBuckets is how many buckets a histogram may have.
const maxBuckets = 64

func checkMetrics(m *endtoend.Metrics) error {
	if m.Format != endtoend.Format {
		return fmt.Errorf("its format is %q, not %q", show(m.Format), endtoend.Format)
	}
	err := counts(m.Cases)
	for _, t := range []*endtoend.Totals{&m.Safe, &m.Naive} {
		err = errors.Join(err, counts(t.Cases, t.Answered, t.NeedsInfo, t.Blocked, t.Held, t.Failed, t.Unended, t.ToolCalls, t.DisallowedCases,
			t.Tokens.Completions, t.Tokens.Counted, int(t.Tokens.Prompt), int(t.Tokens.Completion)),
			within(t.Unbacked, t.Summaries), within(t.DisallowedExecuted, t.DisallowedSent), within(t.Served, t.Permitted))
		for _, c := range t.Codes {
			err = errors.Join(err, counts(c.Count))
		}
		for _, ms := range []float64{t.Latency.P50, t.Latency.P95, t.Latency.Max} {
			if math.IsNaN(ms) || ms < 0 || ms > maxCount {
				err = errors.Join(err, errors.New("a latency is no time"))
			}
		}
		if len(t.Latency.Buckets) > maxBuckets {
			err = errors.Join(err, fmt.Errorf("a histogram has %d buckets", len(t.Latency.Buckets)))
		}
		for _, b := range t.Latency.Buckets {
			err = errors.Join(err, counts(b.Count, int(b.Upper)))
		}
	}
	if err == nil && !sameBuckets(m.Safe.Latency.Buckets, m.Naive.Latency.Buckets) {
		err = errors.New("the two histograms have other buckets")
	}
	return err
}

func sameBuckets(a, b []endtoend.Bucket) bool {
	return slices.EqualFunc(a, b, func(a, b endtoend.Bucket) bool { return a.Upper == b.Upper })
}

// section shows pgfsm beside the agent without gates.
func (f *metricsFile) section() section {
	m := f.metrics
	model := "Model: " + show(m.Model) + "."
	if m.Scripted {
		model = "No model was asked: each case's own words were said to both."
	}
	lead := fmt.Sprintf("%s went through pgfsm and through an agent without gates, on the same servers. %s Begun %s, pgfsm %s.",
		plural(m.Cases, "case", "cases"), model, show(m.Started), show(m.Version))
	both := table{Caption: "pgfsm beside the agent without gates", Columns: slices.Concat(words("figure"), numbers("pgfsm", "naive"))}
	for _, r := range m.Rows() {
		both.add(text(r.What), text(r.Safe), text(r.Naive))
	}
	blocks := []block{{Para: lead}, {Table: &both}}
	if len(m.Faults) > 0 {
		faults := table{Caption: "What pgfsm did that it must not, or could not", Columns: words("fault")}
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

// latencies shows how long cases took, of both agents to one scale, from the first bucket that holds something to the last.
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
	var ours, theirs []countBar
	most := 0
	for i := first; i <= last; i++ {
		name := upTo(safe, i)
		ours, theirs = append(ours, countBar{name, safe[i].Count}), append(theirs, countBar{name, naive[i].Count})
		most = max(most, safe[i].Count, naive[i].Count)
		t.add(text(name), number(safe[i].Count), number(naive[i].Count))
	}
	charts := []chart{
		newCounts("pgfsm: cases by latency", toneOurs, most, ours),
		newCounts("naive: cases by latency", toneNaive, most, theirs),
	}
	return []block{{Heading: "Latency", Charts: charts}, {Table: &t}}
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

// millis writes a time as short as it can be.
func millis(ms int64) string {
	if ms >= 1000 && ms%1000 == 0 {
		return strconv.FormatInt(ms/1000, 10) + " s"
	}
	return strconv.FormatInt(ms, 10) + " ms"
}
