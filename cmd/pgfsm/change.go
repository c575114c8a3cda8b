package main

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/docdiff"
	"pgfsm/internal/visible"
)

// The space that one change may take on a screen, so that the others stay in sight. --json shortens nothing.
const (
	changeLines = 100
	changeWidth = 80 - len("    - ")
	maxPointer  = 1000 // bytes
)

// printChange shows a change to people.
func printChange(out io.Writer, k ink, c *docdiff.Change) {
	at := string(c.At)
	if at == "" {
		at = "the whole definition"
	}
	fmt.Fprintf(out, "  %s %s\n", k.bold(c.Kind), visible.Clip(at, maxPointer))
	printRows(out, k, c.Rows(changeLines, changeWidth))
}

// printBlock shows a whole value, each line with a sign.
func printBlock(out io.Writer, k ink, sign string, v jsontext.Value) {
	printRows(out, k, docdiff.Block(sign, v))
}

func printRows(out io.Writer, k ink, rows []docdiff.Row) {
	for _, r := range rows {
		line := r.Sign + " " + r.Text
		switch r.Sign {
		case docdiff.Minus, docdiff.Alert:
			line = k.bad.Sprint(line)
		case docdiff.Plus:
			line = k.good.Sprint(line)
		case docdiff.Skipped:
			line = k.faint(line)
		}
		fmt.Fprintln(out, "    "+line)
	}
}
