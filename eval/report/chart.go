package report

import (
	"fmt"
	"strconv"
	"strings"

	"pgfsm/eval"
)

// Measures of charts, in units of the drawing. A chart is as wide as a phone, so that its text is never scaled down.
const (
	chartWidth = 320
	plotLeft   = 4
	plotWidth  = chartWidth - 2*plotLeft

	shareTop   = 4
	sharePitch = 38 // from one bar to the next: a line of text and the bar below it
	shareText  = 12 // the base line of the text
	shareTip   = 18 // where the bar begins
	shareThick = 12
	shareFoot  = 20 // the axis

	countTop   = 4
	countPitch = 20
	countText  = 13 // the base line of the texts
	countTip   = 3  // where the bar begins
	countThick = 13
	countLabel = 78 // where labels end
	countLeft  = 86 // where bars begin
	countWidth = 180
)

// The tones of a chart: the one who is measured, and the one it is measured against.
const (
	toneOurs  = "ours"
	toneNaive = "naive"
)

// A chart is a drawing of bars. All of its geometry is numbers of ours; its texts are escaped where they are written.
type chart struct {
	Title, Desc   string
	Width, Height int
	Lines         []line // behind the bars
	Bars          []bar
	Texts         []label
}

// A line of the grid or of a whisker.
type line struct {
	X1, Y1, X2, Y2 string
	Class          string
}

// A bar, and the whisker over it where it is an estimate.
type bar struct {
	X, Y, Width, Height string
	Tone                string
	Tip                 string // shown to who points at it
	Whisker             []line
}

// A label is a text of a chart.
type label struct {
	X, Y   string
	Anchor string // start, middle or end
	Class  string
	Text   string
}

// px writes a length with one place, so that the same figures are the same bytes.
func px(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	return strings.TrimSuffix(s, ".0")
}

// A shareBar is a share with its name.
type shareBar struct {
	Name  string
	Tone  string
	Share eval.Share
}

// newShares draws shares, one below the other, from 0 to 100 %, each with its interval.
func newShares(title string, shares []shareBar) chart {
	c := chart{Title: title, Width: chartWidth, Height: shareTop + len(shares)*sharePitch + shareFoot}
	foot := c.Height - shareFoot
	for _, part := range []int{0, 25, 50, 75, 100} {
		x := px(plotLeft + plotWidth*float64(part)/100)
		c.Lines = append(c.Lines, line{x, px(shareTop), x, px(float64(foot)), "grid"})
		anchor := "middle"
		switch part {
		case 0:
			anchor = "start"
		case 100:
			anchor = "end"
		case 25, 75:
			continue
		}
		c.Texts = append(c.Texts, label{x, px(float64(foot + 14)), anchor, "axis", strconv.Itoa(part) + " %"})
	}
	var desc []string
	for i, s := range shares {
		y := shareTop + i*sharePitch
		says := share(s.Share)
		c.Texts = append(c.Texts,
			label{px(plotLeft), px(float64(y + shareText)), "start", "name", s.Name},
			label{px(plotLeft + plotWidth), px(float64(y + shareText)), "end", "value", says.Text})
		tip := s.Name + ": " + says.Text
		if s.Share.N > 0 {
			tip += ", 95 % interval " + says.Note
			c.Bars = append(c.Bars, newShare(s, y+shareTip, tip))
		}
		desc = append(desc, tip)
	}
	c.Desc = strings.Join(desc, ". ") + "."
	return c
}

func newShare(s shareBar, y int, tip string) bar {
	at := func(rate float64) string { return px(plotLeft + plotWidth*rate) }
	top, middle, low := px(float64(y+2)), px(float64(y)+shareThick/2), px(float64(y+shareThick-2))
	return bar{
		X: px(plotLeft), Y: px(float64(y)), Width: px(max(1, plotWidth*s.Share.Rate)), Height: px(shareThick), Tone: s.Tone, Tip: tip,
		Whisker: []line{
			{at(s.Share.Low), middle, at(s.Share.High), middle, "whisker"},
			{at(s.Share.Low), top, at(s.Share.Low), low, "whisker"},
			{at(s.Share.High), top, at(s.Share.High), low, "whisker"},
		},
	}
}

// A countBar is how many there are of something.
type countBar struct {
	Name  string
	Count int
}

// newCounts draws counts, one below the other. The longest bar stands for most, which several charts can share.
func newCounts(title, tone string, most int, counts []countBar) chart {
	c := chart{Title: title, Width: chartWidth, Height: 2*countTop + len(counts)*countPitch}
	c.Lines = append(c.Lines, line{px(countLeft), px(countTop), px(countLeft), px(float64(c.Height - countTop)), "grid"})
	var desc []string
	for i, n := range counts {
		y := countTop + i*countPitch
		width := countWidth * float64(n.Count) / float64(max(1, most))
		tip := fmt.Sprintf("%s: %d", n.Name, n.Count)
		if n.Count > 0 {
			width = max(1, width)
			c.Bars = append(c.Bars, bar{
				X: px(countLeft), Y: px(float64(y + countTip)), Width: px(width), Height: px(countThick), Tone: tone, Tip: tip,
			})
			desc = append(desc, tip)
		}
		c.Texts = append(c.Texts,
			label{px(countLabel), px(float64(y + countText)), "end", "axis", n.Name},
			label{px(countLeft + width + 5), px(float64(y + countText)), "start", "value", strconv.Itoa(n.Count)})
	}
	c.Desc = strings.Join(desc, ". ") + "."
	return c
}
