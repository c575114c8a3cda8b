package docdiff

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
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

// shortText is the number of bytes up to which both texts are shown whole.
const shortText = 120

var wordPattern = regexp.MustCompile(`\S+\s*|\s+`)

// Text returns two texts as one: line by line if there are lines, otherwise word by word. It has
// every change, some unchanged text around it, and the amount of omitted text.
func Text(before, now string) []Row {
	if strings.Contains(before+now, "\n") {
		return compareTexts(slices.Collect(strings.Lines(before)), slices.Collect(strings.Lines(now)))
	}
	if max(len(before), len(now)) <= shortText {
		return []Row{{Minus, before}, {Plus, now}}
	}
	var rows []Row
	for _, w := range compareTexts(wordPattern.FindAllString(before, -1), wordPattern.FindAllString(now, -1)) {
		if last := len(rows) - 1; last >= 0 && rows[last].Sign == w.Sign && w.Sign != Skipped {
			rows[last].Text += w.Text
		} else {
			rows = append(rows, w)
		}
	}
	return rows
}

// compareTexts returns the pieces that only one of two texts has, with some common ones around
// them, and counts the bytes of the other pieces.
func compareTexts(before, now []string) (rows []Row) {
	covered := 0 // pieces of before that have a row
	skip := func(end int) {
		if n := len(strings.Join(before[covered:end], "")); n > 0 {
			rows = append(rows, Row{Skipped, fmt.Sprintf("%d bytes that are the same", n)})
		}
		covered = end
	}

	_, hunks, _ := strings.Cut(string(diff.Diff("before", quotedLines(before), "now", quotedLines(now))), "\n+++ now\n")
	for line := range strings.Lines(hunks) {
		var start, count int
		if n, _ := fmt.Sscanf(line, "@@ -%d,%d", &start, &count); n == 2 {
			if count > 0 { // pieces count from 1, but a hunk without one names the piece before it
				start--
			}
			skip(start)
			continue
		}
		text, err := strconv.Unquote(strings.TrimSuffix(line[1:], "\n"))
		if err != nil {
			panic("a quoted piece of a text cannot be read: " + err.Error())
		}
		rows = append(rows, Row{line[:1], text})
		if line[:1] != Plus {
			covered++
		}
	}

	skip(len(before))
	return rows
}

// quotedLines writes each piece of a text as a line.
func quotedLines(pieces []string) []byte {
	var b []byte
	for _, piece := range pieces {
		b = append(strconv.AppendQuote(b, piece), '\n')
	}
	return b
}
