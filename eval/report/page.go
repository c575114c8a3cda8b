package report

import (
	"fmt"
	"strconv"
	"strings"

	"pgfsm/eval"
	"pgfsm/policy/visible"
)

// Bounds of what is shown. What is left out is counted on the page; the figures themselves are of everything.
const (
	maxNameBytes = 160  // of a name that a file holds
	maxTextBytes = 2000 // of a call
	maxRows      = 200  // of one table
	maxThrough   = 100  // groups of attacks that are shown with their calls, of one group of files
	maxCalls     = 8    // calls that are shown of one group of attacks
	maxCases     = 3    // cases that are named of one group of attacks
	maxGroup     = 64   // charts that stand together, and columns by suite
)

// A page is what both forms of a report show, in their order.
type page struct {
	Title    string
	Lead     []string
	Sections []section
}

// A section is one heading and what stands below it.
type section struct {
	ID     string // ours, never from a file: it is the target of a link
	Title  string
	Blocks []block
}

// A block is one of its members.
type block struct {
	Heading  string
	Para     string
	Table    *table
	Folded   *table  // HTML shows its caption until the reader opens it; Markdown has the caption alone
	Charts   []chart // in HTML only: a table beside it has the same figures
	Picture  *picture
	Through  []through
	Commands []string
}

// A table has as many cells in each row as columns.
type table struct {
	Caption string
	Columns []column
	Rows    [][]cell
}

// A column of numbers is set flush right.
type column struct {
	Name   string
	Number bool
}

// A cell is a figure, and in smaller print what belongs to it.
type cell struct{ Text, Note string }

// A picture is a drawing of ours with a description for those who do not see it. It stands in HTML only.
type picture struct {
	Caption string
	Drawing drawing
}

// A through is all attacks of a suite that had the same calls made.
type through struct {
	What  string // which suite, and how many attacks
	About string // how far they came, and the cases
	Calls []string
}

// show makes text of a file fit for a page: bounded, on one line, and nothing invisible in it.
func show(s string) string { return visible.Clip(s, maxNameBytes) }

// words makes a column of text for each name.
func words(names ...string) (columns []column) {
	for _, n := range names {
		columns = append(columns, column{Name: n})
	}
	return columns
}

// numbers makes a column of numbers for each name.
func numbers(names ...string) (columns []column) {
	for _, n := range names {
		columns = append(columns, column{Name: n, Number: true})
	}
	return columns
}

// add appends a row. Who adds rows by what a file holds calls cut at the end.
func (t *table) add(cells ...cell) { t.Rows = append(t.Rows, cells) }

// cut keeps the first rows, and says how many there were.
func (t *table) cut() {
	if n := len(t.Rows); n > maxRows {
		t.Rows = t.Rows[:maxRows]
		t.Caption += fmt.Sprintf(" (the first %d of %d rows)", maxRows, n)
	}
}

func text(s string) cell { return cell{Text: s} }

// gate names a gate. What stopped a call need not be one: the server's catalog does not have every tool.
func gate(name string) cell {
	if name == "" {
		return text("none")
	}
	return text(show(name))
}

func number(n int) cell { return cell{Text: strconv.Itoa(n)} }

// percent writes a rate with one place. A rate that is not 0 or 1 is never shown as 0 or 100.
func percent(rate float64) string {
	switch {
	case rate > 0 && rate < 0.0005:
		return "< 0.1 %"
	case rate < 1 && rate > 0.9995:
		return "> 99.9 %"
	}
	return strconv.FormatFloat(rate*100, 'f', 1, 64) + " %"
}

// share shows how many of how many, and the interval. Of nothing there is no share.
func share(s eval.Share) cell {
	if s.N == 0 {
		return cell{Text: "none"}
	}
	return cell{Text: fmt.Sprintf("%s (%d/%d)", percent(s.Rate), s.K, s.N), Note: interval(s)}
}

func interval(s eval.Share) string {
	low := strings.TrimSuffix(percent(s.Low), " %")
	return low + " to " + percent(s.High)
}

// plural counts things of one kind.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
