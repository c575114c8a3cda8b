package fsm

import (
	"cmp"
	"slices"
	"strconv"
)

// port is where a wire leaves or a lane enters one side of a card; of wire and lane one is set.
type port struct {
	wire *wire
	lane *lane
}

// via is the lane on the other side of the port.
func (p port) via() *lane {
	if p.wire != nil {
		return p.wire.lane
	}
	return p.lane
}

// ports lists what touches one side of a card on the spine.
func (l *layout) ports(k *card, side int) []port {
	var all []port
	for _, n := range l.lanes[side] {
		for _, w := range n.wires {
			if w.from == k {
				all = append(all, port{wire: w})
			}
		}
		if n.to == k {
			all = append(all, port{lane: n})
		}
	}
	return all
}

// shareSlots gives each lane the innermost slot where it meets no other.
func (l *layout) shareSlots() {
	for side, lanes := range l.lanes {
		for i, n := range lanes {
			n.top, n.low = n.to.y, n.to.y+n.to.h
			for _, w := range n.wires {
				n.top, n.low = min(n.top, w.from.y), max(n.low, w.from.y+w.from.h)
			}
			taken := func(o *lane) bool { return o.slot == n.slot && o.top <= n.low && n.top <= o.low }
			for slices.ContainsFunc(lanes[:i], taken) {
				n.slot++
			}
			l.slots[side] = max(l.slots[side], n.slot+1)
		}
	}
}

// assignPorts spreads the wires over the sides of each card in the order in which they do not cross one another: those
// that go up above those that go down, and of those that go the same way the one that turns first outermost.
func (l *layout) assignPorts() {
	for _, k := range l.spine {
		for side := range l.lanes {
			ports := l.ports(k, side)
			slices.SortStableFunc(ports, func(a, b port) int { return cmp.Compare(portOrder(k, a), portOrder(k, b)) })
			for i, p := range ports {
				y := k.middle() + (2*i-len(ports)+1)*portGap/2 + 3
				if p.wire != nil {
					p.wire.y = y
				} else {
					p.lane.entry = y
				}
			}
		}
	}
	for side := range l.lanes {
		for _, n := range l.lanes[side] {
			if n.end {
				n.entry = l.straightEntry(n)
			}
		}
	}
}

// portOrder is negative for what goes up (inner slots uppermost) and positive for what goes down (inner slots lowest).
func portOrder(k *card, p port) int {
	n, far := p.via(), 1<<16
	aim := n.to.middle()
	if p.lane != nil {
		aim = n.top
	}
	if aim < k.middle() {
		return n.slot - far
	}
	return far - n.slot
}

// straightEntry is the height at which a wire can run straight into a terminal card, or the card's middle.
func (l *layout) straightEntry(n *lane) int {
	best := n.to.middle()
	for i, w := range n.wires {
		off := w.y - n.to.middle()
		if max(off, -off) < n.to.h/2-10 && (i == 0 || best == n.to.middle()) {
			best = w.y
		}
	}
	return best
}

// placeAcross finds every x, from the labels that have to fit, and the width.
func (l *layout) placeAcross() {
	outside := [2]int{}
	for side, lanes := range l.lanes {
		for _, n := range lanes {
			for _, w := range n.wires {
				l.zone[side] = max(l.zone[side], columns(l.label(w))*columnWidth+22)
			}
			if n.end {
				outside[side] = endWidth + 30
			}
		}
		if l.slots[side] > 0 {
			outside[side] += l.zone[side] + l.slots[side]*laneGap
		}
	}
	if slices.ContainsFunc(l.cards, func(k *card) bool { return k.w == endWidth && !l.wired(k) }) {
		outside[left] = max(outside[left], endWidth+30)
	}
	l.spineX = margin + outside[left]
	l.width = l.spineX + spineWidth + outside[right] + margin
	for _, k := range l.spine {
		k.x = l.spineX
	}
	for i, k := range l.cards {
		if l.chart.spec.Places[i].Terminal {
			k.x = margin
		}
	}
	for _, n := range l.lanes[right] {
		if n.end {
			n.to.x = l.width - margin - endWidth
		}
	}
}

// wired reports whether any lane leads to a card.
func (l *layout) wired(k *card) bool {
	for _, lanes := range l.lanes {
		if slices.ContainsFunc(lanes, func(n *lane) bool { return n.to == k }) {
			return true
		}
	}
	return false
}

// label is what is written at a wire.
func (l *layout) label(w *wire) string {
	label := stepped(l.chart.spec.Rows[w.row].On, l.way.steps[w.row])
	if n := l.runsOf(w); n > 0 {
		label += " " + strconv.Itoa(n)
	}
	return label
}

// laneX is where a lane runs.
func (l *layout) laneX(side, slot int) int {
	if side == left {
		return l.spineX - l.zone[left] - slot*laneGap
	}
	return l.spineX + spineWidth + l.zone[right] + slot*laneGap
}
