package console

import (
	"errors"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"pgfsm/fsm"
	"pgfsm/internal/present"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

// A runView is the page of a run.
type runView struct {
	present.Details
	Rows      []present.Row
	Steps     present.Steps
	NoSteps   string        // reason why no steps are shown
	Machine   template.HTML // drawn by package fsm, which escapes text
	Arguments argumentsView
	Result    []part  // indented
	Summary   []claim // items of the result's summary
	Audits    bool    // this person may see results
	Ended     bool
	HasTrace  bool
	WhatIf    whatIfView
	Proof     ledger.Inclusion
	Prove     []string // commands that prove the run and check the proof
	Events    []string
}

// showRun shows one run.
func (h *Handler) showRun(v *visit) error {
	body, after := runView{Audits: v.who.May(ledger.ActAudit)}, int64(0)
	chosen, err := h.chooseBundle(v, &body.WhatIf)
	if err != nil {
		return err
	}

	read := h.readSnapshot
	if chosen {
		read = h.readInTurn
	}

	err = read(v, &after, func(r ledger.Reader, now string) error {
		q, err := r.Run(v.id)
		if errors.Is(err, ledger.ErrNotFound) {
			return errNoRun
		}
		if err != nil {
			return err
		}
		body.Ended = q.Ended != ""
		if body.Details, err = present.NewDetails(r, &q); err != nil {
			return err
		}
		if err := body.addRecord(r, now); err != nil {
			return err
		}
		if err := h.addSteps(v, r, &body); err != nil {
			return err
		}

		if body.Audits {
			if err := h.addResult(v, r, &q, &body); err != nil {
				return err
			}
		}

		return h.addWhatIf(v, r, &body)
	})
	if err != nil {
		return err
	}

	if body.Request.Args != nil {
		if body.Arguments, err = newArguments(body.Request.Args); err != nil {
			return err
		}
		body.Arguments.Digest = body.Request.Arguments
	}

	return h.renderPage(v, http.StatusOK, "run", view{
		Title:  "Run " + v.id,
		Events: "of=" + v.id,
		After:  after,
		CLI:    present.CommandLine("pgfsm", "ledger", "show", v.id),
		Body:   body,
	})
}

var errNoRun = &refusal{http.StatusNotFound, "The ledger has no such run."}

// addRecord adds the run's events and their positions in the log.
func (b *runView) addRecord(r ledger.Reader, now string) error {
	run := b.Request.Run
	var events []present.Event

	for e, err := range ledger.EventsOf(r, run) {
		if err != nil {
			return err
		}
		event := present.NewEvent(&e)
		events = append(events, event)
		b.Events = append(b.Events, event.Line(false))
	}

	b.Rows = b.Details.Rows(events, now)
	proof, err := ledger.InclusionOf(r, run)
	if err != nil {
		return err
	}

	b.Proof = proof
	b.Prove = []string{
		present.CommandLine("pgfsm", "ledger", "prove", run, "-o", "run.tlog-proof"),
		present.CommandLine("pgfsm", "ledger", "trace", run, "-o", "run.json"),
		"pgfsm verify-proof run.json run.tlog-proof --key pgfsm-log.pub",
	}

	return nil
}

func (h *Handler) addResult(v *visit, r ledger.Reader, q *ledger.RunRow, body *runView) (err error) {
	if !h.AddResult(v.r.Context(), r, q, &body.Details) {
		return nil
	}
	body.Result, body.Summary, err = markEvidence(body.Details.Result, body.Steps.Summary)
	return err
}

// addSteps adds the steps of a run as far as they are recorded, and draws them.
func (h *Handler) addSteps(v *visit, r ledger.Reader, body *runView) error {
	steps, underWay, err := ledger.Steps(v.r.Context(), r, v.id, h.Replayer)
	if err != nil {
		if v.r.Context().Err() != nil || errors.Is(err, ledger.ErrUnavailable) {
			return err
		}
		h.Log("the steps of run " + v.id + " cannot be shown: " + err.Error())
		body.NoSteps = "The steps cannot be derived from the record of this run. Somebody may have changed the record: run pgfsm ledger verify."
		return nil
	}
	body.HasTrace, body.Steps = !underWay, present.NewSteps(v.id, steps, underWay, body.Audits)
	var marks fsm.Marks
	for _, s := range steps {
		marks = append(marks, fsm.Mark{From: s.From, On: s.Trigger, To: s.To})
	}
	body.Machine = template.HTML(fsm.SVGInPage(h.Replayer.Machine().Spec(), marks))
	return nil
}

// sendTrace sends the trace of a run as a file. A trace contains results, which only auditors see.
func (h *Handler) sendTrace(v *visit) error {
	if err := v.who.Allow(ledger.ActAudit); err != nil {
		return err
	}

	run := strings.TrimSuffix(v.id, "/trace")
	var doc []byte
	err := h.Ledger.View(v.r.Context(), func(r ledger.Reader) (err error) {
		doc, err = ledger.Trace(v.r.Context(), r, run, h.Replayer)
		return err
	})

	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return errNoRun
	case errors.Is(err, ledger.ErrUnfinished):
		return &refusal{http.StatusConflict, "The run is under way. It has a trace when it has ended or is held."}
	case err != nil:
		return err
	}

	header := v.w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Disposition", `attachment; filename="`+traces.Name(run)+`"`)
	header.Set("Content-Length", strconv.Itoa(len(doc)))
	_, _ = v.w.Write(doc) // a browser that has left needs no file

	return nil
}
