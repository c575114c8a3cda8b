package console

import (
	"html/template"
	"net/http"
	"net/url"

	"pgfsm/internal/present"
	"pgfsm/traces/ledger"
)

// pageSize bounds the calls of one page.
const pageSize = 50

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

// showInbox shows the held calls, newest first.
func (h *Handler) showInbox(v *visit) error {
	beforeID := v.r.URL.Query().Get("before")
	body, after := inboxView{Newer: beforeID != ""}, int64(0)
	err := h.readInTurn(v, &after, func(r ledger.Reader, now string) error {
		f := ledger.Filter{Statuses: []ledger.Status{ledger.Pending}, Before: beforeID, Newest: true}
		runs, older, err := present.ReadRuns(r, f, pageSize)
		if err != nil {
			return err
		}
		body.Older = older
		for _, run := range runs {
			rules, err := present.RiskRules(r, run.Run)
			if err != nil {
				return err
			}
			body.Calls = append(body.Calls, heldCall{run, rules, timeLeft(now, run.Expires)})
		}
		return nil
	})
	if err != nil {
		return err
	}

	return h.renderPage(v, http.StatusOK, "inbox", view{
		Title:  "Inbox",
		Events: "of=held",
		After:  after,
		CLI:    "pgfsm approvals list",
		Body:   body,
	})
}

// readSnapshot reads one consistent state of the ledger. It also returns the end of the log and the
// ledger's time.
func (h *Handler) readSnapshot(v *visit, after *int64, do func(r ledger.Reader, now string) error) error {
	return h.Ledger.View(v.r.Context(), func(r ledger.Reader) error {
		end, err := r.End()
		if err != nil {
			return err
		}
		*after = end.Size
		return do(r, max(h.Ledger.Now().UTC().Format("2006-01-02T15:04:05Z"), end.At))
	})
}

// readInTurn calls readSnapshot once no other page reads many requests.
func (h *Handler) readInTurn(v *visit, after *int64, do func(r ledger.Reader, now string) error) error {
	if err := h.listing.Acquire(v.r.Context()); err != nil {
		return err
	}
	defer h.listing.Release()
	return h.readSnapshot(v, after, do)
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

// A field of the form that chooses runs.
type field struct{ Name, Label, Value, Hint string }

// hintOfTime is the hint in an empty field for a time.
const hintOfTime = "24h, 2027-01-31"

// fields lists the filters of pgfsm ledger list, except the status.
var fields = []field{
	{Name: "actor", Label: "Actor"}, {Name: "task", Label: "Task"}, {Name: "server", Label: "Server"},
	{Name: "tool", Label: "Tool"},
	{Name: "policy", Label: "Policy"}, {Name: "code", Label: "Code"}, {Name: "since", Label: "Since", Hint: hintOfTime},
	{Name: "until", Label: "Until", Hint: hintOfTime}, {Name: "text", Label: "Text in the arguments"},
}

// filters lists the query parameters that choose runs.
var filters = []string{"status", "actor", "task", "server", "tool", "policy", "code", "since", "until", "text"}

// showRuns lists the runs that match a filter, newest first.
func (h *Handler) showRuns(v *visit) error {
	query := v.r.URL.Query()
	body := runsView{List: runList{Base: v.base}, Statuses: ledger.Statuses(), Status: query.Get("status")}
	for _, f := range fields {
		f.Value = query.Get(f.Name)
		body.Fields = append(body.Fields, f)
	}

	// The command and the link to the next page have the same filters as the page.
	words, next := []string{"pgfsm", "ledger", "list"}, url.Values{}
	for _, name := range filters {
		if value := query.Get(name); value != "" {
			words = append(words, "--"+name, value)
			next.Set(name, value)
		}
	}

	status, after := http.StatusOK, int64(0)
	f, err := h.RunFilter(query.Get)
	f.Before, f.Newest = query.Get("before"), true
	if err != nil {
		status, body.Error = http.StatusBadRequest, err.Error()
	} else if err := h.readInTurn(v, &after, func(r ledger.Reader, _ string) (err error) {
		older := ""
		if body.List.Runs, older, err = present.ReadRuns(r, f, pageSize); older != "" {
			next.Set("before", older)
			body.Older = template.URL("?" + next.Encode()) // Encode escapes
		}
		body.Note = present.SameDisplay(f.Who, body.List.Runs)
		return err
	}); err != nil {
		return err
	}

	return h.renderPage(v, status, "runs", view{Title: "Runs", CLI: present.CommandLine(words...), Body: body})
}
