package api

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"pgfsm/internal/present"
	"pgfsm/traces/ledger"
)

// A heldCall is a call in the inbox.
type heldCall struct {
	present.Run
	Risk   chip
	Stripe string // class of the edge
	Gist   present.Gist
	Soon   bool   // little time is left
	Why    string // reason why this person may not vote
}

// Slots has one value for each vote that is needed: whether it was given. Too many are not drawn: a
// part of them could look complete.
func (c *heldCall) Slots() []bool {
	if c.Quorum > maxSlots {
		return nil
	}
	slots := make([]bool, max(c.Quorum, 1))
	for i := range slots {
		slots[i] = i < c.Agreed
	}
	return slots
}

// Bounds of a call in the inbox.
const (
	maxSlots = 8
	soonLeft = 15 * time.Minute
)

type inboxView struct {
	Calls []heldCall
	Mine  int    // calls of this page on which this person may vote
	Older string // id after which the next page begins; empty on the last
	Newer bool   // this is not the first page
}

// Lead describes the page.
func (i *inboxView) Lead() string {
	waiting := countText(len(i.Calls), "call waits", "calls wait")
	if i.Newer || i.Older != "" {
		waiting += " on this page"
	}
	return fmt.Sprintf("%s. You may vote on %d.", waiting, i.Mine)
}

// showInbox shows the held calls.
func (h *Handler) showInbox(v *visit) (answer, error) {
	if !v.caller.May(ledger.ActRead) {
		return redirectTo(v.base + connectionsPage), nil
	}
	f := ledger.Filter{Statuses: []ledger.Status{ledger.Pending}}
	limit, err := v.choosePage(&f)
	if err != nil {
		return answer{}, err
	}

	f.Limit = limit + 1 // one more row shows whether there is a next page
	body := inboxView{Newer: f.Before != ""}
	err = h.readInTurn(v, func(r ledger.Reader) error {
		content, _, _, err := present.ActiveBundle(r, h.activeBundle())
		if err != nil {
			return err
		}
		read := inboxReader{h, v, r, riskModes(content), present.NewGistReader(r, content)}
		for row, err := range r.Runs(f) {
			if err != nil {
				return err
			}
			if n := len(body.Calls); n == limit {
				body.Older = body.Calls[n-1].Run.Run
				break
			}
			call, err := read.readCall(&row)
			if err != nil {
				return err
			}
			if call.Why == "" {
				body.Mine++
			}
			body.Calls = append(body.Calls, call)
		}
		return nil
	})
	if err != nil {
		return answer{}, err
	}
	slices.SortStableFunc(body.Calls, func(a, b heldCall) int { return cmp.Compare(a.Expires, b.Expires) })
	return h.page(v, "inbox", view{
		Title:  "Inbox",
		Tab:    "inbox",
		Events: "of=held",
		CLI:    "pgfsm approvals list",
		Body:   &body,
	}), nil
}

// An inboxReader reads the calls of one page.
type inboxReader struct {
	*Handler
	visit *visit
	r     ledger.Reader
	modes []string
	gists *present.GistReader
}

func (i *inboxReader) readCall(row *ledger.RunRow) (c heldCall, err error) {
	run := present.NewRun(row)
	c = heldCall{Run: run, Risk: riskChip(i.modes, run)}
	switch c.Risk.Tone {
	case "solid":
		c.Stripe = "high"
	case "warn":
		c.Stripe = "mid"
	}
	refused, err := i.checkVoter(i.visit, i.r, row)
	switch {
	case errors.Is(err, ledger.ErrUnavailable) || i.visit.r.Context().Err() != nil:
		return c, err
	case err != nil: // one changed record must not hide the other calls
		i.Log("whether anybody may vote on run " + run.Run + " is not known: " + err.Error())
		c.Why = "its record cannot be read"
	case refused != "":
		c.Why = cmp.Or(whyNot[refused].short, string(refused))
	}
	c.Soon = timeBetween(i.visit.now, run.Expires) <= soonLeft
	doc, err := row.ReadArgs(i.r)
	if err != nil {
		return c, err
	}
	c.Gist, err = i.gists.Read(&run, doc)
	return c, err
}
