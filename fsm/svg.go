package fsm

import (
	"bytes"
	"fmt"
	"strings"
)

// Faces of the picture, with fallbacks on every system.
const (
	textFace = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif"
	codeFace = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
)

// tone is a colour on a light and on a dark background.
type tone struct{ name, light, dark string }

// tones are all colours; the last ones go to the terminal states in turn.
var tones = []tone{
	{"back", "#ffffff", "#0d1117"}, {"card", "#f6f8fa", "#161b22"}, {"rim", "#8c959f", "#656c76"},
	{"name", "#1f2328", "#f0f6fc"}, {"note", "#59636e", "#9198a1"}, {"wire", "#6e7781", "#8b949e"},
	{"fade", "#d8dee4", "#30363d"}, {"dim", "#8c959f", "#6e7681"}, {"way", "#0969da", "#58a6ff"},
	{"end0", "#1a7f37", "#3fb950"}, {"end1", "#8250df", "#bc8cff"}, {"end2", "#bc4c00", "#f0883e"},
	{"end3", "#cf222e", "#ff7b72"}, {"end4", "#1b7c83", "#39c5cf"}, {"end5", "#9a6700", "#d29922"},
}

// endTones is how many tones there are for terminal states.
const endTones = 6

// paint gives the attributes for a fill and a stroke. The light colours stand in the element itself, so that the
// picture survives where style sheets are forbidden; the class lets a dark viewer exchange them.
func paint(fill, stroke string) string {
	attr := func(kind, name string) string {
		for _, t := range tones {
			if t.name == name {
				return fmt.Sprintf(` %s="%s"`, kind, t.light)
			}
		}
		return fmt.Sprintf(` %s="none"`, kind)
	}
	classes := strings.TrimSpace("f-" + fill + " s-" + stroke)
	return fmt.Sprintf(`class="%s"%s%s`, classes, attr("fill", fill), attr("stroke", stroke))
}

// drawing collects the elements of one picture.
type drawing struct {
	*layout
	bytes.Buffer
	marked bool
}

// SVG draws the machine: the states on a spine from top to bottom in the order of the table, the terminal states beside
// it, each with one lane that gathers all wires to it. The picture follows a viewer's light or dark scheme. Pointing at
// a state or a wire shows its sentences. With marks, the steps taken are bold and numbered and the rest is faded.
func SVG(s *Spec, m Marks) []byte {
	d := &drawing{layout: newLayout(s, m, nil), marked: len(m) > 0}
	return d.draw(subtitle(s, m))
}

func (d *drawing) draw(subtitle string) []byte {
	s, foot := d.chart.spec, d.height
	d.height += 18 * len(d.strange)
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" role="img" width="%d" height="%d" viewBox="0 0 %d %d">`+"\n",
		d.width, d.height, d.width, d.height)
	fmt.Fprintf(d, "<title>%s</title>\n", escapeXML(s.Name))
	if d.runs == nil {
		fmt.Fprintf(d, "<style>%s</style>\n", SVGStyle())
	}
	fmt.Fprintf(d, `<rect %s width="%d" height="%d" rx="12"/>`+"\n", paint("back", "none"), d.width, d.height)
	d.text(margin, 38, "name", `font-size="20" font-weight="700" font-family="`+textFace+`"`, s.Name)
	d.text(margin, 58, "note", `font-size="12" font-family="`+textFace+`"`, subtitle)
	for _, taken := range []bool{false, true} {
		for _, side := range d.straight {
			d.straightWires(side, taken)
		}
		for side := range d.lanes {
			for _, n := range d.lanes[side] {
				d.laneWires(side, n, taken)
			}
		}
	}
	for _, k := range d.cards {
		d.card(k)
	}
	for i, line := range d.strange {
		d.text(margin, foot+18*i-6, "end3", `font-size="12" font-family="`+textFace+`"`, line)
	}
	d.WriteString("</svg>\n")
	return d.Bytes()
}

// SVGStyle is the style sheet for viewers with a dark scheme. [SVG] contains it.
func SVGStyle() string {
	var b strings.Builder
	b.WriteString("@media (prefers-color-scheme: dark) {")
	for _, t := range tones {
		fmt.Fprintf(&b, " .f-%s { fill: %s } .s-%s { stroke: %s }", t.name, t.dark, t.name, t.dark)
	}
	b.WriteString(" }")
	return b.String()
}

func subtitle(s *Spec, m Marks) string {
	if len(m) == 0 {
		return fmt.Sprintf("%d states, %d transitions", len(s.Places), len(s.Rows))
	}
	return fmt.Sprintf("one run: %d steps from %s to %s", len(m), m[0].From, m[len(m)-1].To)
}

func (d *drawing) text(x, y int, fill, attrs, text string) {
	fmt.Fprintf(d, `<text x="%d" y="%d" %s %s>%s</text>`+"\n", x, y, paint(fill, "none"), attrs, escapeXML(text))
}

func (d *drawing) label(x, y int, fill, anchor, text string) {
	d.text(x, y, fill, fmt.Sprintf(`text-anchor="%s" font-size="11" font-family="%s"`, anchor, codeFace), text)
}
