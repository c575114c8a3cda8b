package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fatih/color"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/cli"
	"pgfsm/internal/docdiff"
	"pgfsm/internal/visible"
)

// ink colours text for people: on a terminal only, and never if NO_COLOR is set (https://no-color.org)
// or TERM is dumb.
type ink struct{ good, bad, dim, strong *color.Color }

func newInk(w world) ink {
	i := ink{color.New(color.FgGreen), color.New(color.FgRed), color.New(color.Faint), color.New(color.Bold)}
	colour := cli.IsTerminal(w.stdout) && w.env("NO_COLOR") == "" && w.env("TERM") != "dumb"
	for _, c := range []*color.Color{i.good, i.bad, i.dim, i.strong} {
		if colour {
			c.EnableColor()
		} else {
			c.DisableColor()
		}
	}
	return i
}

func (i ink) mark(yes bool) string {
	if yes {
		return i.good.Sprint("✓")
	}
	return i.bad.Sprint("✗")
}

func (i ink) faint(s string) string { return i.dim.Sprint(s) }

func (i ink) bold(s string) string { return i.strong.Sprint(s) }

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

// confirm asks the operator. Any answer but y or yes means no.
func (w world) confirm(question string) bool {
	fmt.Fprintf(w.stderr, "%s [y/N] ", question)
	line, err := bufio.NewReader(io.LimitReader(w.stdin, 16)).ReadString('\n') // the end of the input means no
	if f, ok := w.stdin.(*os.File); err != nil || !ok || !cli.IsTerminal(f) {
		fmt.Fprintln(w.stderr) // end the question's line, because no Enter did
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// forScreen returns a writer to the writer to, for JSON documents, whole or in pieces that end between characters. If screen is a terminal,
// it escapes characters that do not show as themselves. Otherwise it changes nothing, because hashes cover these bytes.
func forScreen(screen, to io.Writer) io.Writer {
	if cli.IsTerminal(screen) {
		return escaping{to}
	}
	return to
}

type escaping struct{ to io.Writer }

func (e escaping) Write(doc []byte) (int, error) {
	if _, err := io.WriteString(e.to, visible.JSON(doc)); err != nil {
		return 0, err
	}
	return len(doc), nil
}
