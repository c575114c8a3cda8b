package docdiff

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
)

// Alert is the sign of a row that is about the others: how much is left out, or which letters are
// of another script.
const Alert = "!"

// Rows returns a change as rows that a terminal can print, shortened by [Fit].
func (c *Change) Rows(lines, width int) []Row {
	if c.Old.Kind() != '"' || c.New.Kind() != '"' {
		return Fit(append(Block(Minus, c.Old), Block(Plus, c.New)...), lines, width)
	}
	oldText, newText := unquoteText(c.Old), unquoteText(c.New)
	rows := Text(oldText, newText)
	for i, row := range rows {
		if row.Sign != Skipped {
			rows[i].Text = visible.Quote(row.Text)
		}
	}
	rows = Fit(rows, lines, width)
	if letters := OtherScripts(oldText, newText); letters != "" {
		rows = append(rows, Row{Alert, "letters of another script, which may look alike: " + letters})
	}
	return rows
}

// Block returns a value in canonical form as rows that a terminal can print, whole; nil has none.
func Block(sign string, v jsontext.Value) (rows []Row) {
	if v == nil {
		return nil
	}
	block := v.Clone()
	if err := block.Indent(jsontext.WithIndent("  ")); err != nil {
		panic("a value in canonical form cannot be indented: " + err.Error())
	}
	for line := range strings.SplitSeq(visible.JSON(block), "\n") {
		rows = append(rows, Row{sign, line})
	}
	return rows
}

func unquoteText(v jsontext.Value) string {
	s, err := canonical.Unquote(v)
	if err != nil {
		panic("a text in canonical form cannot be read: " + err.Error())
	}
	return s
}

// Fit shortens rows to a number of lines of a screen, each of width characters, by leaving out the
// middle.
func Fit(rows []Row, lines, width int) []Row {
	height := func(r Row) int { return max(1, (utf8.RuneCountInString(r.Text)+width-1)/width) }
	total := 0
	for _, r := range rows {
		total += height(r)
	}
	if total <= lines {
		return rows
	}

	// The first and the last rows that fit whole. One line counts what is left out.
	half := (lines - 1) / 2
	first, above := 0, half
	for ; height(rows[first]) <= above; first++ {
		above -= height(rows[first])
	}
	last, below := len(rows)-1, half
	for ; height(rows[last]) <= below; last-- {
		below -= height(rows[last])
	}

	// Both rows at the edges are longer than the space that is left for them.
	begin, end := []rune(rows[first].Text)[:above*width], []rune(rows[last].Text)
	end = end[len(end)-below*width:]
	omitted := -len(begin) - len(end)
	for _, r := range rows[first : last+1] {
		omitted += utf8.RuneCountInString(r.Text)
	}

	fitted := slices.Clone(rows[:first])
	if len(begin) > 0 {
		fitted = append(fitted, Row{rows[first].Sign, string(begin)})
	}
	fitted = append(fitted, Row{Alert, fmt.Sprintf("%d characters are not shown here; --json shows all", omitted)})
	if len(end) > 0 {
		fitted = append(fitted, Row{rows[last].Sign, string(end)})
	}
	return append(fitted, rows[last+1:]...)
}
