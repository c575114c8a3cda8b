package report

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"pgfsm/eval"
	"pgfsm/internal/visible"
)

// Bounds of the page. What is left out is counted on the page; the figures are of everything.
const (
	maxNameBytes = 160  // of a name from a file
	maxTextBytes = 2000 // of a call
	maxRows      = 200  // of one table
	maxCalls     = 8    // of one attack
)

// A page is the content of both forms of a report, in order.
type page struct {
	Title    string
	Lead     []string
	Sections []section
}

// A section is a heading and its blocks.
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

// A cell is a figure, with a note in smaller print.
type cell struct{ Text, Note string }

// A picture is a drawing with a caption, in HTML only.
type picture struct {
	Caption string
	Drawing template.HTML
}

// show makes a text from a file fit for a page: bounded, on one line, with every character visible.
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

// add appends a row. If the number of rows depends on a file, cut follows.
func (t *table) add(cells ...cell) { t.Rows = append(t.Rows, cells) }

// cut keeps the first rows, and counts the others in the caption.
func (t *table) cut() {
	if n := len(t.Rows); n > maxRows {
		t.Rows = t.Rows[:maxRows]
		t.Caption += fmt.Sprintf(" (the first %d of %d rows)", maxRows, n)
	}
}

func text(s string) cell { return cell{Text: s} }

// gate names a gate; a call can also fail for a tool that no server lists.
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
