package states

import (
	"errors"
	"fmt"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/redact"
)

// checkEvent refuses an event with values that no port returns. Otherwise a changed trace could
// replay to the same facts.
func checkEvent(ev Event) error {
	switch e := ev.(type) {
	case *ToolsListed:
		for i := range e.Servers {
			if s := &e.Servers[i]; s.Status != policy.ServerUp && s.Status != policy.ServerDown {
				return fmt.Errorf("the status of server %q is %q, neither up nor down", s.Server, s.Status)
			}
		}
	case *Completed:
		return e.check()
	case *Decided:
		return e.check()
	case *HistoryRead:
		return e.Origins.check()
	case *CallReported:
		return e.check()
	case *ToolReturned:
		return checkRedacted(e.Redacted)
	case *EffectFailed:
		if err := checkRedacted(e.Redacted); err != nil {
			return err
		}
		if !e.Effect.isKnown() {
			return fmt.Errorf("the effect is %q, none of not_sent, unknown and done", e.Effect)
		}
	}
	return nil
}

// checkRedacted refuses counts that no rules can have.
func checkRedacted(hits []redact.Hit) error {
	for _, h := range hits {
		if h.Count < 1 || h.Rule == "" {
			return fmt.Errorf("rule %q removed something %d times", h.Rule, h.Count)
		}
	}
	return nil
}

// check refuses digests and sizes that no client can report.
func (e *CallReported) check() error {
	for _, d := range []canonical.Digest{e.Arguments, e.Result} {
		if _, err := canonical.ParseDigest(string(d)); d != "" && err != nil {
			return err
		}
	}
	if e.Bytes < 0 {
		return fmt.Errorf("a result of %d bytes", e.Bytes)
	}
	if e.Ran != nil && canonical.Sum("arguments", e.Ran) != e.Arguments {
		return errors.New("the arguments with which the call ran do not have their digest")
	}
	return nil
}

// isKnown reports whether e is one of the three effects.
func (e Effect) isKnown() bool { return e == NotSent || e == EffectUnknown || e == EffectDone }

// check compares the votes with their decision. A vote after the decision was not part of it.
func (e *Decided) check() error {
	if err := e.Trace.Check(); err != nil {
		return err
	}
	// From the last vote back to the first, none may be after the next one.
	next := e.At
	for i := len(e.Votes) - 1; i >= 0; i-- {
		switch v := &e.Votes[i]; {
		case v.Outcome != policy.VoteApprove && v.Outcome != policy.VoteDeny:
			return fmt.Errorf("the outcome of vote %d is %q, neither approve nor deny", i, v.Outcome)
		case v.At != next && !policy.IsBefore(v.At, next):
			return fmt.Errorf("vote %d was cast at %q, which is not before %q, when the next vote or the decision came", i, v.At, next)
		default:
			next = v.At
		}
	}
	return nil
}

// statusOK is the one HTTP status of a response that holds a completion.
const statusOK = 200

// CompletedBy makes the event of the model's answer in the last of these exchanges. The error
// describes the problem of the response.
func CompletedBy(exchanges []Exchange) (*Completed, error) {
	last := &exchanges[len(exchanges)-1]
	if last.Status != statusOK {
		return nil, fmt.Errorf("the response has status %d", last.Status)
	}
	content, refusal, err := policy.ReadCompletion(last.Received)
	if err != nil {
		return nil, err
	}
	return &Completed{Content: content, Exchanges: exchanges, Refusal: []byte(refusal)}, nil
}

// check reads the model's response again: it must give the same content and refusal.
func (e *Completed) check() error {
	if len(e.Exchanges) == 0 {
		return nil // no model was asked
	}
	received, err := CompletedBy(e.Exchanges)
	if err != nil {
		return err
	}
	if string(received.Content) != string(e.Content) || string(received.Refusal) != string(e.Refusal) {
		return errors.New("the content or the refusal is not the one in the last exchange")
	}
	return nil
}

// answersCommand reports whether a completion came from where the command wants it: from a model,
// from the operator's routes or rules, or, for a plan in the mode auto, from either.
func (e *Completed) answersCommand(wanted *Complete) bool {
	usedModel := len(e.Exchanges) > 0
	switch {
	case wanted.Prompt == "":
		return !usedModel
	case wanted.Planner == policy.PlannerLLM, wanted.Purpose == PurposeSummary:
		return usedModel
	}
	return true
}
