package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"pgfsm/internal/present"
	"pgfsm/internal/visible"
)

// Widths of arguments on a screen, in characters.
const (
	nameColumn = 24
	valueWidth = 70 // with the indentation less than the 80 of a common terminal
)

// differs marks an argument that differs from the last approved call.
const differs = "≠"

// argumentsText returns the arguments of a call, one after the other. Values are quoted and wrapped
// with an indentation, so no value can imitate another line of the screen.
func (i ink) argumentsText(a present.Arguments) string {
	width := 0
	for k := range a.Values {
		width = max(width, min(utf8.RuneCountInString(plainOrQuoted(a.Values[k].Name())), nameColumn))
	}
	var b strings.Builder
	for k := range a.Values {
		v := &a.Values[k]
		sign, value, was := " ", argumentValue(v), ""
		switch v.Change {
		case present.New:
			was = "new"
		case present.Changed:
			was = "was " + quoted(v.Kind, v.Was)
		case present.Gone:
			was = "not any more: " + quoted(v.Kind, v.Was)
		}
		if v.Change != "" {
			sign, was = i.bold(differs), "("+was+")"
		}
		line := fmt.Sprintf("%-*s  %s", width, plainOrQuoted(v.Name()), strings.TrimSpace(value+"  "+was))
		fmt.Fprintf(&b, "%s %s\n", sign, wrapped(line))
		switch from := wrapped(visible.Text(v.From)); {
		case v.Nowhere:
			fmt.Fprintf(&b, "  %*s  %s\n", width, "", i.bad.Sprint("! "+from))
		case from != "":
			fmt.Fprintf(&b, "  %*s  %s\n", width, "", i.faint("from "+from))
		}
	}
	if len(a.Values) == 0 {
		b.WriteString("  no arguments\n")
	}
	return b.String()
}

// argumentValue returns an argument's value; empty if the call does not have the argument any more.
func argumentValue(v *present.Argument) string {
	if v.Change == present.Gone {
		return ""
	}
	return quoted(v.Kind, v.Text)
}

// quoted returns a value; a text stands between quotation marks.
func quoted(kind, value string) string {
	if kind == "text" {
		return visible.Quote(value)
	}
	return visible.Text(value)
}

func plainOrQuoted(name string) string {
	if visible.PlainWord(name) {
		return name
	}
	return visible.Quote(name)
}

// wrapped breaks a long line into lines that are indented further than any other line of a screen.
func wrapped(line string) string {
	var b strings.Builder
	for k, r := range []rune(line) {
		if k > 0 && k%valueWidth == 0 {
			b.WriteString("\n      … ")
		}
		b.WriteRune(r)
	}
	return b.String()
}

// maxGistValue bounds a name and a value in a list of calls, in bytes.
const maxGistValue = 40

// gistText returns the arguments that matter most, in one line.
func gistText(g present.Gist) string {
	clip := func(s string, quote func(string) string) string {
		if len(s) <= maxGistValue {
			return quote(s)
		}
		return quote(visible.Cut(s, maxGistValue, "")) + "…"
	}
	var words []string
	for k := range g.Arguments {
		v := &g.Arguments[k]
		word := clip(v.Name(), plainOrQuoted)
		if v.Change == present.Gone {
			word += " (not any more)"
		} else {
			word += "=" + clip(v.Text, func(s string) string { return quoted(v.Kind, s) })
		}
		if v.Change != "" {
			word = differs + word
		}
		words = append(words, word)
	}
	if g.More > 0 {
		orMore := ""
		if g.Unlisted {
			orMore = " or"
		}
		words = append(words, fmt.Sprintf("+%d%s more", g.More, orMore))
	}
	if len(words) == 0 {
		return "no arguments"
	}
	return strings.Join(words, "  ")
}

// trackText returns how far a run came, in one line.
func (i ink) trackText(t present.Track) string {
	return t.Text(func(c present.TrackClass, sign string) string {
		switch c {
		case present.TrackReached:
			return i.good.Sprint(sign)
		case present.TrackEnded:
			return i.bad.Sprint(sign)
		case present.TrackAhead:
			return i.faint(sign)
		}
		return i.bold(sign)
	})
}
