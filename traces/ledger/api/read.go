package api

import (
	"cmp"
	"fmt"
	"strconv"

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

func (h *Handler) listPending(v *visit) (answer, error) {
	return h.answerPage(v, ledger.Filter{Statuses: []ledger.Status{ledger.Pending}})
}

func (h *Handler) listRequests(v *visit) (answer, error) {
	f, err := h.RunFilter(func(name string) string { return v.query[name] })
	if err != nil {
		return answer{}, newProblem(QueryInvalid, err.Error())
	}
	return h.answerPage(v, f)
}

// pageLimit returns the maximum number of rows of a page.
func (v *visit) pageLimit() (int, error) {
	text, given := v.query["limit"]
	if !given {
		return defaultPage, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxPage || strconv.Itoa(n) != text {
		return 0, newProblem(QueryInvalid, fmt.Sprintf("limit must be a number from 1 to %d", MaxPage))
	}
	return n, nil
}

// answerInTurn answers with what read returns. It may read many requests, so it waits until no other
// request reads many.
func answerInTurn[T any](h *Handler, v *visit, read func(ledger.Reader) (T, error)) (answer, error) {
	if err := h.listing.Acquire(v.r.Context()); err != nil {
		return answer{}, err
	}
	defer h.listing.Release()

	var out T
	err := h.Ledger.View(v.r.Context(), func(r ledger.Reader) (err error) {
		out, err = read(r)
		return err
	})
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(out), nil
}

// answerPage returns one page of requests, oldest first.
func (h *Handler) answerPage(v *visit, f ledger.Filter) (answer, error) {
	limit, err := v.pageLimit()
	if err != nil {
		return answer{}, err
	}
	if after, given := v.query["after"]; given {
		if !RunID.MatchString(after) {
			return answer{}, newProblem(QueryInvalid, "after must be the id of a run, as next says it")
		}
		f.After = after
	}
	return answerInTurn(h, v, func(r ledger.Reader) (page, error) {
		runs, next, err := present.ReadRuns(r, f, limit)
		return page{SchemaVersion: present.SchemaVersion, Requests: runs, Next: next}, err
	})
}

// showStatus returns one request with its details. An agent sees only its own requests, and does
// not learn that there are others.
func (h *Handler) showStatus(v *visit) (answer, error) {
	var out present.Details
	err := h.Ledger.View(v.r.Context(), func(r ledger.Reader) error {
		q, err := r.Run(v.run)
		if err != nil {
			return orUnknown(err)
		}
		if !v.caller.May(ledger.ActRead) && !v.caller.IsRequester(&q) {
			return orUnknown(ledger.ErrNotFound)
		}
		if out, err = present.NewDetails(r, &q); err != nil {
			return err
		}
		if v.caller.May(ledger.ActAudit) {
			h.AddResult(v.r.Context(), r, &q, &out)
		}
		return nil
	})
	return jsonAnswer(out), err
}

func (h *Handler) healthz(*visit) (answer, error) {
	return jsonAnswer(health{SchemaVersion: present.SchemaVersion, Status: "ok"}), nil
}

// showSummary returns what happened in a period.
func (h *Handler) showSummary(v *visit) (answer, error) {
	ledgerTime := h.Ledger.Now()
	begin, err := ledger.ParsePast(cmp.Or(v.query["since"], present.DefaultPeriod), ledgerTime)
	if err != nil {
		return answer{}, newProblem(QueryInvalid, "since "+err.Error())
	}
	return answerInTurn(h, v, func(r ledger.Reader) (present.Summary, error) {
		a, err := ledger.ReadActivity(r, begin, ledgerTime.UTC().Format(policy.TimeForm))
		return present.NewSummary(&a), err
	})
}

// listEntries returns one page of the log.
func (h *Handler) listEntries(v *visit) (answer, error) {
	f := present.LogFilter{EventFilter: present.EventFilter{Type: ledger.Type(v.query["type"]), By: v.query["by"]},
		Run: v.query["run"]}
	if err := f.Choose(v.query["since"], v.query["until"], h.Ledger.Now()); err != nil {
		return answer{}, newProblem(QueryInvalid, err.Error())
	}
	limit, err := v.pageLimit()
	if err != nil {
		return answer{}, err
	}
	beforeIndex, err := ParseEntryIndex(v.query["before"])
	if err != nil {
		return answer{}, newProblem(QueryInvalid, err.Error())
	}
	return answerInTurn(h, v, func(r ledger.Reader) (present.Log, error) {
		return present.ReadLog(r, f, beforeIndex, limit)
	})
}

// listCheckpoints returns the last checkpoints.
func (h *Handler) listCheckpoints(v *visit) (answer, error) {
	return answerInTurn(h, v, func(r ledger.Reader) (present.Checkpoints, error) {
		return present.ReadCheckpoints(r, h.Checkpoints)
	})
}

// listReplicas returns the processes that work on the ledger.
func (h *Handler) listReplicas(v *visit) (answer, error) {
	if err := h.listing.Acquire(v.r.Context()); err != nil {
		return answer{}, err
	}
	defer h.listing.Release()
	last, err := checkpoint.Last(h.Checkpoints)
	if err != nil {
		return answer{}, err
	}
	p, err := h.Ledger.Replicas(v.r.Context())
	p.Checkpoint = last.Size
	return jsonAnswer(p), err
}
