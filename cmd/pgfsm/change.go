package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
	"pgfsm/policy/docdiff"
	"pgfsm/policy/visible"
)

// The space that one change may take on a screen, so that the others stay in sight. --json shortens nothing.
const (
	changeLines = 100
	changeWidth = 80 - len("    - ")
	maxPointer  = 1000 // bytes
)

// printChange shows a change to people.
func printChange(out io.Writer, k ink, c docdiff.Change) {
	at := string(c.At)
	if at == "" {
		at = "the whole definition"
	}
	fmt.Fprintf(out, "  %s %s\n", k.bold(c.Kind), visible.Clip(at, maxPointer))
	if c.Old.Kind() != '"' || c.New.Kind() != '"' {
		rows := append(blockRows(docdiff.Minus, c.Old), blockRows(docdiff.Plus, c.New)...)
		printRows(out, k, docdiff.Fit(rows, changeLines, changeWidth))
		return
	}
	before, now := unquoted(c.Old), unquoted(c.New)
	rows := docdiff.Text(before, now)
	for i, row := range rows {
		if row.Sign != docdiff.Skipped {
			rows[i].Text = quotedText(row.Text)
		}
	}
	printRows(out, k, docdiff.Fit(rows, changeLines, changeWidth))
	if letters := docdiff.Lookalikes(before, now); letters != "" {
		fmt.Fprintf(out, "    %s\n", k.bad.Sprint("! the two look the same; they differ in "+letters))
	} else if letters := docdiff.LookalikeWords(before, now); letters != "" {
		fmt.Fprintf(out, "    %s\n", k.bad.Sprint("! words of the two look the same; they differ in "+letters))
	}
}

func printRows(out io.Writer, k ink, rows []docdiff.Row) {
	for _, r := range rows {
		line := r.Sign + " " + r.Text
		switch r.Sign {
		case docdiff.Minus:
			line = k.bad.Sprint(line)
		case docdiff.Plus:
			line = k.good.Sprint(line)
		case docdiff.Skipped:
			line = k.faint(line)
		case docdiff.Cut:
			line = k.bad.Sprint(line + " are not shown here; --json shows all")
		}
		fmt.Fprintln(out, "    "+line)
	}
}

// printBlock shows a whole value, each line with a sign.
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
	for line := range strings.SplitSeq(visible.JSON(block), "\n") {
		rows = append(rows, docdiff.Row{Sign: sign, Text: line})
	}
	return rows
}

func unquoted(v jsontext.Value) string {
	s, err := canonical.Unquote(v)
	if err != nil {
		panic("a text in canonical form cannot be read: " + err.Error())
	}
	return s
}

var backslashes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`)

// quotedText writes a text between quotation marks, so that its ends are visible, and so that an escape in the text differs from one of ours.
func quotedText(s string) string { return `"` + visible.Text(backslashes.Replace(s)) + `"` }
