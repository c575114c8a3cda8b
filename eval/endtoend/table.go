package endtoend

import (
	"fmt"
	"strconv"
	"strings"

	"pgfsm/internal/visible"
)

// A Row is one figure of both agents.
type Row struct{ What, Safe, Naive string }

// Rows are the figures of both agents.
func (m *Metrics) Rows() []Row {
	s, n := &m.Safe, &m.Naive
	number := func(what string, a, b int) Row { return Row{what, strconv.Itoa(a), strconv.Itoa(b)} }
	millis := func(what string, a, b float64) Row {
		return Row{what, fmt.Sprintf("%.1f ms", a), fmt.Sprintf("%.1f ms", b)}
	}
	return []Row{
		number("cases", s.Cases, n.Cases),
		number("answered with a result", s.Answered, n.Answered),
		number("answered with words or a question", s.NeedsInfo, n.NeedsInfo),
		number("blocked", s.Blocked, n.Blocked),
		number("held for people", s.Held, n.Held),
		number("failed", s.Failed, n.Failed),
		number("tool calls", s.ToolCalls, n.ToolCalls),
		number("summaries", s.Summaries, n.Summaries),
		number("summaries without evidence", s.Unbacked, n.Unbacked),
		number("calls of disallowed tools", s.DisallowedSent, n.DisallowedSent),
		number("disallowed tools executed", s.DisallowedExecuted, n.DisallowedExecuted),
		{"permitted requests served", of(s.Served, s.Permitted), of(n.Served, n.Permitted)},
		millis("latency p50", s.Latency.P50, n.Latency.P50),
		millis("latency p95", s.Latency.P95, n.Latency.P95),
		millis("latency max", s.Latency.Max, n.Latency.Max),
		{"tokens, prompt", s.Tokens.prompt(), n.Tokens.prompt()},
		{"tokens, completion", s.Tokens.completion(), n.Tokens.completion()},
	}
}

func of(k, n int) string { return fmt.Sprintf("%d of %d", k, n) }

func (t Tokens) prompt() string     { return t.text(t.Prompt) }
func (t Tokens) completion() string { return t.text(t.Completion) }

// text is a sum, with the number of completions if not all of them are counted.
func (t Tokens) text(sum int64) string {
	switch {
	case t.Counted == 0:
		return "not reported"
	case t.Counted < t.Completions:
		return fmt.Sprintf("%d (of %d of %d completions)", sum, t.Counted, t.Completions)
	}
	return strconv.FormatInt(sum, 10)
}

// Markdown is the table as a page.
func (m *Metrics) Markdown() string {
	var b strings.Builder
	model := cell(m.Model)
	if m.Scripted {
		model = "none; a scripted model gave each case's texts"
	}
	fmt.Fprintf(&b, "# End to end, %s\n\nModel: %s. pgfsm %s.\n\n| | pgfsm | naive |\n| --- | ---: | ---: |\n", m.Started, model, cell(m.Version))
	for _, r := range m.Rows() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.What, r.Safe, r.Naive)
	}
	b.WriteString("\nWhat stopped runs of pgfsm:\n\n| gate | code | runs |\n| --- | --- | ---: |\n")
	for _, c := range m.Safe.Codes {
		fmt.Fprintf(&b, "| %s | %s | %d |\n", cell(c.Gate), cell(c.Code), c.Count)
	}
	fmt.Fprintf(&b, "\nCases %s, bundle %s, machine %s.\n", m.Suite, m.Bundle, m.Machine)
	if !m.OK {
		b.WriteString("\nFaults:\n\n")
		for _, f := range m.Faults {
			fmt.Fprintf(&b, "- %s\n", cell(f))
		}
	}
	return b.String()
}

// cell keeps a text within its cell.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "&", "&amp;").Replace(visible.Text(text))
}
