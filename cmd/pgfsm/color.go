package main

import (
	"github.com/fatih/color"

	"pgfsm/internal/cli"
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
