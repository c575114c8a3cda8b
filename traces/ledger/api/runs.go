package api

import (
	"errors"
	"fmt"
	"html/template"
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
		Who:    v.query["actor"],
		Task:   v.query["task"],
		Server: v.query["server"],
		Tool:   v.query["tool"],
		Policy: v.query["policy"],
		Code:   v.query["code"],
		Text:   v.query["text"],
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

// readRunPage reads one page of the runs that a filter chooses: the oldest first in the API, the
// newest first in the console.
func (h *Handler) readRunPage(v *visit, f ledger.Filter) (runPage, error) {
	out := runPage{SchemaVersion: present.SchemaVersion}
	limit, err := v.pageLimit()
	if err != nil {
		return out, err
	}

	parameter, from := "after", &f.After
	if v.console {
		parameter, from, f.Newest = "before", &f.Before, true
	}
	if *from = v.query[parameter]; *from != "" && !isRunID(*from) {
		return out, newProblem(QueryInvalid, parameter+" must be the id of a run, as next says it")
	}

	err = h.readInTurn(v, func(r ledger.Reader) (err error) {
		out.Requests, out.Next, err = present.ReadRuns(r, f, limit)
		return err
	})
	return out, err
}

// A held call in the inbox.
type heldCall struct {
	present.Run
	Rules []string // the risk rules that matched
	Left  string
}

type inboxView struct {
	Calls []heldCall
	Older string // id after which the next page begins; empty on the last
	Newer bool   // this is not the first page
}

// showInbox shows the held calls.
func (h *Handler) showInbox(v *visit) (answer, error) {
	held, err := h.readPending(v)
	if err != nil {
		return answer{}, err
	}

	body := inboxView{Older: held.Next, Newer: v.query["before"] != ""}
	err = h.readLedger(v, func(r ledger.Reader) error {
		for _, run := range held.Requests {
			rules, err := present.RiskRules(r, run.Run)
			if err != nil {
				return err
			}
			body.Calls = append(body.Calls, heldCall{run, rules, timeLeft(v.now, run.Expires)})
		}
		return nil
	})
	if err != nil {
		return answer{}, err
	}
	return h.page(v, "inbox", view{
		Title:  "Inbox",
		Events: "of=held",
		CLI:    "pgfsm approvals list",
		Body:   body,
	}), nil
}

// A runList is a table of runs.
type runList struct {
	Base string // prefix of links
	Runs []present.Run
}

type runsView struct {
	List     runList
	Statuses []ledger.Status
	Fields   []field
	Status   string // the chosen status
	Error    string
	Note     string       // about the actors in the list
	Older    template.URL // query of the next page; empty on the last
}

// A field of a form that chooses rows of a list.
type field struct{ Name, Label, Value, Hint string }

// hintOfTime is the hint in an empty field for a time.
const hintOfTime = "24h, 2027-01-31"

// runFields lists the filters of pgfsm ledger list, except the status.
var runFields = []field{
	{Name: "actor", Label: "Actor"}, {Name: "task", Label: "Task"}, {Name: "server", Label: "Server"},
	{Name: "tool", Label: "Tool"},
	{Name: "policy", Label: "Policy"}, {Name: "code", Label: "Code"}, {Name: "since", Label: "Since", Hint: hintOfTime},
	{Name: "until", Label: "Until", Hint: hintOfTime}, {Name: "text", Label: "Text in the arguments"},
}

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
func (c *chosenFilter) link(before string) template.URL {
	c.query.Del("before")
	if before != "" {
		c.query.Set("before", before)
	}
	return template.URL("?" + c.query.Encode()) // Encode escapes
}

// showRuns lists the runs that a filter chooses.
func (h *Handler) showRuns(v *visit) (answer, error) {
	chosen := v.chosenFilter("status", runFields)
	body := runsView{Statuses: ledger.Statuses(), Status: v.query["status"], Fields: chosen.fields}

	found, err := h.readRequests(v)
	text, status, err := pageText(err)
	if err != nil {
		return answer{}, err
	}
	body.Error, body.List = text, runList{v.base, found.Requests}
	body.Note = present.SameDisplay(v.query["actor"], found.Requests)
	if found.Next != "" {
		body.Older = chosen.link(found.Next)
	}

	return h.page(v, "runs", view{
		Status: status,
		Title:  "Runs",
		CLI:    present.CommandLine(append([]string{"pgfsm", "ledger", "list"}, chosen.flags...)...),
		Body:   body,
	}), nil
}
