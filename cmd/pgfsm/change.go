package main

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/docdiff"
	"pgfsm/internal/visible"
)

// Bounds of one change on a screen, so the other changes stay in sight. --json shortens nothing.
const (
	changeLines = 100
	changeWidth = 80 - len("    - ")
	maxPointer  = 1000 // bytes
)

// printChange prints a change for people.
func printChange(out io.Writer, k ink, c *docdiff.Change) {
	at := string(c.At)
	if at == "" {
		at = "the whole definition"
	}
	fmt.Fprintf(out, "  %s %s\n", k.bold(c.Kind), visible.Clip(at, maxPointer))
	printRows(out, k, c.Rows(changeLines, changeWidth))
}

// printBlock prints a whole value, with a sign before each line.
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
