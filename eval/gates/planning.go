package gates

import (
	"bytes"
	"encoding/json" // a second reader beside the gate's
	"fmt"
	"reflect"

	"pgfsm/eval"
	"pgfsm/eval/world"
	"pgfsm/policy"
	"pgfsm/policy/corpus"
	"pgfsm/states"
)

// sceneTrials makes a trial of each case of a corpus, in the scene of its world.
func sceneTrials(name string, got func(s *scene, in []byte) string) ([]trial, error) {
	scenes, err := newScenes()
	if err != nil {
		return nil, err
	}
	return trialsOf(name, func(c *corpus.Run) (t trial, err error) {
		s := scenes[c.World]
		if s == nil {
			return t, fmt.Errorf("%s: there is no world %q", c.ID, c.World)
		}
		return trial{c.ID, c.Want, c.Bytes(), func(in []byte) string { return got(s, in) }}, nil
	})
}

// planTrials takes plans through the machine, up to the permit and through the call.
func planTrials(e *evaluation) ([]trial, error) {
	return sceneTrials("runs", func(s *scene, plan []byte) string {
		r, w := s.newRun(plan)
		o, err := e.subject.play(w, e.runner, r)
		return outcomeText(o, err, w, plan)
	})
}

// outcomeText reports how a run ended, and compares the calls that were made with the plan's.
func outcomeText(o states.Outcome, err error, w *world.World, plan []byte) string {
	switch {
	case err != nil:
		return "an error: " + err.Error()
	case len(w.Calls) > 1:
		return fmt.Sprintf("%d calls", len(w.Calls))
	case len(w.Calls) == 1:
		if !isPlanned(plan, w.Calls[0]) {
			return "another call than the plan's"
		}
		if o.State != string(states.Answered) {
			return "called, and " + o.State
		}
		return "called"
	case o.Gate == policy.GateInput && w.Listed > 0:
		return "a server was asked before the request was screened"
	case o.State == string(states.NeedsInfo):
		return "asked"
	}
	return o.State + " " + string(o.Code)
}

// isPlanned reports whether a call is the plan's, as the standard library's lenient decoder reads
// both.
func isPlanned(plan []byte, target eval.Target) bool {
	var planned struct {
		Server, Tool string
		Args         any
	}
	var args any
	if decodeNumbers(plan, &planned) != nil || decodeNumbers(target.Args, &args) != nil {
		return false
	}
	return planned.Server == target.Server && planned.Tool == target.Tool && reflect.DeepEqual(planned.Args, args)
}

// decodeNumbers keeps the literals of numbers.
func decodeNumbers(doc []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	return d.Decode(v)
}

// fetchPlan is a plan that the plain world permits.
const fetchPlan = `{"type":"call_tool","server":"kb","tool":"fetch_entry","args":{"entry_id":"entry-002"}}`

// typingTrials compares the typing of results (INV-4) in whole runs with a table.
func typingTrials(e *evaluation) ([]trial, error) {
	return sceneTrials("outputs", func(s *scene, result []byte) string {
		r, w := s.newRun([]byte(fetchPlan))
		w.Result = result
		o, err := e.subject.play(w, e.runner, r)
		return typedAs(r, o, err)
	})
}

// typedAs says whether a result was typed. A raw answer must say why it is raw.
func typedAs(r *states.Run, o states.Outcome, err error) string {
	switch {
	case err != nil:
		return "an error: " + err.Error()
	case o.State != string(states.Answered):
		return o.State + " " + string(o.Code)
	case r.Structured() != nil:
		return "typed"
	case o.Note == "":
		return "raw, and no note says why"
	}
	return "raw"
}
