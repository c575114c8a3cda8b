package api

import (
	"cmp"
	"time"

	"pgfsm/internal/present"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// A nowView is the page of current activity.
type nowView struct {
	present.Summary
	Base    string // prefix of links
	Health  present.Health
	Periods []period
	Error   string
	Bars    []bar
	Columns []column
	More    int  // number of omitted codes
	Audits  bool // this person may see entries
}

// A period is a link that selects a period.
type period struct {
	Name, Since string
	Chosen      bool
}

// periods lists the links.
var periods = []period{{Name: "last hour", Since: "1h"}, {Name: "last day", Since: present.DefaultPeriod},
	{Name: "last week", Since: "168h"}}

// Sizes of the pictures, which the page scales.
const (
	chartWidth  = 600
	chartHeight = 120
	barHeight   = 20
	maxColumns  = 200
	maxRefusals = 10
)

// A bar shows how many runs have a status.
type bar struct {
	present.StatusCount
	Y, Width int
}

// A column shows how many runs were requested in one unit of time.
type column struct {
	At                  string
	Executed, Not, Open int // Not: refused or failed
	Parts               []segment
}

// A segment of a column shows the runs of one kind. Its class sets the colour.
type segment struct {
	Class               string
	X, Y, Width, Height int
}

// readSummary reads what happened in a period.
func (h *Handler) readSummary(v *visit) (out present.Summary, err error) {
	begin, err := ledger.ParsePast(cmp.Or(v.query["since"], present.DefaultPeriod), h.Ledger.Now())
	if err != nil {
		return out, newProblem(QueryInvalid, "since "+err.Error())
	}
	err = h.readInTurn(v, func(r ledger.Reader) error {
		a, err := ledger.ReadActivity(r, begin, v.now)
		out = present.NewSummary(&a)
		return err
	})
	return out, err
}

// showNow shows the current activity.
func (h *Handler) showNow(v *visit) (answer, error) {
	chosen := cmp.Or(v.query["since"], present.DefaultPeriod)
	summary, err := h.readSummary(v)
	text, status, err := pageText(err)
	if err != nil {
		return answer{}, err
	}

	body := nowView{
		Summary: summary,
		Base:    v.base,
		Audits:  v.caller.May(ledger.ActAudit),
		Health:  h.health(v.r.Context()),
		Error:   text,
	}
	for _, p := range periods {
		p.Chosen = p.Since == chosen
		body.Periods = append(body.Periods, p)
	}
	body.drawPictures()
	if n := len(body.Refusals); n > maxRefusals {
		body.More, body.Refusals = n-maxRefusals, body.Refusals[:maxRefusals]
	}

	words := []string{"pgfsm", "ledger", "summary"}
	if text == "" {
		words = append(words, "--since", chosen)
	}
	return h.page(v, "now", view{
		Status: status,
		Title:  "Now",
		Events: "of=held",
		CLI:    present.CommandLine(words...),
		Body:   &body,
	}), nil
}

// BarsHeight returns the height of the picture of the statuses.
func (n *nowView) BarsHeight() int { return len(n.Bars) * barHeight }

// UnitText describes the unit of time of a column.
func (n *nowView) UnitText() string { return present.Duration(n.Unit) }

// drawPictures computes the pictures.
func (n *nowView) drawPictures() {
	largest := 1
	for _, c := range n.Statuses {
		largest = max(largest, c.Runs)
	}
	for i, c := range n.Statuses {
		n.Bars = append(n.Bars, bar{c, i * barHeight, max(1, c.Runs*chartWidth/largest)})
	}
	n.drawColumns()
}

// drawColumns computes the picture of the times. Units without a run have empty columns.
func (n *nowView) drawColumns() {
	if len(n.Times) == 0 {
		return
	}

	unit := time.Duration(n.Unit) * time.Second
	begin, end := n.Since, n.Times[len(n.Times)-1].At
	if n.Partial {
		begin = n.First
	}

	start, err := time.Parse(policy.TimeForm, begin)
	last, lastErr := time.Parse(policy.TimeForm, max(end, n.Until))
	if err != nil || lastErr != nil {
		return // without a picture, the table shows the same
	}

	start = start.Truncate(unit)
	if last.Sub(start) > maxColumns*unit {
		start = last.Add(-maxColumns * unit).Truncate(unit)
	}

	// Each unit of time has a column, also without a run.
	columnAt := make(map[string]int)
	for t := start; !t.After(last); t = t.Add(unit) {
		text := t.Format(policy.TimeForm)
		columnAt[text] = len(n.Columns)
		n.Columns = append(n.Columns, column{At: text})
	}

	largest := 1
	for _, c := range n.Times {
		i, shown := columnAt[c.At]
		if !shown {
			continue
		}
		sums := &n.Columns[i]
		switch {
		case c.Status == ledger.Executed:
			sums.Executed += c.Runs
		case present.Refused(c.Status):
			sums.Not += c.Runs
		default:
			sums.Open += c.Runs
		}
		largest = max(largest, sums.Executed+sums.Not+sums.Open)
	}

	// The parts of a column are stacked from the bottom, to the scale of the largest column.
	step := chartWidth / len(n.Columns)
	for i := range n.Columns {
		c, y := &n.Columns[i], chartHeight
		for _, p := range []struct {
			class string
			runs  int
		}{{"executed", c.Executed}, {"denied", c.Not}, {"pending", c.Open}} {
			if p.runs == 0 {
				continue
			}
			height := max(1, p.runs*chartHeight/largest)
			y -= height
			c.Parts = append(c.Parts, segment{p.class, i * step, y, max(1, step-1), height})
		}
	}
}
