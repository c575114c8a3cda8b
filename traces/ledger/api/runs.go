package api

import (
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"pgfsm/internal/present"
	"pgfsm/traces/ledger"
)

// Bounds of one page of a list.
const (
	MaxPage  = 200 // about 200 kB, which a person can still page through
	pageSize = 50  // unless the query has a limit
)

// A runPage is part of a list of runs.
type runPage struct {
	SchemaVersion int           `json:"schema_version"`
	Requests      []present.Run `json:"requests"`
	// Id of the run at which the next page begins; empty on the last.
	Next string `json:"next"`
}

// pageLimit returns the maximum number of rows of a page.
func (v *visit) pageLimit() (int, error) {
	text, given := v.query["limit"]
	if !given {
		return pageSize, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxPage || strconv.Itoa(n) != text {
		return 0, newProblem(QueryInvalid, fmt.Sprintf("limit must be a number from 1 to %d", MaxPage))
	}
	return n, nil
}

// pageText returns the problem of an invalid query as a text for the page with the query's form, and
// the status of that page. Any other error is returned.
func pageText(err error) (text string, status int, other error) {
	var p *problem
	if errors.As(err, &p) && p.Code == QueryInvalid {
		return p.Detail, p.Status, nil
	}
	return "", http.StatusOK, err
}

// readPending reads one page of the held calls.
func (h *Handler) readPending(v *visit) (runPage, error) {
	return h.readRunPage(v, ledger.Filter{Statuses: []ledger.Status{ledger.Pending}})
}

// readRequests reads one page of the runs that the query chooses.
func (h *Handler) readRequests(v *visit) (runPage, error) {
	f := ledger.Filter{
		Who:     v.query["actor"],
		Task:    v.query["task"],
		Session: v.query["session"],
		Server:  v.query["server"],
		Tool:    v.query["tool"],
		Policy:  v.query["policy"],
		Code:    v.query["code"],
		Text:    v.query["text"],
	}
	var statuses []string
	if names := v.query["status"]; names != "" {
		statuses = strings.Split(names, ",")
	}
	if err := f.Choose(statuses, v.query["since"], v.query["until"], h.Ledger.Now()); err != nil {
		return runPage{}, newProblem(QueryInvalid, err.Error())
	}
	return h.readRunPage(v, f)
}

// choosePage reads which page of runs the query chooses, and returns its maximum number of rows.
func (v *visit) choosePage(f *ledger.Filter) (limit int, err error) {
	if limit, err = v.pageLimit(); err != nil {
		return 0, err
	}
	parameter, from := "after", &f.After
	if v.console {
		parameter, from, f.Newest = "before", &f.Before, true
	}
	if *from = v.query[parameter]; *from != "" && !isRunID(*from) {
		return 0, newProblem(QueryInvalid, parameter+" must be the id of a run, as next says it")
	}
	return limit, nil
}

// readRunPage reads one page of the runs that a filter chooses: the oldest first in the API, the
// newest first in the console.
func (h *Handler) readRunPage(v *visit, f ledger.Filter) (runPage, error) {
	out := runPage{SchemaVersion: present.SchemaVersion}
	limit, err := v.choosePage(&f)
	if err != nil {
		return out, err
	}
	err = h.readInTurn(v, func(r ledger.Reader) (err error) {
		out.Requests, out.Next, err = present.ReadRuns(r, f, limit)
		return err
	})
	return out, err
}

type runsView struct {
	Runs     []present.Run
	Modes    []string // risk modes of the active bundle
	Statuses []statusLink
	Applied  []appliedFilter
	Fields   []field // the common ones
	Others   []field
	Status   string // the chosen status
	Error    string
	Note     string       // about the actors in the list
	Older    template.URL // query of the next page; empty on the last
}

// A statusLink selects the runs of a status.
type statusLink struct {
	Status ledger.Status // empty: any
	Link   template.URL
	Chosen bool
	Runs   string // their number; empty if it is not known
}

// An appliedFilter is a filter in force.
type appliedFilter struct {
	Label, Value string
	Without      template.URL // query of the list without it
}

// A field of a form that chooses rows of a list.
type field struct{ Name, Label, Value, Hint string }

// hintOfTime is the hint in an empty field for a time.
const hintOfTime = "24h, 2027-01-31"

// runFields lists the filters of pgfsm ledger list, except the status. The common ones come first.
var runFields = []field{
	{Name: "actor", Label: "Actor"}, {Name: "server", Label: "Server"}, {Name: "tool", Label: "Tool"},
	{Name: "code", Label: "Code"}, {Name: "since", Label: "Since", Hint: hintOfTime},
	{Name: "text", Label: "Text in the arguments"},
	{Name: "task", Label: "Task"}, {Name: "session", Label: "Session"}, {Name: "policy", Label: "Policy"}, {Name: "until", Label: "Until", Hint: hintOfTime},
}

// commonFields is the number of common filters.
const commonFields = 6

// A chosen filter of a list: the fields with their values, the flags of the command that lists the
// same, and the query of links to other pages of the list.
type chosenFilter struct {
	fields []field
	flags  []string
	query  url.Values
}

// chosenFilter reads the filter of a form: the parameter of its select element and the fields.
func (v *visit) chosenFilter(selected string, fields []field) (c chosenFilter) {
	c.query = make(url.Values)
	for _, f := range append([]field{{Name: selected}}, fields...) {
		f.Value = v.query[f.Name]
		if f.Name != selected {
			c.fields = append(c.fields, f)
		}
		if f.Value != "" {
			c.flags = append(c.flags, "--"+f.Name, f.Value)
			c.query.Set(f.Name, f.Value)
		}
	}
	return c
}

// link returns the query of the page of the list that begins before a row; the first one if there
// is no row.
func (c *chosenFilter) link(before string) template.URL { return c.linkWith("before", before) }

// linkWith returns the query of the first page of the list with another value of a parameter; without the
// parameter if the value is empty.
func (c *chosenFilter) linkWith(name, value string) template.URL {
	query := maps.Clone(c.query)
	if query.Set(name, value); value == "" {
		query.Del(name)
	}
	return template.URL("?" + query.Encode()) // Encode escapes
}

// applied lists the fields that have a value.
func (c *chosenFilter) applied() (all []appliedFilter) {
	for _, f := range c.fields {
		if f.Value != "" {
			all = append(all, appliedFilter{strings.ToLower(f.Label[:1]) + f.Label[1:], f.Value, c.linkWith(f.Name, "")})
		}
	}
	return all
}

// showRuns lists the runs that a filter chooses.
func (h *Handler) showRuns(v *visit) (answer, error) {
	chosen := v.chosenFilter("status", runFields)
	body := runsView{
		Status:  v.query["status"],
		Fields:  chosen.fields[:commonFields],
		Others:  chosen.fields[commonFields:],
		Applied: chosen.applied(),
	}

	found, err := h.readRequests(v)
	text, status, err := pageText(err)
	if err != nil {
		return answer{}, err
	}
	body.Error, body.Runs = text, found.Requests
	body.Note = present.SameDisplay(v.query["actor"], found.Requests)
	if found.Next != "" {
		body.Older = chosen.link(found.Next)
	}
	if body.Modes, err = h.riskModes(v); err != nil {
		return answer{}, err
	}
	if err := h.addStatuses(v, &chosen, &body); err != nil {
		return answer{}, err
	}

	return h.page(v, "runs", view{
		Status: status,
		Title:  "Runs",
		Tab:    "runs",
		CLI:    present.CommandLine(append([]string{"pgfsm", "ledger", "list"}, chosen.flags...)...),
		Body:   &body,
	}), nil
}

// addStatuses adds the links that select a status. Only the runs of a period are counted, without
// another filter: the counts cover all of them.
func (h *Handler) addStatuses(v *visit, chosen *chosenFilter, body *runsView) error {
	counts, counted := make(map[ledger.Status]int), false
	if len(body.Applied) == 1 && v.query["since"] != "" && body.Error == "" {
		summary, err := h.readSummary(v)
		if err != nil {
			return err
		}
		counted = !summary.Partial
		for _, c := range summary.Statuses {
			counts[c.Status], counts[""] = c.Runs, counts[""]+c.Runs
		}
	}
	for _, status := range append([]ledger.Status{""}, ledger.Statuses()...) {
		if counted && status != "" && counts[status] == 0 && string(status) != body.Status {
			continue
		}
		link := statusLink{Status: status, Link: chosen.linkWith("status", string(status)), Chosen: string(status) == body.Status}
		if counted {
			link.Runs = strconv.Itoa(counts[status])
		}
		body.Statuses = append(body.Statuses, link)
	}
	return nil
}
