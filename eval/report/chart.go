package report

import (
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
)

// The tones of a chart.
const (
	toneOurs  = "ours"
	toneNaive = "naive"
)

// A chart is a drawing of bars. The template escapes its texts.
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
	Tip                 string // the tooltip
	Whisker             []line
}

// A label is a text of a chart.
type label struct {
	X, Y   string
	Anchor string // start, middle or end
	Class  string
	Text   string
}

// px writes a length with at most one decimal place.
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

// newShares draws shares from 0 to 100 %, one below the other, each with its interval.
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
