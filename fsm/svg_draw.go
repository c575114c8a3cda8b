package fsm

import (
	"fmt"
	"strconv"
	"strings"
)

// Shapes of wires and cards, in pixels.
const (
	bend      = 8 // radius of a corner
	headWide  = 4 // half the width of an arrow head
	headLong  = 9
	thinWire  = "1.4"
	boldWire  = "3"
	labelLift = 5 // of a label above its wire
)

// look chooses the tones of a wire and its label, and its width.
func (d *drawing) look(taken bool, own string, runs int) (wire, label, width string) {
	switch {
	case !d.marked:
		return own, "name", thinWire
	case taken && d.runs != nil:
		return "way", "way", d.runWidth(runs)
	case taken:
		return "way", "way", boldWire
	}
	return "fade", "dim", thinWire
}

func (d *drawing) taken(w *wire) bool { return len(d.way.steps[w.row]) > 0 || d.runsOf(w) > 0 }

// tip is the tooltip of a wire.
func (d *drawing) tip(w *wire) string {
	r := d.chart.spec.Rows[w.row]
	tip := escapeXML(r.String()) + "\n" + escapeXML(r.Why) + "\n" + escapeXML("if "+r.Guard+": "+r.GuardWhy)
	if d.runs != nil {
		tip += fmt.Sprintf("\ntaken by %d", d.runsOf(w))
	}
	return tip
}

// straightWires draws the wires between two neighbours on the spine as one arrow.
func (d *drawing) straightWires(wires []*wire, taken bool) {
	var labels, tips []string
	any, runs := false, 0
	for _, w := range wires {
		labels = append(labels, d.layout.label(w))
		tips = append(tips, d.tip(w))
		any, runs = any || d.taken(w), runs+d.runsOf(w)
	}
	if len(wires) == 0 || any != taken {
		return
	}
	from, to := wires[0].from, wires[0].to
	x := from.x + from.w/2
	line, label, width := d.look(any, "wire", runs)
	fmt.Fprintf(d, "<g><title>%s</title>\n", strings.Join(tips, "\n"))
	d.path(fmt.Sprintf("M%d %dV%d", x, from.y+from.h, to.y-headLong), line, width)
	d.head(x, to.y, 0, 1, line)
	d.label(x+10, (from.y+from.h+to.y)/2+2, label, "start", strings.Join(labels, " / "))
	d.WriteString("</g>\n")
}

// laneWires draws those wires of a lane that were taken, or those that were not.
func (d *drawing) laneWires(side int, n *lane, taken bool) {
	own := "wire"
	if n.end {
		own = d.endTone(n.to.place)
	}
	for _, w := range n.wires {
		if d.taken(w) != taken {
			continue
		}
		line, label, width := d.look(taken, own, d.runsOf(w))
		out := 1 // towards the lane
		start, anchor := w.from.x+w.from.w, "start"
		if side == left {
			out, start, anchor = -1, w.from.x, "end"
		}
		fmt.Fprintf(d, "<g><title>%s</title>\n", d.tip(w))
		d.path(d.route(w, n, start, out), line, width)
		enter, direction := n.to.x, out
		if (side == left) == n.end {
			enter += n.to.w
		}
		if !n.end {
			direction = -out
		}
		d.head(enter, n.entry, direction, 0, line)
		d.label(start+out*8, w.y-labelLift, label, anchor, d.layout.label(w))
		d.WriteString("</g>\n")
	}
}

// route leaves the card, takes the lane up or down, and enters the target; without a lane where it can run straight.
func (d *drawing) route(w *wire, n *lane, start, out int) string {
	x := d.laneX(w.side, n.slot)
	end, onward := n.to.x, out
	if out < 0 {
		end += n.to.w
	}
	if !n.end {
		onward = -out
		end = start
	}
	end -= onward * headLong
	rise := n.entry - w.y
	if rise == 0 {
		return fmt.Sprintf("M%d %dH%d", start, w.y, end)
	}
	down, r := 1, min(bend, max(rise, -rise)/2)
	if rise < 0 {
		down = -1
	}
	return fmt.Sprintf("M%d %dH%dQ%d %d %d %dV%dQ%d %d %d %dH%d", start, w.y, x-out*r, x, w.y, x, w.y+down*r,
		n.entry-down*r, x, n.entry, x+onward*r, n.entry, end)
}

func (d *drawing) path(path, stroke, width string) {
	fmt.Fprintf(d, `<path d="%s" %s stroke-width="%s"/>`+"\n", path, paint("none", stroke), width)
}

// head draws an arrow head with its tip at x, y; dx and dy say where it points.
func (d *drawing) head(x, y, dx, dy int, fill string) {
	bx, by := x-dx*headLong, y-dy*headLong
	fmt.Fprintf(d, `<path d="M%d %dL%d %dL%d %dZ" %s/>`+"\n", x, y, bx+dy*headWide, by+dx*headWide,
		bx-dy*headWide, by-dx*headWide, paint(fill, "none"))
}

func (d *drawing) endTone(place int) string {
	n := 0
	for _, p := range d.chart.spec.Places[:place] {
		if p.Terminal {
			n++
		}
	}
	return "end" + strconv.Itoa(n%endTones)
}

// card draws a place with its name and what it establishes.
func (d *drawing) card(k *card) {
	p := d.chart.spec.Places[k.place]
	rim, name, note, width, radius := "rim", "name", "note", "1.4", 8
	if p.Terminal {
		rim, radius = d.endTone(k.place), min(k.h/2, 20)
	}
	if k.place == 0 {
		width = "2.4"
	}
	switch {
	case d.marked && (d.way.visited[p.State] || d.reached(p.State)):
		rim, width = "way", "2.6"
	case d.marked:
		rim, name, note = "fade", "dim", "dim"
	}
	id := fmt.Sprintf(` id="%s"`, escapeXML(string(p.State)))
	if d.runs != nil { // a page may have several drawings
		id = ""
	}
	fmt.Fprintf(d, "<g%s><title>%s</title>\n", id, escapeXML(string(p.State)+": "+p.Established))
	if n := d.arrivals(p.State); p.Terminal && n > 0 {
		d.text(k.x+k.w/2, k.y-8, "name", `text-anchor="middle" font-size="13" font-weight="700" font-family="`+textFace+`"`, fmt.Sprintf("%d ended here", n))
	}
	fmt.Fprintf(d, `<rect x="%d" y="%d" width="%d" height="%d" rx="%d" %s stroke-width="%s"/>`+"\n",
		k.x, k.y, k.w, k.h, radius, paint("card", rim), width)
	x, y := k.x+k.w/2, k.y+(k.h-16-lineHeight*len(k.lines))/2+13
	d.text(x, y, name, `text-anchor="middle" font-size="14" font-weight="700" font-family="`+codeFace+`"`,
		shorten(legible(string(p.State)), (k.w-20)/9))
	for i, line := range k.lines {
		d.text(x, y+lineHeight*(i+1)+1, note, `text-anchor="middle" font-size="11" font-family="`+textFace+`"`, line)
	}
	d.WriteString("</g>\n")
}
