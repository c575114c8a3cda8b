package ledger

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy/origin"
	"pgfsm/states"
)

// historyEvent is in the canonical form of an event with the earlier calls.
var historyEvent = []byte(`"happened":"history_read"`)

// checkOrigins checks what the record of a run says of where its arguments come from: how much was before the run, and
// that the sources that it names were there and are of its session.
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
		if err := s.checkCounts(origins); err != nil {
			return err
		}
		for _, source := range sourcesOf(origins) {
			if err := s.checkSource(source); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkSession checks that the request's session of MCP is one that a gateway records, and that the labels let its
// client name it, if it did.
func (v *verifier) checkSession(p *requestCreated) error {
	if p.Request.MCPSession == "" {
		return nil
	}
	bundle, err := v.bundles.compiledBundle(v.r, p.generation.Bundle)
	if err != nil { // this version cannot compile it
		bundle = nil
	}
	return ruleOrigins.Wrap(p.Request.CheckSession(bundle))
}

// earlierCounts count the prompts and calls of sessions, and the calls of requesters, before an entry.
type earlierCounts struct {
	prompts map[lookback]int // without a person
	calls   map[lookback]int
}

// countsBefore returns how many prompts and calls of its session, and how many calls of its requester, were before a request.
func (c *earlierCounts) countsBefore(r *states.Request) (prompts, calls, earlier int) {
	k := lookbacksOf(r, nil)[0]
	calls = c.calls[k]
	if r.Session != nil {
		prompts = c.prompts[lookback{actor: k.actor, session: k.session}]
	}
	return prompts, calls, c.calls[lookback{actor: k.actor, person: k.person, everywhere: true}]
}

// addCall counts the call of a request that was sent.
func (c *earlierCounts) addCall(r *states.Request) {
	k := lookbacksOf(r, nil)[0]
	c.calls[k]++
	c.calls[lookback{actor: k.actor, person: k.person, everywhere: true}]++
}

// checkCounts compares how much was looked at with what was there before the run. Pruned entries do not say whose they
// were.
func (s *runVerifier) checkCounts(o *states.Origins) error {
	if s.verifier.stated == nil || o.Failed != "" {
		return nil
	}
	c := s.earlier
	for _, one := range []struct {
		what            string
		recorded, known int
	}{{"prompts of its session", o.Prompts, c[0]}, {"calls of its session", o.Runs, c[1]}, {"calls of its requester", o.Earlier, c[2]}} {
		isAsked := one.recorded != 0 || one.what != "calls of its requester"
		if isAsked && one.recorded != one.known && (s.verifier.report.Pruned == 0 || one.recorded < one.known) {
			return ruleOrigins.Broken("%d %s were before it, and it says %d", one.known, one.what, one.recorded)
		}
	}
	return nil
}

// sourcesOf returns a leaf of each source and origin: an entry is not both a prompt and a call.
func sourcesOf(o *states.Origins) (leaves []origin.Leaf) {
	known := map[[2]string]bool{}
	for _, leaf := range o.Leaves {
		if key := [...]string{leaf.Origin, leaf.Source}; leaf.Source != "" && !known[key] {
			known[key] = true
			leaves = append(leaves, leaf)
		}
	}
	return leaves
}

// checkSource checks that the source of a leaf is an entry before the run that is of its session.
func (s *runVerifier) checkSource(leaf origin.Leaf) error {
	index, err := strconv.ParseInt(leaf.Source, 10, 64)
	own, isOwn := false, s.isOwnRun
	if leaf.Origin == origin.Request {
		isOwn = s.isOwnPrompt
	}
	if err == nil && index < s.row.First {
		for e, readErr := range s.verifier.r.Entries(index) {
			if err = readErr; err == nil && e.Index == index {
				own, err = isOwn(&e)
			}
			break
		}
	}
	if err == nil && !own {
		return ruleOrigins.Broken("entry %d is none of its session before it", index)
	}
	return err
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
	return own.Actor == other.Actor && onBehalfOf(own) == onBehalfOf(other) && own.SessionKey() == other.SessionKey() &&
		(own.SessionKey() != "" || own.Task == other.Task), nil
}

// findOriginsAgain compares where the arguments of a run that was executed again come from with what its session says.
func (s *runVerifier) findOriginsAgain(run *states.Run) error {
	recorded := run.Origins()
	if recorded == nil {
		return nil
	}
	found, err := findOrigins(s.verifier.r, run, s.row.First, func(k lookback) (*earlierCalls, error) {
		known := s.verifier.earlier.get(k)
		if known.calls.Load().end > 0 { // the ledger does not change meanwhile
			return known.calls.Load(), nil
		}
		err := known.update(s.verifier.r, 0, false)
		return known.calls.Load(), err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errUnjudged, err)
	}
	looked := func(o *states.Origins) [4]any { return [...]any{o.Failed, o.Prompts, o.Runs, o.Earlier} }
	if s.verifier.report.Pruned > 0 && looked(found) != looked(recorded) {
		return fmt.Errorf("%w: a part of its session or an earlier call was pruned, so where its arguments come from is unknown", errUnjudged)
	}
	if !bytes.Equal(canonical.MustSorted(found), canonical.MustSorted(recorded)) {
		return fmt.Errorf("where its arguments come from: %s is found, and %s is recorded", canonical.MustSorted(found),
			canonical.MustSorted(recorded))
	}
	return nil
}
