package api

import (
	"errors"
	"html/template"
	"strconv"

	"pgfsm/fsm"
	"pgfsm/internal/present"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

// A runView is the page of a run.
type runView struct {
	present.Details
	Rows      []present.Row
	Modes     []string // risk modes of the active bundle
	Steps     present.Steps
	Way       way
	NoSteps   string        // reason why no steps are shown
	Machine   template.HTML // drawn by package fsm, which escapes text
	Arguments present.Arguments
	Result    []part  // indented
	Summary   []claim // items of the result's summary
	HasTrace  bool
	Remedy    string // of the run's code
	WhatIf    whatIfView
	Proof     ledger.Inclusion
	Covered   int64    // size of a signed checkpoint that covers the run; 0: none does
	Prove     []string // commands that prove the run and check the proof
	Events    []string
}

// Outcome says in a sentence what happened to the call.
func (b *runView) Outcome() string {
	switch q := &b.Request; {
	case q.Status == ledger.Executed:
		text := "pgfsm made the call once"
		if q.Agreed > 0 {
			text = countText(q.Agreed, "person", "people") + " approved, and " + text
		}
		return text + "."
	case q.Status == ledger.Indeterminate:
		return "Nobody knows whether the call had an effect."
	case q.Status == ledger.Delegated:
		return "pgfsm permitted the call once. The client makes it, and has not reported it yet."
	case q.Status == ledger.Reported && q.Code == string(policy.CodeRewritten):
		return "pgfsm permitted the call once, and the client reported that it ran with other arguments."
	case q.Status == ledger.Reported && q.Code != "":
		return "pgfsm permitted the call once, and the client reported that it failed."
	case q.Status == ledger.Reported:
		return "pgfsm permitted the call once, and the client reported it."
	case q.Status == ledger.Unreported:
		return "pgfsm permitted the call once. Nobody knows whether the client made it."
	case q.ByClient() && q.Sent == "":
		return "The client got no permit."
	case q.Sent != "":
		return "pgfsm sent the call once."
	case q.State == string(states.NeedsInfo):
		return "The planner asked back. Nothing was called."
	case q.Ended != "":
		return "Nothing was called."
	}
	return "Nothing has been called."
}

// explainUnknownRun returns the refusal of a run that the ledger does not have. It returns other errors
// unchanged.
func explainUnknownRun(err error) error {
	if errors.Is(err, ledger.ErrNotFound) {
		return newProblem(Code(ledger.RefusedUnknown), "")
	}
	return err
}

// readStatus reads one request with its details.
func (h *Handler) readStatus(v *visit) (present.Details, error) {
	return readValue(h, v, func(r ledger.Reader) (present.Details, error) { return h.readDetails(v, r) })
}

// readDetails reads the run of a visit. An agent sees only its own requests, and does not learn that
// there are others. Only auditors see results.
func (h *Handler) readDetails(v *visit, r ledger.Reader) (out present.Details, err error) {
	q, err := r.Run(v.id)
	if err != nil {
		return out, explainUnknownRun(err)
	}
	if !v.caller.May(ledger.ActRead) && !v.caller.IsRequester(&q) {
		return out, explainUnknownRun(ledger.ErrNotFound)
	}
	if out, err = present.NewDetails(r, &q); err != nil {
		return out, err
	}
	if h.Result == nil || !v.caller.May(ledger.ActAudit) {
		return out, nil
	}

	result, note, err := h.Result(v.r.Context(), r, &q)
	if err != nil {
		h.Log("the result of run " + q.RunID + " cannot be shown: " + err.Error())
		note = "the result cannot be shown; the service's log says why"
	}
	out.ResultNote = note
	if result != nil {
		out.Result = result
	}
	return out, nil
}

// readSteps reads the steps of a run as far as they are recorded.
func (h *Handler) readSteps(v *visit) (present.Steps, error) {
	return readValue(h, v, func(r ledger.Reader) (present.Steps, error) {
		steps, underWay, err := ledger.Steps(v.r.Context(), r, v.id, h.Replayer)
		return present.NewSteps(v.id, steps, underWay, v.caller.May(ledger.ActAudit)), explainUnknownRun(err)
	})
}

// readTreeHead reads the state of the log.
func (h *Handler) readTreeHead(v *visit) (out ledger.TreeHead, err error) {
	from := int64(0)
	if text, given := v.query["from"]; given {
		if from, err = strconv.ParseInt(text, 10, 64); err != nil || from < 0 {
			return out, newProblem(QueryInvalid, "from must be a number of entries")
		}
	}
	out, err = readValue(h, v, func(r ledger.Reader) (ledger.TreeHead, error) { return ledger.ReadTreeHead(r, from) })
	if errors.Is(err, ledger.ErrFrom) {
		err = newProblem(QueryInvalid, err.Error()+" than from says")
	}
	return out, err
}

// readInclusion reads the positions of a run's entries in the log.
func (h *Handler) readInclusion(v *visit) (ledger.Inclusion, error) {
	out, err := readValue(h, v, func(r ledger.Reader) (ledger.Inclusion, error) { return ledger.InclusionOf(r, v.id) })
	return out, explainUnknownRun(err)
}

// showRun shows one run.
func (h *Handler) showRun(v *visit) (answer, error) {
	var body runView
	bundle, chosen, err := v.chosenBundle()
	if err != nil {
		return answer{}, err
	}

	read := h.readLedger
	if chosen {
		read = h.readInTurn
	}
	body.WhatIf.Bundle = bundle
	err = read(v, func(r ledger.Reader) (err error) {
		if body.Details, err = h.readDetails(v, r); err != nil {
			return err
		}
		if err := h.addRecord(v, r, &body); err != nil {
			return err
		}
		return h.addWhatIf(v, r, &body.WhatIf)
	})
	if err != nil {
		return answer{}, err
	}

	if body.Modes, err = h.riskModes(v); err != nil {
		return answer{}, err
	}
	if body.Details.Result.Kind() != 'n' {
		if body.Result, body.Summary, err = markEvidence(body.Details.Result, body.Steps.Summary); err != nil {
			return answer{}, err
		}
	}
	if body.Request.Args != nil {
		if body.Arguments, err = present.NewArguments(body.Request.Args); err != nil {
			return answer{}, err
		}
		body.Arguments.AddOrigins(body.Origins)
	}

	return h.page(v, "run", view{
		Title:  "Run " + v.id,
		Tab:    "runs",
		Events: "of=" + v.id,
		CLI:    present.CommandLine("pgfsm", "ledger", "show", v.id),
		Body:   &body,
	}), nil
}

// showAudit shows what an auditor signs about one run. It prints.
func (h *Handler) showAudit(v *visit) (answer, error) {
	var body runView
	err := h.readLedger(v, func(r ledger.Reader) (err error) {
		if body.Details, err = h.readDetails(v, r); err != nil {
			return err
		}
		return h.addRecord(v, r, &body)
	})
	if err != nil {
		return answer{}, err
	}
	return h.page(v, "audit", view{
		Title: "Audit of run " + v.id,
		Tab:   "runs",
		CLI:   body.Prove[0],
		Body:  &body,
	}), nil
}

// addRecord adds the run's steps, its events and their positions in the log.
func (h *Handler) addRecord(v *visit, r ledger.Reader, b *runView) error {
	run := b.Request.Run
	b.Remedy = policy.Remedy(policy.Code(b.Request.Code))
	var events []present.Event

	for e, err := range ledger.EventsOf(r, run) {
		if err != nil {
			return err
		}
		event := present.NewEvent(&e)
		events = append(events, event)
		b.Events = append(b.Events, event.Line(false))
	}

	b.Rows = b.Details.Rows(events, v.now)
	proof, err := ledger.InclusionOf(r, run)
	if err != nil {
		return err
	}

	b.Proof = proof
	if b.Covered, err = coveredBy(r, h.Checkpoints, proof.Index); err != nil {
		return err
	}
	b.Prove = []string{
		present.CommandLine("pgfsm", "ledger", "prove", run, "-o", "run.tlog-proof"),
		present.CommandLine("pgfsm", "ledger", "trace", run, "-o", "run.json"),
		"pgfsm verify-proof run.json run.tlog-proof --key pgfsm-log.pub",
	}

	return h.addSteps(v, r, b)
}

// coveredBy returns the size of a good checkpoint that covers an entry; 0 without one.
func coveredBy(r ledger.Reader, folder string, entry int64) (size int64, err error) {
	c, err := present.ReadCheckpoints(r, folder)
	for i := range c.Checkpoints {
		if one := &c.Checkpoints[i]; one.Problem == "" && one.Size > entry {
			size = one.Size
		}
	}
	return size, err
}

// addSteps adds the steps of a run as far as they are recorded, and draws them.
func (h *Handler) addSteps(v *visit, r ledger.Reader, body *runView) error {
	steps, underWay, err := ledger.Steps(v.r.Context(), r, v.id, h.Replayer)
	if err != nil {
		if v.r.Context().Err() != nil || errors.Is(err, ledger.ErrUnavailable) {
			return err
		}
		h.Log("the steps of run " + v.id + " cannot be shown: " + err.Error())
		body.NoSteps = "The steps cannot be derived from the record of this run. " +
			"Somebody may have changed the record: run pgfsm ledger verify."
		return nil
	}
	body.HasTrace, body.Steps = !underWay, present.NewSteps(v.id, steps, underWay, v.caller.May(ledger.ActAudit))
	spec := h.Replayer.Machine().Spec()
	body.Way = newWay(&body.Request, body.Steps.Steps, spec)
	var marks fsm.Marks
	for _, s := range steps {
		marks = append(marks, fsm.Mark{From: s.From, On: s.Trigger, To: s.To})
	}
	body.Machine = template.HTML(fsm.SVGInPage(spec, marks))
	return nil
}

// sendTrace sends the trace of a run as a file. A trace contains results, which only auditors see.
func (h *Handler) sendTrace(v *visit) (answer, error) {
	doc, err := readValue(h, v, func(r ledger.Reader) ([]byte, error) { return ledger.Trace(v.r.Context(), r, v.id, h.Replayer) })
	if errors.Is(err, ledger.ErrUnfinished) {
		return answer{}, newProblem(Code(ledger.RefusedNotHeld),
			"the run is under way; it has a trace when it has ended or is held")
	}
	if err != nil {
		return answer{}, explainUnknownRun(err)
	}
	v.w.Header().Set("Content-Disposition", `attachment; filename="`+traces.Name(v.id)+`"`)
	return answer{mime: "application/json", body: doc}, nil
}
