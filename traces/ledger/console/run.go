package console

import (
	"bytes"
	"errors"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/fsm"
	"pgfsm/present"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

// A runView is the page of a run.
type runView struct {
	present.Details
	Rows      []present.Row
	Steps     []present.Step
	NoSteps   string        // why no steps are shown
	Machine   template.HTML // drawn by fsm, which escapes
	Arguments argumentsView
	Result    string // indented
	Audits    bool   // this person may see results
	HasTrace  bool
	Events    []string
}

// run shows one run.
func (h *Handler) run(v *visit) error {
	body, after := runView{Audits: v.who.May(ledger.ActAudit)}, int64(0)
	err := h.read(v, &after, func(r ledger.Reader, now string) error {
		q, err := r.Request(v.id)
		if errors.Is(err, ledger.ErrNotFound) {
			return errNoRun
		}
		if err != nil {
			return err
		}
		if body.Details, err = present.NewDetails(r, &q); err != nil {
			return err
		}
		var events []present.Event
		for e, err := range ledger.EventsOf(r, v.id) {
			if err != nil {
				return err
			}
			event := present.NewEvent(&e)
			events = append(events, event)
			body.Events = append(body.Events, event.Line(false))
		}
		body.Rows = body.Details.Rows(events, now)
		if body.Audits {
			if err := h.addResult(v, r, &q, &body); err != nil {
				return err
			}
		}
		return h.addSteps(v, r, &body)
	})
	if err == nil && body.Request.Args != nil {
		body.Arguments, err = newArguments(body.Request.Args)
		body.Arguments.Digest = body.Request.Arguments
	}
	if err != nil {
		return err
	}
	return h.render(v, http.StatusOK, "run", view{
		Title: "Run " + v.id, Events: "of=" + v.id, After: after, CLI: present.CommandLine("pgfsm", "ledger", "show", v.id), Body: body,
	})
}

var errNoRun = &refusal{http.StatusNotFound, "The ledger has no such run."}

func (h *Handler) addResult(v *visit, r ledger.Reader, q *ledger.Request, body *runView) error {
	result, note, err := h.Options.Result(v.r.Context(), r, q)
	if err != nil {
		h.Log("the result of run " + q.RunID + " cannot be shown: " + err.Error())
		note = "the result cannot be shown; the service's log says why"
	}
	if body.ResultNote = note; result != nil {
		body.Details.Result = result
		text := result.Clone()
		if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
			return err
		}
		body.Result = string(text)
	}
	return nil
}

// addSteps adds the steps of a run that has a trace, and draws them.
func (h *Handler) addSteps(v *visit, r ledger.Reader, body *runView) error {
	doc, err := ledger.Trace(v.r.Context(), r, v.id, h.Replayer)
	var t *traces.Trace
	if err == nil {
		t, err = traces.Read(doc)
	}
	switch {
	case errors.Is(err, ledger.ErrUnfinished):
		body.NoSteps = "The run is under way. This page lists its steps when the run has ended or is held."
		return nil
	case err != nil && v.r.Context().Err() == nil:
		h.Log("the steps of run " + v.id + " cannot be shown: " + err.Error())
		body.NoSteps = "The steps cannot be derived from the record of this run. Somebody may have changed the record: run pgfsm ledger verify."
		return nil
	case err != nil:
		return err
	}
	body.HasTrace, body.Steps = true, present.NewSteps(t.Steps)
	var marks fsm.Marks
	for _, s := range t.Steps {
		marks = append(marks, fsm.Mark{From: s.From, On: s.Trigger, To: s.To})
	}
	picture := fsm.SVG(h.Replayer.Machine().Spec(), marks)
	body.Machine = template.HTML(bytes.Replace(picture, []byte("<style>"+fsm.SVGStyle()+"</style>\n"), nil, 1))
	return nil
}

// trace sends the trace of a run as a file. A trace has results, which only auditors see.
func (h *Handler) trace(v *visit) error {
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
