package main

import (
	"fmt"
	"io"
	"os"

	"pgfsm/internal/visible"

	"github.com/fatih/color"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/term"
)

// schemaVersion is the version of every --json document. Members may be added under the same version; readers ignore
// what they do not know.
const schemaVersion = 1

// ink colours what people read: on a terminal only, and never where NO_COLOR is set (https://no-color.org)
// or the terminal says that it is dumb.
type ink struct{ good, bad, dim, strong *color.Color }

func newInk(w world) ink {
	i := ink{color.New(color.FgGreen), color.New(color.FgRed), color.New(color.Faint), color.New(color.Bold)}
	colour := isTerminal(w.stdout) && w.env("NO_COLOR") == "" && w.env("TERM") != "dumb"
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

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// printJSON prints one document, indented for people and escaped for terminals.
func printJSON(w io.Writer, v any) error {
	// A path need not be UTF-8; its document must be printed all the same.
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", visible.JSON(b))
	return err
}
