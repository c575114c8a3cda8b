package api

import (
	"cmp"
	"fmt"
	"time"

	"pgfsm/internal/present"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// A nowView is the page of current activity.
type nowView struct {
	present.Summary
	Health  present.Health
	Periods []period
	Error   string
	Chart   chart
	More    int // number of omitted codes
}

// A period is a link that selects a period.
type period struct {
	Name, Since string
	Chosen      bool
}

// periods lists the links.
var periods = []period{{Name: "last hour", Since: "1h"}, {Name: "last day", Since: present.DefaultPeriod},
	{Name: "last week", Since: "168h"}}

// Sizes of the picture, which the page scales.
const (
	chartWidth  = 600
	chartHeight = 200
	maxColumns  = 200
	maxRefusals = 10
)

// A chart shows how many runs were requested in each unit of time: executed and open ones above the
// line, refused and failed ones below it.
type chart struct {
	Zero    int // y of the line
	Columns []column
	Ticks   []tick
	Labels  []string // times below the picture
}

// A tick is a line of the grid with its number of runs.
type tick struct{ Y, Runs int }

// A column is one unit of time. Heights are in the units of the picture.
type column struct {
	At                  string
	Executed, Not, Open int // Not: refused or failed
	X, Width            int
	UpY, Up, Down       int
	OpenY, OpenHeight   int
}

// readSummary reads what happened in a period.
func (h *Handler) readSummary(v *visit) (out present.Summary, err error) {
	begin, err := ledger.ParsePast(cmp.Or(v.query["since"], present.DefaultPeriod), h.Ledger.Now())
	if err != nil {
		return out, newProblem(QueryInvalid, "since "+err.Error())
	}
	return readList(h, v, func(r ledger.Reader) (present.Summary, error) {
		a, err := ledger.ReadActivity(r, begin, v.now)
		return present.NewSummary(&a), err
	})
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
		Health:  h.health(v.r.Context()),
		Error:   text,
	}
	for _, p := range periods {
		p.Chosen = p.Since == chosen
		body.Periods = append(body.Periods, p)
	}
	body.countColumns()
	body.Chart.draw()
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
		Tab:    "now",
		Events: "of=held",
		CLI:    present.CommandLine(words...),
		Body:   &body,
	}), nil
}

// UnitText describes the unit of time of a column.
func (n *nowView) UnitText() string { return present.Duration(n.Unit) }

// Refused returns the number of runs that were refused or failed, and how.
func (n *nowView) Refused() (out struct {
	Runs int
	How  string
}) {
	for _, c := range n.Statuses {
		if present.Refused(c.Status) {
			if out.Runs > 0 {
				out.How += ", "
			}
			out.Runs += c.Runs
			out.How += fmt.Sprint(c.Runs, " ", c.Status)
		}
	}
	return out
}

// Executed returns the number of runs whose call was made, or whose client says so.
func (n *nowView) Executed() (runs int) {
	for _, c := range n.Statuses {
		if c.Status == ledger.Executed || c.Status == ledger.Reported {
			runs += c.Runs
		}
	}
	return runs
}

// countColumns counts the runs of each unit of time. Units without a run have empty columns.
func (n *nowView) countColumns() {
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

	columnAt := make(map[string]int)
	for t := start; !t.After(last); t = t.Add(unit) {
		text := t.Format(policy.TimeForm)
		columnAt[text] = len(n.Chart.Columns)
		n.Chart.Columns = append(n.Chart.Columns, column{At: text})
	}

	for _, c := range n.Times {
		i, shown := columnAt[c.At]
		if !shown {
			continue
		}
		sums := &n.Chart.Columns[i]
		switch {
		case c.Status == ledger.Executed || c.Status == ledger.Reported:
			sums.Executed += c.Runs
		case present.Refused(c.Status):
			sums.Not += c.Runs
		default:
			sums.Open += c.Runs
		}
	}
	form := "15:04"
	if last.Sub(start) > 48*time.Hour {
		form = "2 Jan"
	}
	for i := range 4 {
		at := start.Add(time.Duration(i*len(n.Chart.Columns)/4) * unit)
		n.Chart.Labels = append(n.Chart.Labels, at.Format(form))
	}
	n.Chart.Labels = append(n.Chart.Labels, "now")
}

// draw computes the sizes of the columns, and the grid.
func (c *chart) draw() {
	if len(c.Columns) == 0 {
		return
	}
	up, down := 1, 0
	for i := range c.Columns {
		up, down = max(up, c.Columns[i].Executed+c.Columns[i].Open), max(down, c.Columns[i].Not)
	}
	step := niceStep(max(up, down))
	up, down = (up+step-1)/step*step, (down+step-1)/step*step
	scale := func(runs int) int {
		if runs == 0 {
			return 0
		}
		return max(1, runs*chartHeight/(up+down))
	}
	c.Zero = up * chartHeight / (up + down)
	for runs := up; runs >= -down; runs -= step {
		c.Ticks = append(c.Ticks, tick{(up - runs) * chartHeight / (up + down), max(runs, -runs)})
	}
	width := chartWidth / len(c.Columns)
	for i := range c.Columns {
		one := &c.Columns[i]
		one.X, one.Width = i*width, max(1, width*3/4)
		one.Up, one.Down, one.OpenHeight = scale(one.Executed), scale(one.Not), scale(one.Open)
		one.UpY = c.Zero - one.Up
		one.OpenY = one.UpY - one.OpenHeight
	}
}

// niceStep returns a step of a grid, 1, 2 or 5 times a power of ten, with at most two steps up to a number
// of runs.
func niceStep(runs int) int {
	for power := 1; ; power *= 10 {
		for _, digit := range []int{1, 2, 5} {
			if 2*digit*power >= runs {
				return digit * power
			}
		}
	}
}
