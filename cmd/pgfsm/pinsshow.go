package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
	"pgfsm/policy/docdiff"
	"pgfsm/policy/visible"
)

// What a change may take of a screen, so that the others stay in sight. --json cuts nothing.
const (
	maxChangeLines = 100  // lines of a change
	maxRowLines    = 25   // lines of one of its rows, where the change does not fit
	lineWidth      = 80   // characters of a line
	maxPlace       = 1000 // bytes of the place
)

// printChange shows a change to people.
func printChange(out io.Writer, k ink, c docdiff.Change) {
	fmt.Fprintf(out, "  %s %s\n", k.bold(c.Kind), visible.Clip(place(c.At), maxPlace))
	if c.Old.Kind() != '"' || c.New.Kind() != '"' {
		printRows(out, k, fitting(append(blockRows(docdiff.Minus, c.Old), blockRows(docdiff.Plus, c.New)...)))
		return
	}
	before, now := text(c.Old), text(c.New)
	rows := docdiff.Text(before, now)
	for i, row := range rows {
		if row.Sign != docdiff.Skipped {
			rows[i].Text = shown(row.Text)
		}
	}
	printRows(out, k, fitting(rows))
	if odd := docdiff.Lookalikes(before, now); odd != "" {
		fmt.Fprintf(out, "    %s\n", k.bad.Sprint("! the two look the same; they differ in "+odd))
	} else if odd := docdiff.LookalikeWords(before, now); odd != "" {
		fmt.Fprintf(out, "    %s\n", k.bad.Sprint("! words of the two look the same; they differ in "+odd))
	}
}

// fitting leaves out of rows that are fit to be printed what does not fit on the screen: the middle of long rows, and
// rows in the middle. It says how much that is.
func fitting(rows []docdiff.Row) []docdiff.Row {
	all, cut := 0, 0
	for _, r := range rows {
		all, cut = all+rowLines(r), cut+min(rowLines(r), maxRowLines)
	}
	if all <= maxChangeLines {
		return rows
	}
	head, tail := len(rows), len(rows)
	if cut > maxChangeLines {
		const side = (maxChangeLines - 1) / 2 // one line says what is left out
		head = 0
		for n := side; n >= min(rowLines(rows[head]), maxRowLines); head++ {
			n -= min(rowLines(rows[head]), maxRowLines)
		}
		for n := side; n >= min(rowLines(rows[tail-1]), maxRowLines); tail-- {
			n -= min(rowLines(rows[tail-1]), maxRowLines)
		}
	}
	var kept []docdiff.Row
	for _, r := range rows[:head] {
		kept = append(kept, shortened(r)...)
	}
	if head < tail {
		size := 0
		for _, r := range rows[head:tail] {
			size += utf8.RuneCountInString(r.Text)
		}
		kept = append(kept, docdiff.Row{Sign: textCut, Text: fmt.Sprintf("%d rows with %d characters", tail-head, size)})
	}
	for _, r := range rows[tail:] {
		kept = append(kept, shortened(r)...)
	}
	return kept
}

// textCut is the sign of a row that says how much is not shown that should be looked at.
const textCut = "!"

// rowLines counts the lines that a row takes on a screen.
func rowLines(r docdiff.Row) int {
	const margin = len("    - ")
	return (margin + utf8.RuneCountInString(r.Text) + lineWidth - 1) / lineWidth
}

// shortened leaves out the middle of a row that is too long.
func shortened(r docdiff.Row) []docdiff.Row {
	if rowLines(r) <= maxRowLines {
		return []docdiff.Row{r}
	}
	const side = (maxRowLines - 1) / 2 * (lineWidth - len("    - ")) // characters; one line says what is left out
	runes := []rune(r.Text)
	left := docdiff.Row{Sign: textCut, Text: fmt.Sprintf("%d characters", len(runes)-2*side)}
	return []docdiff.Row{{Sign: r.Sign, Text: string(runes[:side])}, left, {Sign: r.Sign, Text: string(runes[len(runes)-side:])}}
}

func printRows(out io.Writer, k ink, rows []docdiff.Row) {
	for _, r := range rows {
		line := k.signed(r.Sign, r.Text)
		switch r.Sign {
		case docdiff.Skipped:
			line = k.faint(r.Sign + " " + r.Text)
		case textCut:
			line = k.bad.Sprint(r.Sign + " " + r.Text + " are not shown here; --json shows all")
		}
		fmt.Fprintln(out, "    "+line)
	}
}

// printBlock shows a value as a block, each line with its sign, whole.
func printBlock(out io.Writer, k ink, sign string, v jsontext.Value) {
	printRows(out, k, blockRows(sign, v))
}

func blockRows(sign string, v jsontext.Value) (rows []docdiff.Row) {
	if v == nil {
		return nil
	}
	block := v.Clone()
	if err := block.Indent(jsontext.WithIndent("  ")); err != nil {
		panic("a value in canonical form cannot be indented: " + err.Error())
	}
	for line := range strings.SplitSeq(asciiControls(block), "\n") {
		rows = append(rows, docdiff.Row{Sign: sign, Text: line})
	}
	return rows
}

func (i ink) signed(sign, line string) string {
	switch sign {
	case docdiff.Minus:
		return i.bad.Sprint(sign + " " + line)
	case docdiff.Plus:
		return i.good.Sprint(sign + " " + line)
	}
	return sign + " " + line
}

func place(p jsontext.Pointer) string {
	if p == "" {
		return "the whole definition"
	}
	return string(p)
}

func text(v jsontext.Value) string {
	s, err := canonical.Unquote(v)
	if err != nil {
		panic("a text in canonical form cannot be read: " + err.Error())
	}
	return s
}

var backslashes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`)

// shown writes a text between quotation marks, so that its ends are seen, and so that an escape that stands in the text
// cannot be taken for one of ours.
func shown(s string) string { return `"` + visible.Text(backslashes.Replace(s)) + `"` }
