package fsm

import (
	"encoding/xml"
	"strconv"
	"strings"
	"unicode"
)

// legible replaces what no picture can show and XML forbids: control, format and bidi characters and broken UTF-8.
func legible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// escapeXML makes text fit for an XML element or attribute.
func escapeXML(s string) string {
	var b strings.Builder
	// A strings.Builder never fails.
	_ = xml.EscapeText(&b, []byte(legible(s)))
	return b.String()
}

// escapeMermaid keeps letters, digits and harmless punctuation and writes the rest as Mermaid's entity codes.
func escapeMermaid(s string) string {
	var b strings.Builder
	for _, r := range legible(s) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" _.,=()-∩→", r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString("#" + strconv.Itoa(int(r)) + ";")
	}
	return b.String()
}

// columns is how many columns a text takes in a fixed-width face: two for the wide scripts.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r >= 0x1100 && r != '→' && r != '∩' && r != '…' {
			n++
		}
	}
	return n
}

// wrap breaks text into at most most lines of width columns; what does not fit ends in an ellipsis.
func wrap(s string, width, most int) []string {
	var lines []string
	for _, word := range strings.Fields(legible(s)) {
		word = shorten(word, width)
		last := len(lines) - 1
		if last >= 0 && columns(lines[last])+1+columns(word) <= width {
			lines[last] += " " + word
			continue
		}
		if len(lines) == most {
			lines[last] = shorten(lines[last]+"……", width)
			return lines
		}
		lines = append(lines, word)
	}
	return lines
}

// shorten cuts text to width columns, the last one an ellipsis.
func shorten(s string, width int) string {
	if columns(s) <= width && !strings.HasSuffix(s, "……") {
		return s
	}
	runes := []rune(strings.TrimRight(s, "…"))
	for len(runes) > 0 && columns(string(runes))+1 > width {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// stepped adds to a trigger the numbers of the steps that took it.
func stepped(on Trigger, steps []int) string {
	text := legible(string(on))
	for i, step := range steps {
		if i == 0 {
			text += " ("
		} else {
			text += ", "
		}
		text += strconv.Itoa(step)
	}
	if len(steps) > 0 {
		text += ")"
	}
	return text
}
