package docdiff

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Signs of [Row].
const (
	Same    = " "
	Minus   = "-"
	Plus    = "+"
	Skipped = "…" // the row says how much is not shown
)

// A Row is a piece of two texts that are shown as one.
type Row struct{ Sign, Text string }

const (
	shortText    = 120     // bytes up to which both texts are shown whole
	contextWords = 8       // around what changed in one line
	contextLines = 2       // around what changed in many
	maxTextTable = 4 << 20 // pairs of words that are compared; beyond, all that stands between the ends counts as changed
)

var wordPattern = regexp.MustCompile(`\S+\s*|\s+`)

// Text returns two texts as one: line by line if there are lines, otherwise word by word. It has every change, some unchanged text around it, and the
// amount of omitted text.
func Text(before, now string) []Row {
	if strings.Contains(before+now, "\n") {
		lines := func(s string) []string { return slices.Collect(strings.Lines(s)) }
		return around(compare(lines(before), lines(now)), contextLines)
	}
	if max(len(before), len(now)) <= shortText {
		return []Row{{Minus, before}, {Plus, now}}
	}
	words := around(compareWords(before, now), contextWords)
	var rows []Row
	for _, w := range words {
		if last := len(rows) - 1; last >= 0 && rows[last].Sign == w.Sign && w.Sign != Skipped {
			rows[last].Text += w.Text
		} else {
			rows = append(rows, w)
		}
	}
	return rows
}

func compareWords(before, now string) []Row {
	return compare(wordPattern.FindAllString(before, -1), wordPattern.FindAllString(now, -1))
}

// compare says of each piece of two texts whether it is in both, keeping as many as possible.
func compare(a, b []string) (rows []Row) {
	front, back := commonEnds(a, b, func(a, b string) bool { return a == b })
	for _, s := range a[:front] {
		rows = append(rows, Row{Same, s})
	}
	rows = append(rows, compareMiddle(a[front:len(a)-back], b[front:len(b)-back])...)
	for _, s := range a[len(a)-back:] {
		rows = append(rows, Row{Same, s})
	}
	return rows
}

// compareMiddle finds the longest common subsequence, unless that is too much work.
func compareMiddle(a, b []string) (rows []Row) {
	var longest [][]int32
	if len(a)*len(b) <= maxTextTable {
		longest = make([][]int32, len(a)+1)
		longest[len(a)] = make([]int32, len(b)+1)
		for i := len(a) - 1; i >= 0; i-- {
			longest[i] = make([]int32, len(b)+1)
			for j := len(b) - 1; j >= 0; j-- {
				if longest[i][j] = max(longest[i+1][j], longest[i][j+1]); a[i] == b[j] {
					longest[i][j] = longest[i+1][j+1] + 1
				}
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case longest != nil && i < len(a) && j < len(b) && a[i] == b[j]:
			rows = append(rows, Row{Same, a[i]})
			i, j = i+1, j+1
		case i < len(a) && (longest == nil || j == len(b) || longest[i+1][j] >= longest[i][j+1]):
			rows = append(rows, Row{Minus, a[i]})
			i++
		default:
			rows = append(rows, Row{Plus, b[j]})
			j++
		}
	}
	return rows
}

// around keeps what changed and a few rows around it, and counts the rest.
func around(rows []Row, context int) (kept []Row) {
	near := make([]bool, len(rows))
	for i, r := range rows {
		if r.Sign == Same {
			continue
		}
		for k := max(0, i-context); k <= min(len(rows)-1, i+context); k++ {
			near[k] = true
		}
	}
	for i := 0; i < len(rows); i++ {
		if near[i] {
			kept = append(kept, rows[i])
			continue
		}
		skipped := 0
		for ; i < len(rows) && !near[i]; i++ {
			skipped += len(rows[i].Text)
		}
		i--
		kept = append(kept, Row{Skipped, fmt.Sprintf("%d bytes that are the same", skipped)})
	}
	return kept
}
