package api

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"pgfsm/internal/present"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
)

// Bounds of one page of requests.
const (
	MaxPage     = 200 // about 200 kB, which a person can still page through
	defaultPage = 50
)

func (h *Handler) pending(c *call) (answer, error) {
	return h.page(c, ledger.Filter{Statuses: []ledger.Status{ledger.Pending}})
}

func (h *Handler) requests(c *call) (answer, error) {
	f := ledger.Filter{
		Who:    c.query["actor"],
		Task:   c.query["task"],
		Server: c.query["server"],
		Tool:   c.query["tool"],
		Policy: c.query["policy"],
		Code:   c.query["code"],
	}
	var statuses []string
	if names := c.query["status"]; names != "" {
		statuses = strings.Split(names, ",")
	}
	if err := f.Choose(statuses, c.query["since"], c.query["until"], h.Ledger.Now()); err != nil {
		return answer{}, newProblem(QueryInvalid, err.Error())
	}
	return h.page(c, f)
}

// limit returns the maximum number of rows of a page.
func (c *call) limit() (int, error) {
	text, given := c.query["limit"]
	if !given {
		return defaultPage, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxPage || strconv.Itoa(n) != text {
		return 0, newProblem(QueryInvalid, fmt.Sprintf("limit must be a number from 1 to %d", MaxPage))
	}
	return n, nil
}

// turn waits until no other call reads many requests.
func (h *Handler) turn(c *call) error {
	select {
	case h.listing <- struct{}{}:
		return nil
	case <-c.r.Context().Done():
		return c.r.Context().Err()
	}
}

// inTurn calls do, which may read many requests, once no other call reads many.
func (h *Handler) inTurn(c *call, do func(ledger.Reader) error) error {
	if err := h.turn(c); err != nil {
		return err
	}
	defer func() { <-h.listing }()
	return h.Ledger.View(c.r.Context(), do)
}

// page returns one page of requests, oldest first.
func (h *Handler) page(c *call, f ledger.Filter) (answer, error) {
	limit, err := c.limit()
	if err != nil {
		return answer{}, err
	}
	if after, given := c.query["after"]; given {
		if !runID.MatchString(after) {
			return answer{}, newProblem(QueryInvalid, "after must be the id of a run, as next says it")
		}
		f.After = after
	}
	out := page{SchemaVersion: present.SchemaVersion}
	err = h.inTurn(c, func(r ledger.Reader) (err error) {
		out.Requests, out.Next, err = present.ReadRuns(r, f, limit)
		return err
	})
	return jsonAnswer(out), err
}

// status returns one request with its details. An agent sees only its own requests, and does not
// learn that there are others.
func (h *Handler) status(c *call) (answer, error) {
	var out present.Details
	err := h.Ledger.View(c.r.Context(), func(r ledger.Reader) error {
		q, err := r.Run(c.run)
		if err == nil && !c.caller.May(ledger.ActRead) && !c.caller.IsRequester(&q) {
			err = ledger.ErrNotFound
		}
		if err != nil {
			return orUnknown(err)
		}
		if out, err = present.NewDetails(r, &q); err != nil || h.Result == nil || !c.caller.May(ledger.ActAudit) {
			return err
		}
		result, note, err := h.Result(c.r.Context(), r, &q)
		if err != nil {
			h.Log("the result of run " + q.RunID + " cannot be shown: " + err.Error())
			note = "the result cannot be shown; the service's log says why"
		}
		if out.ResultNote = note; result != nil {
			out.Result = result
		}
		return nil
	})
	return jsonAnswer(out), err
}

func (h *Handler) healthz(*call) (answer, error) {
	return jsonAnswer(health{SchemaVersion: present.SchemaVersion, Status: "ok"}), nil
}

// summary returns what happened in a period.
func (h *Handler) summary(c *call) (answer, error) {
	now := h.Ledger.Now()
	since, err := ledger.ParsePast(cmp.Or(c.query["since"], present.DefaultPeriod), now)
	if err != nil {
		return answer{}, newProblem(QueryInvalid, "since "+err.Error())
	}
	var a ledger.Activity
	err = h.inTurn(c, func(r ledger.Reader) (err error) {
		a, err = ledger.ReadActivity(r, since, now.UTC().Format(policy.TimeForm))
		return err
	})
	return jsonAnswer(present.NewSummary(&a)), err
}

// entries returns one page of the log.
func (h *Handler) entries(c *call) (answer, error) {
	f := present.LogFilter{EventFilter: present.EventFilter{Type: ledger.Type(c.query["type"]), By: c.query["by"]},
		Run: c.query["run"]}
	if err := f.Choose(c.query["since"], c.query["until"], h.Ledger.Now()); err != nil {
		return answer{}, newProblem(QueryInvalid, err.Error())
	}
	limit, err := c.limit()
	if err != nil {
		return answer{}, err
	}
	before := int64(0)
	if text, given := c.query["before"]; given {
		if before, err = strconv.ParseInt(text, 10, 64); err != nil || before < 1 {
			return answer{}, newProblem(QueryInvalid, "before must be the index of an entry, as next says it")
		}
	}
	var out present.Log
	err = h.inTurn(c, func(r ledger.Reader) (err error) {
		out, err = present.ReadLog(r, f, before, limit)
		return err
	})
	return jsonAnswer(out), err
}

// signed returns the last checkpoints.
func (h *Handler) signed(c *call) (answer, error) {
	var out present.Checkpoints
	err := h.inTurn(c, func(r ledger.Reader) (err error) {
		out, err = present.ReadCheckpoints(r, h.Checkpoints)
		return err
	})
	return jsonAnswer(out), err
}

// replicas returns the processes that work on the ledger.
func (h *Handler) replicas(c *call) (answer, error) {
	if err := h.turn(c); err != nil {
		return answer{}, err
	}
	defer func() { <-h.listing }()
	last, err := checkpoint.Last(h.Checkpoints)
	if err != nil {
		return answer{}, err
	}
	p, err := h.Ledger.Replicas(c.r.Context())
	p.Checkpoint = last.Size
	return jsonAnswer(p), err
}
