package fsm

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
)

// The grid of a drawing, in pixels.
const (
	margin      = 24
	top         = 76
	cardWidth   = 384
	cardHeight  = 56
	cardPitch   = 88 // the distance between the tops of two cards on the spine
	jumpWidth   = 184
	columnWidth = 120
	chipWidth   = 104
	chipHeight  = 22
	endHeight   = 120
	jumps       = margin + cardWidth + margin // x of the chips that lead back to the spine
)

//go:embed drawing.svg
var drawingText string

var drawingTemplate = template.Must(template.New("drawing").Parse(drawingText))

// drawing is the template's input.
type drawing struct {
	Name, Subtitle string
	Width, Height  int
	Styled         bool
	Wires          []wire
	Cards          []card
	Strange        []label

	spec    *Spec
	way     way
	boxes   map[State]box
	classes map[State]string // the colour of a terminal state
}

type box struct{ X, Y, W, H int }

type label struct {
	Class string
	X, Y  int
	Text  string
}

// wire is a row of the table: an arrow between neighbours on the spine, or a chip with a line to
// its target.
type wire struct {
	Class, Tip string
	Line, Head string // paths
	Thick      string
	Chip       *box
	Label      label
}

// card is a state.
type card struct {
	Class, Tip string
	Box        box
	Texts      []label
}

// SVG draws the machine: the states on a spine from top to bottom in the order of the table, and
// their other exits as chips, each in the column of the terminal state that it leads to. Pointing
// at a state or an exit shows its sentences. With marks, the steps taken are bold and numbered, and
// the rest is faded. The drawing follows the viewer's light or dark scheme.
func SVG(s *Spec, m Marks) []byte { return drawWay(s, m, true) }

// SVGInPage is [SVG] for a page that has [SVGStyle].
func SVGInPage(s *Spec, m Marks) []byte { return drawWay(s, m, false) }

func drawWay(s *Spec, m Marks, styled bool) []byte {
	subtitle := fmt.Sprintf("%d states, %d transitions", len(s.Places), len(s.Rows))
	if len(m) > 0 {
		subtitle = fmt.Sprintf("one run: %d steps from %s to %s", len(m), m[0].From, m[len(m)-1].To)
	}
	return drawSpec(&drawing{Subtitle: subtitle, Styled: styled, spec: s, way: s.trackWay(m)})
}

// SVGStyle is the style sheet of all drawings. [SVG] contains it.
func SVGStyle() string { return string(renderTemplate("style", nil)) }

func renderTemplate(name string, data any) []byte {
	var b bytes.Buffer
	if err := drawingTemplate.ExecuteTemplate(&b, name, data); err != nil {
		panic("fsm: numbers and strings could not be drawn: " + err.Error())
	}
	return b.Bytes()
}

func drawSpec(d *drawing) []byte {
	d.Name, d.Subtitle = legibleText(d.spec.Name), legibleText(d.Subtitle)
	d.layOut()
	for i, r := range d.spec.Rows {
		source, known := d.boxes[r.From]
		target, alsoKnown := d.boxes[r.To]
		if known && alsoKnown {
			d.Wires = append(d.Wires, d.newWire(i, source, target))
		}
	}
	slices.SortStableFunc(d.Wires, func(a, b wire) int { return layerOf(a.Class) - layerOf(b.Class) })
	for _, mark := range d.way.strange {
		text := legibleText(mark.String()) + " is not in the table"
		d.Strange = append(d.Strange, label{Class: "count", X: margin, Y: d.Height, Text: text})
		d.Height += 18
	}
	return renderTemplate("drawing", d)
}

// layerOf returns the order of a class in the drawing: the steps of a run are drawn over the rest.
func layerOf(class string) int { return slices.Index([]string{"faded", "taken"}, class) }

// layOut lays out the cards: those of terminal states in a row below the spine.
func (d *drawing) layOut() {
	d.boxes, d.classes = map[State]box{}, map[State]string{}
	spine, ends := 0, 0
	for _, p := range d.spec.Places {
		if !p.Terminal {
			spine++
		}
	}
	bottom, n := top+spine*cardPitch, 0
	for _, p := range d.spec.Places {
		if p.Terminal {
			d.boxes[p.State] = box{jumps + jumpWidth + ends*columnWidth, bottom, chipWidth, endHeight}
			d.classes[p.State] = fmt.Sprintf("end%d", ends%4)
			ends++
		} else {
			d.boxes[p.State] = box{margin, top + n*cardPitch, cardWidth, cardHeight}
			n++
		}
		d.Cards = append(d.Cards, d.newCard(p))
	}
	d.Width, d.Height = jumps+jumpWidth+ends*columnWidth+margin, bottom+endHeight+margin
}

func (d *drawing) newCard(p Place) card {
	b := d.boxes[p.State]
	c := card{Box: b, Tip: legibleText(string(p.State) + ": " + p.Established)}
	c.Class = d.way.classOf(d.way.visited[p.State], d.classes[p.State])
	lines, y := wrapText(p.Established, (b.W-10)/6, b.H/14-1), b.Y+20
	add := func(class, text string) {
		c.Texts = append(c.Texts, label{Class: class, X: b.X + 10, Y: y, Text: text})
		y += 14
	}
	add("name", shorten(legibleText(string(p.State)), b.W/9))
	for _, line := range lines {
		add("", line)
	}
	return c
}

// newWire draws a row.
func (d *drawing) newWire(row int, from, to box) wire {
	r := d.spec.Rows[row]
	text := d.way.rowLabel(r.On, row)
	tip := legibleText(r.String()) + "\n" + legibleText(r.Why) + "\n" + legibleText("if "+r.Guard+": "+r.GuardWhy)
	w := wire{Tip: tip, Thick: "1.4"}
	if d.way.isTaken(row) {
		w.Thick = "2.6"
	}

	w.Class = d.way.classOf(d.way.isTaken(row), d.classes[r.To])
	// The next state on the spine is reached by a straight arrow.
	if to.X == from.X && to.Y == from.Y+cardPitch {
		x := from.X + 36
		w.Line = fmt.Sprintf("M%d %dV%d", x, from.Y+from.H, to.Y-8)
		w.Head = fmt.Sprintf("M%d %dl-4 -9h8z", x, to.Y)
		w.Label = label{Class: "label", X: x + 12, Y: to.Y - 12, Text: shorten(text, 40)}
		return w
	}

	// Every other exit is a chip beside its state, in the column of its target.
	chip := box{jumps, from.Y + (cardHeight-chipHeight)/2, jumpWidth - margin/2, chipHeight}
	if to.X > jumps {
		chip.X, chip.W = to.X, chipWidth
	} else {
		text += " → " + legibleText(string(r.To))
	}

	middle, y := chip.X+chip.W/2, chip.Y+chipHeight/2
	w.Chip, w.Label = &chip, label{
		Class: "label middle",
		X:     middle,
		Y:     y + 4,
		Text:  shorten(text, chip.W/7),
	}

	w.Line = fmt.Sprintf("M%d %dH%dM%d %dV", from.X+from.W, y, chip.X, middle, chip.Y+chipHeight)
	if to.X > jumps {
		w.Line += fmt.Sprint(to.Y - 8)
		w.Head = fmt.Sprintf("M%d %dl-4 -9h8z", middle, to.Y)
	} else {
		entryY := to.Y + 12
		w.Line += fmt.Sprintf("%dH%d", entryY, to.X+to.W+8)
		w.Head = fmt.Sprintf("M%d %dl9 -4v8z", to.X+to.W, entryY)
	}

	return w
}
