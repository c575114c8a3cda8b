package fsm

import (
	"cmp"
	"slices"
)

// Measures of the picture, in pixels.
const (
	margin       = 28
	headHeight   = 76  // title and subtitle
	spineWidth   = 300 // cards of the states on the spine
	endWidth     = 196 // cards of terminal states
	cardGap      = 38  // between cards on the spine: room for an arrow and its label
	endGap       = 28  // between cards of terminal states
	portGap      = 19  // between wires on one side of a card: room for a label
	laneGap      = 20  // between vertical wires
	lineHeight   = 15  // of the small print in a card
	captionLines = 3
	columnWidth  = 7 // of one column of a label, 11 pixels high, generously
)

// The two sides of the spine.
const (
	left  = 0
	right = 1
)

// card is a place in the picture.
type card struct {
	place      int
	x, y, w, h int
	lines      []string
}

func (k *card) middle() int { return k.y + k.h/2 }

// wire is a row in the picture. A wire between neighbours on the spine runs straight down; every other one leaves its
// card on a side, takes the lane of its target there and enters the target from the side.
type wire struct {
	row      int
	from, to *card
	side     int
	lane     *lane
	y        int // where it leaves
}

// lane is the vertical wire that all wires to one target share on one side, and where it enters the target.
type lane struct {
	to       *card
	end      bool // the target is terminal
	wires    []*wire
	slot     int // counted from the spine outwards
	entry    int // y
	top, low int // what it spans, roughly
}

// layer keeps lanes along the spine inside those to terminal states.
func (n *lane) layer() int {
	if n.end {
		return 1
	}
	return 0
}

// layout is the whole picture before it is drawn.
type layout struct {
	chart         *chart
	way           way
	runs          []int   // of each row; nil unless runs are drawn
	cards         []*card // by rank
	spine         []*card
	straight      [][]*wire // for each card of the spine but the last, the wires to the next one
	lanes         [2][]*lane
	zone          [2]int // width of the labels on each side
	slots         [2]int
	strange       []string // rows and steps that cannot be drawn
	width, height int
	spineX        int
}

func newLayout(s *Spec, m Marks, runs []int) *layout {
	l := &layout{chart: newChart(s), way: s.way(m), runs: runs}
	for i, p := range s.Places {
		k := &card{place: i, w: spineWidth}
		if p.Terminal {
			k.w = endWidth
		} else {
			l.spine = append(l.spine, k)
		}
		k.lines = wrap(p.Established, (k.w-20)*10/62, captionLines)
		k.h = 34 + lineHeight*len(k.lines)
		l.cards = append(l.cards, k)
	}
	l.straight = make([][]*wire, len(l.spine))
	l.connect()
	l.growAndStack()
	l.placeEnds()
	l.shareSlots()
	l.assignPorts()
	l.placeAcross()
	return l
}

// connect turns rows into wires and gives each lane its side: skips along the spine go right, terminals to the side
// that carries less.
func (l *layout) connect() {
	lanes := make([]*lane, len(l.cards))
	for i, r := range l.chart.spec.Rows {
		from, to := l.chart.place(r.From), l.chart.place(r.To)
		if from == nowhere || to == nowhere || from == to || l.chart.spec.Places[from].Terminal {
			l.strange = append(l.strange, "not drawn: "+r.String())
			continue
		}
		w := &wire{row: i, from: l.cards[from], to: l.cards[to]}
		at := slices.Index(l.spine, w.from)
		if slices.Index(l.spine, w.to) == at+1 {
			l.straight[at] = append(l.straight[at], w)
			continue
		}
		if lanes[to] == nil {
			lanes[to] = &lane{to: w.to, end: l.chart.spec.Places[to].Terminal}
		}
		w.lane = lanes[to]
		lanes[to].wires = append(lanes[to].wires, w)
	}
	for _, m := range l.way.strange {
		l.strange = append(l.strange, "not in the table: "+m.String())
	}
	lanes = slices.DeleteFunc(lanes, func(n *lane) bool { return n == nil })
	// Those with the most wires choose first; they end up outside, where they cross the least.
	slices.SortStableFunc(lanes, func(a, b *lane) int { return cmp.Compare(len(b.wires), len(a.wires)) })
	var load [2]int
	for _, n := range lanes {
		side := right
		if n.end && load[left] < load[right] {
			side = left
		}
		load[side] += len(n.wires)
		for _, w := range n.wires {
			w.side = side
		}
		l.lanes[side] = append([]*lane{n}, l.lanes[side]...)
	}
	for side := range l.lanes {
		slices.SortStableFunc(l.lanes[side], func(a, b *lane) int {
			return cmp.Or(cmp.Compare(a.layer(), b.layer()), cmp.Compare(len(a.wires), len(b.wires)))
		})
	}
}

// growAndStack makes every card of the spine high enough for its wires and puts them one below the other.
func (l *layout) growAndStack() {
	y := headHeight
	for _, k := range l.spine {
		for side := range l.lanes {
			k.h = max(k.h, portGap*(len(l.ports(k, side)))+10)
		}
		k.y = y
		y += k.h + cardGap
	}
	l.height = y - cardGap + margin
}

// placeEnds puts each terminal card beside the middle of where its wires come from, and apart from the one above.
func (l *layout) placeEnds() {
	for side := range l.lanes {
		var ends []*card
		for _, n := range l.lanes[side] {
			if !n.end {
				continue
			}
			sum := 0
			for _, w := range n.wires {
				sum += w.from.middle()
			}
			n.to.y = max(headHeight, sum/len(n.wires)-n.to.h/2)
			ends = append(ends, n.to)
		}
		l.pushApart(ends)
	}
	// A terminal that nothing leads to still shows, top left.
	var alone []*card
	for i, k := range l.cards {
		if l.chart.spec.Places[i].Terminal && k.y == 0 {
			k.y = headHeight
			alone = append(alone, k)
		}
	}
	for _, n := range l.lanes[left] {
		if n.end {
			alone = append(alone, n.to)
		}
	}
	l.pushApart(alone)
}

func (l *layout) pushApart(ends []*card) {
	slices.SortStableFunc(ends, func(a, b *card) int { return cmp.Compare(a.y, b.y) })
	for i, k := range ends {
		if i > 0 {
			k.y = max(k.y, ends[i-1].y+ends[i-1].h+endGap)
		}
		l.height = max(l.height, k.y+k.h+margin)
	}
}
