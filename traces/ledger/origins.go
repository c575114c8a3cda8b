package ledger

import (
	"context"
	"fmt"
	"math"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy/origin"
	"pgfsm/states"
)

// Bounds of what is looked at to find where arguments come from. Beyond them nothing is found.
const (
	MaxSessionCalls = 1_024   // calls of a session that were sent, or whose permit was handed out
	MaxSessionBytes = 4 << 20 // of a session's prompts, and of its results that labels trust
	MaxEarlierCalls = 50_000  // calls of the requester, in all sessions
	MaxEarlierBytes = 8 << 20 // of what these calls sent without a source
)

// now is an index after all entries.
const now = math.MaxInt64

// lookbacksOf returns the calls that are looked at for a run: those of its session and, if labels trust results, those
// of its requester.
func lookbacksOf(request *states.Request, rules *origin.Rules) []lookback {
	session := lookback{actor: request.Actor, person: onBehalfOf(request), session: request.SessionKey(), rules: rules}
	if session.session == "" {
		session.task = request.Task
	}
	requester := lookback{actor: request.Actor, person: onBehalfOf(request), everywhere: true}
	if !rules.ReadsAnyResult() {
		return []lookback{session}
	}
	return []lookback{session, requester}
}

// rememberEarlier reads what [RunRecorder.ReadHistory] needs of earlier calls, as far as it is not remembered, so that
// other writers do not wait for that.
func (r *RunRecorder) rememberEarlier(ctx context.Context) error {
	request := r.run.Request()
	return r.ledger.View(ctx, func(b Reader) error {
		prune, err := r.ledger.lastPrune(b)
		if err != nil {
			return err
		}
		r.earlier = make(map[lookback]*rememberedCalls)
		for _, k := range lookbacksOf(&request, r.run.Bundle().Origins()) {
			r.earlier[k] = r.ledger.earlier.get(k)
			if err := r.earlier[k].update(b, prune.entry, true); err != nil {
				return err
			}
		}
		return nil
	})
}

// findOrigins finds where the arguments of a run's call come from, by what was before an entry. look returns the calls
// of a lookback.
func findOrigins(r Reader, run *states.Run, before int64, look func(lookback) (*earlierCalls, error)) (*states.Origins, error) {
	request := run.Request()
	lookbacks := lookbacksOf(&request, run.Bundle().Origins())
	session, err := look(lookbacks[0])
	if err != nil {
		return nil, err
	}
	calls, failed := session.callsBefore(before)
	if failed != "" {
		return states.NoOrigins(failed), nil
	}
	s := &origin.Session{Results: make([]origin.Result, len(calls))}
	if s.Prompts, failed, err = readPrompts(r, &request, before); err != nil || failed != "" {
		return states.NoOrigins(failed), err
	}
	untrusted, earlier := false, 0
	for i := range calls {
		s.Results[i] = calls[i].Result
		untrusted = untrusted || calls[i].delegated
	}
	s.Sent = func() (sent []origin.Sent, failed string) {
		var requester *earlierCalls
		if requester, err = look(lookbacks[len(lookbacks)-1]); err != nil {
			return nil, err.Error()
		}
		sent, earlier, failed = requester.textsBefore(before)
		return sent, failed
	}
	found := run.FindOrigins(s, untrusted)
	if found.Failed == "" {
		found.Earlier = earlier
	}
	return found, err
}

// readPrompts reads the prompts that a hook told of the session before an entry; or why there are too many.
func readPrompts(r Reader, request *states.Request, before int64) (prompts []origin.Prompt, failed string, err error) {
	if request.Session == nil {
		return nil, "", nil
	}
	size := 0
	for e, err := range r.Prompts(request.Session.Key()) {
		if err != nil {
			return nil, "", err
		}
		if e.Index >= before {
			break
		}
		one, err := e.singleEvent()
		if err != nil {
			return nil, "", err
		}
		p, ok := one.payload.(*promptCaptured)
		if !ok || one.event.By != request.Actor {
			continue
		}
		prompt := origin.Prompt{Entry: e.Index, Source: p.Source, Text: p.Text}
		if p.Cut {
			prompt.Text = "" // a value at its end may be a part of another
		}
		prompts = append(prompts, prompt)
		if size += len(prompt.Text); size > MaxSessionBytes {
			return nil, fmt.Sprintf("the session has more than %d bytes of prompts", MaxSessionBytes), nil
		}
	}
	return prompts, "", nil
}

// OriginsOf returns where the arguments of a run's call come from, as its entries say; nil if that was not read.
func OriginsOf(r Reader, run string) (*states.Origins, error) {
	for e, err := range EventsOf(r, run) {
		if err != nil {
			return nil, err
		}
		p, err := e.decodePayload()
		if err != nil {
			return nil, err
		}
		part, ok := p.(recording)
		if !ok {
			continue
		}
		for _, in := range part.runRecord().Inputs {
			if read, err := in.decodeOwn(); err != nil {
				return nil, err
			} else if read, ok := read.(*states.HistoryRead); ok {
				return read.Origins, nil
			}
		}
	}
	return nil, nil
}

// decodeOwn decodes the event of an input; nil for one that many runs share.
func (in *input) decodeOwn() (states.Event, error) {
	if eventRef(in.Event) != "" {
		return nil, nil
	}
	return states.DecodeEvent(in.Event)
}

// resultValue returns the document of a tool's result: its structured content, or else its only text. It returns nil for
// other results.
func resultValue(raw []byte) (value jsontext.Value, failed bool) {
	var result struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		IsError    bool           `json:"isError"`
		Structured jsontext.Value `json:"structuredContent"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, true
	}
	switch {
	case result.Structured.Kind() == '{':
		doc, err := canonical.JSON(result.Structured)
		if err != nil {
			return nil, true
		}
		return doc, result.IsError
	case len(result.Content) == 1 && result.Content[0].Type == "text":
		return canonical.AppendText(nil, result.Content[0].Text), result.IsError
	}
	return nil, result.IsError
}
