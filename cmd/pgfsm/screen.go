package main

import (
	"bufio"
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"os"
	"strings"
	"text/template"

	"github.com/fatih/color"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/cli"
	"pgfsm/internal/docdiff"
	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// ink colours text for people: on a terminal only, and never if NO_COLOR is set
// (https://no-color.org) or TERM is dumb.
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

// changeText returns a change for people.
func (i ink) changeText(c *docdiff.Change) string {
	place := cmp.Or(string(c.At), "the whole definition")
	return fmt.Sprintf("  %s %s\n", i.bold(c.Kind), visible.Clip(place, maxPointer)) +
		i.rowsText(c.Rows(changeLines, changeWidth))
}

// blockText returns the lines of a whole value, with a sign before each.
func (i ink) blockText(sign string, v jsontext.Value) string {
	return i.rowsText(docdiff.Block(sign, v))
}

func (i ink) rowsText(rows []docdiff.Row) string {
	var b strings.Builder
	for _, r := range rows {
		line := r.Sign + " " + r.Text
		switch r.Sign {
		case docdiff.Minus, docdiff.Alert:
			line = i.bad.Sprint(line)
		case docdiff.Plus:
			line = i.good.Sprint(line)
		case docdiff.Skipped:
			line = i.faint(line)
		}
		b.WriteString("    " + line + "\n")
	}
	return b.String()
}

// fieldsText returns rows, with names padded to a width.
func (i ink) fieldsText(width int, rows []present.Row) string {
	var b strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&b, "%s %s\n", i.bold(fmt.Sprintf("%-*s", width, row.Name+":")), visible.Text(row.Value))
	}
	return b.String()
}

//go:embed screens.tmpl
var screensText string

var screens = template.Must(template.New("screens").Funcs(newInk(world{}).templateFuncs()).Parse(screensText))

// templateFuncs are those of the templates in screens.tmpl.
func (i ink) templateFuncs() template.FuncMap {
	return template.FuncMap{
		"bold": i.bold, "faint": i.faint, "bad": i.bad.Sprint, "mark": i.mark, "change": i.changeText, "whole": i.blockText,
		"fields": i.fieldsText, "arguments": i.argumentsText, "gist": gistText, "track": i.trackText,
		"indented": indentValue, "ranges": rangesText, "head": serverHead, "join": strings.Join,
		"hasPrefix": strings.HasPrefix, "lines": visible.Lines,
		"count":          cli.Count,
		"add":            func(a, b int) int { return a + b },
		"clip":           func(most int, v any) string { return visible.Clip(fmt.Sprint(v), most) },
		"changedGrounds": changedGrounds, "changedTerms": changedTerms,
		"short": ledger.ShortID, "person": present.ShortName, "toolColumn": toolColumn, "codeColumn": codeColumn,
		"hints": func(a policy.Annotations) string { return present.Hints(&a) },
		"quote": visible.Quote,
		"text":  func(v any) string { return visible.Text(fmt.Sprint(v)) },
	}
}

// templatePrinter returns a function that prints data in the form of a template. Tabs in the
// template separate columns.
func templatePrinter(name string, data any) func(out io.Writer, k ink) {
	return func(out io.Writer, k ink) {
		var b bytes.Buffer
		if err := template.Must(screens.Clone()).Funcs(k.templateFuncs()).ExecuteTemplate(&b, name, data); err != nil {
			panic("the template and its data do not fit: " + err.Error())
		}
		table := cli.NewTable(out)
		_, _ = b.WriteTo(table) // the writer of standard output keeps the error
		_ = table.Flush()
	}
}

// linePrinter returns a function that prints one text, with its values escaped.
func linePrinter(format string, values ...any) func(io.Writer, ink) {
	for i, v := range values {
		values[i] = visible.Text(fmt.Sprint(v))
	}
	return func(out io.Writer, _ ink) { fmt.Fprintf(out, format, values...) }
}

// confirm asks the operator. Any answer but y or yes means no, and gives the exit code no.
func (w world) confirm(question string) error {
	fmt.Fprintf(w.stderr, "%s [y/N] ", question)
	// The end of the input means no.
	line, err := bufio.NewReader(io.LimitReader(w.stdin, 16)).ReadString('\n')
	if f, ok := w.stdin.(*os.File); err != nil || !ok || !cli.IsTerminal(f) {
		fmt.Fprintln(w.stderr) // end the question's line, because no Enter did
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	if answer != "y" && answer != "yes" {
		w.warn("nothing was written: answer y, or use --yes")
		return cli.Exit(cli.ExitNo)
	}
	return nil
}

// forScreen returns a writer to the writer to, for JSON documents, whole or in pieces that end
// between characters. If screen is a terminal, it escapes characters that do not show as
// themselves. Otherwise it changes nothing, because hashes cover these bytes.
func forScreen(screen, out io.Writer) io.Writer {
	if cli.IsTerminal(screen) {
		return escaping{out}
	}
	return out
}

type escaping struct{ to io.Writer }

func (e escaping) Write(doc []byte) (int, error) {
	if _, err := io.WriteString(e.to, visible.JSON(doc)); err != nil {
		return 0, err
	}
	return len(doc), nil
}
