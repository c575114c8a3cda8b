package docdiff

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// Cut is the sign of a row that counts what [Fit] left out.
const Cut = "!"

// Fit shortens rows to a number of lines of a screen, each of width characters, by leaving out the middle.
func Fit(rows []Row, lines, width int) []Row {
	height := func(r Row) int { return max(1, (utf8.RuneCountInString(r.Text)+width-1)/width) }
	all := 0
	for _, r := range rows {
		all += height(r)
	}
	if all <= lines {
		return rows
	}
	half := (lines - 1) / 2 // one line counts what is left out
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
	fitted = append(fitted, Row{Cut, fmt.Sprintf("%d characters", omitted)})
	if len(end) > 0 {
		fitted = append(fitted, Row{rows[last].Sign, string(end)})
	}
	return append(fitted, rows[last+1:]...)
}
