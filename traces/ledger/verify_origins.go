package ledger

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/states"
)

// historyEvent is in the canonical form of an event with the earlier calls.
var historyEvent = []byte(`"happened":"history_read"`)

// checkOrigins checks what the record of a run says of where its arguments come from: the prompts and runs that it
// names were there before the run, and are of its session.
func (s *runVerifier) checkOrigins(r *record) error {
	for i := range r.Inputs {
		var event struct {
			Happened string         `json:"happened"`
			Origins  jsontext.Value `json:"origins"`
		}
		if !bytes.Contains(r.Inputs[i].Event, historyEvent) || json.Unmarshal(r.Inputs[i].Event, &event) != nil ||
			event.Happened != "history_read" || event.Origins == nil {
			continue
		}
		origins, err := states.DecodeOrigins(event.Origins)
		if err != nil {
			return ruleOrigins.Wrap(err)
		}
		if !s.first.Request.HasSession() {
			return ruleOrigins.Broken("origins of arguments are found in no session")
		}
		if err := s.checkLookedAt(origins.Prompts, s.isOwnPrompt); err != nil {
			return err
		}
		if err := s.checkLookedAt(origins.Runs, s.isOwnRun); err != nil {
			return err
		}
	}
	return nil
}

// checkLookedAt checks that each index is that of an entry before the run that is of its session.
func (s *runVerifier) checkLookedAt(indexes []int64, isOwn func(*Entry) (bool, error)) error {
	for _, index := range indexes {
		own, err := false, error(nil)
		if index < s.row.First {
			for e, readErr := range s.verifier.r.Entries(index) {
				if err = readErr; err == nil && e.Index == index {
					own, err = isOwn(&e)
				}
				break
			}
		}
		if err != nil {
			return err
		}
		if !own {
			return ruleOrigins.Broken("entry %d is none of its session before it", index)
		}
	}
	return nil
}

// isOwnPrompt reports whether an entry is a prompt of the run's session. A pruned entry is only known to be a prompt.
func (s *runVerifier) isOwnPrompt(e *Entry) (bool, error) {
	if e.Pruned() {
		h, err := e.readHeader()
		return err == nil && slices.Equal(h.Types, []string{string(PromptCaptured)}), err
	}
	if e.RunID != "" {
		return false, nil
	}
	one, err := e.singleEvent()
	if err != nil {
		return false, err
	}
	p, ok := one.payload.(*promptCaptured)
	request := &s.first.Request
	return ok && request.Session != nil && one.event.By == request.Actor && p.Session == request.Session.Key(), nil
}

// isOwnRun reports whether an entry is the first one of a run of the run's session.
func (s *runVerifier) isOwnRun(e *Entry) (bool, error) {
	if e.Pruned() {
		h, err := e.readHeader()
		return err == nil && h.Types[0] == string(RequestCreated), err
	}
	events, err := e.decodeEvents()
	if err != nil {
		return false, err
	}
	p, ok := events[0].payload.(*requestCreated)
	if !ok {
		return false, nil
	}
	own, other := &s.first.Request, &p.Request
	return own.Actor == other.Actor && onBehalfOf(own) == onBehalfOf(other) && own.Session.Key() == other.Session.Key() &&
		(own.Session != nil || own.Task == other.Task), nil
}

// findOriginsAgain compares where the arguments of a run that was executed again come from with what its session says.
func (s *runVerifier) findOriginsAgain(run *states.Run) error {
	recorded := run.Origins()
	if recorded == nil {
		return nil
	}
	pruned := recorded.Failed != "" && s.verifier.report.Pruned > 0
	for _, index := range slices.Concat(recorded.Prompts, recorded.Runs) {
		pruned = pruned || s.verifier.isPruned(index)
	}
	if pruned {
		return fmt.Errorf("%w: a part of its session was pruned, so where its arguments come from is unknown", errUnjudged)
	}
	found, err := s.verifier.calls.findOrigins(s.verifier.r, run, s.row.First)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnjudged, err)
	}
	if !bytes.Equal(canonical.MustSorted(found), canonical.MustSorted(recorded)) {
		return fmt.Errorf("where its arguments come from: %s is found, and %s is recorded", canonical.MustSorted(found),
			canonical.MustSorted(recorded))
	}
	return nil
}
