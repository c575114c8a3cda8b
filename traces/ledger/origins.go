package ledger

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/origin"
	"pgfsm/states"
)

// Bounds of the session in which the origins of arguments are looked for, while all other writers wait. In a larger
// session nothing is found.
const (
	MaxSessionCalls = 1_024   // calls that were sent, or whose permit was handed out
	MaxSessionBytes = 4 << 20 // of prompts, arguments, and results that labels trust
)

// now is an index after all entries.
const now = math.MaxInt64

// findOrigins finds where the arguments of a run's call come from, by what was in its session before an entry.
func (c *sessionCalls) findOrigins(b Reader, run *states.Run, before int64) (*states.Origins, error) {
	request := run.Request()
	s := sessionReader{reader: b, known: c, request: &request, rules: run.Bundle().Origins(), before: before}
	err := s.read()
	switch {
	case err != nil:
		return nil, err
	case s.failed != "":
		return states.NoOrigins(s.failed), nil
	}
	return run.FindOrigins(&s.session, s.runs, s.untrusted), nil
}

// A sessionReader reads the session of a request: its prompts, and the calls that were sent.
type sessionReader struct {
	reader  Reader
	known   *sessionCalls
	request *states.Request
	rules   *origin.Rules
	before  int64

	session   origin.Session
	runs      []int64 // the first entry of the run of each result
	untrusted bool    // a client had results that the ledger does not have
	bytes     int
	failed    string // why the session is not looked at
}

func (s *sessionReader) read() error {
	if err := s.readPrompts(); err != nil || s.failed != "" {
		return err
	}
	var calls []RunRow
	for q, err := range s.reader.Runs(Filter{
		Actor: s.request.Actor, Session: s.request.Session.Key(), Task: s.taskOfSession(), Statuses: sentStatuses,
	}) {
		switch {
		case err != nil:
			return err
		case q.Sent != "" && q.First < s.before && q.Session == s.request.Session.Key() && q.OnBehalfOf == onBehalfOf(s.request):
			calls = append(calls, q)
		}
	}
	slices.SortFunc(calls, func(a, b RunRow) int { return cmp.Compare(a.First, b.First) })
	for i := range calls {
		if err := s.addCall(&calls[i]); err != nil || s.failed != "" {
			return err
		}
	}
	return nil
}

// taskOfSession returns the task that is the session of the request; empty if a hook told a session.
func (s *sessionReader) taskOfSession() string {
	if s.request.Session != nil {
		return ""
	}
	return s.request.Task
}

// grow counts bytes of the session.
func (s *sessionReader) grow(n int) {
	if s.bytes += n; s.bytes > MaxSessionBytes && s.failed == "" {
		s.failed = fmt.Sprintf("the session has more than %d bytes", MaxSessionBytes)
	}
}

// readPrompts reads the prompts that a hook told of the session.
func (s *sessionReader) readPrompts() error {
	if s.request.Session == nil {
		return nil
	}
	for e, err := range s.reader.Prompts(s.request.Session.Key()) {
		if err != nil {
			return err
		}
		if e.Index >= s.before {
			break
		}
		one, err := e.singleEvent()
		if err != nil {
			return err
		}
		p, ok := one.payload.(*promptCaptured)
		if !ok || one.event.By != s.request.Actor {
			continue
		}
		prompt := origin.Prompt{Entry: e.Index, Source: p.Source, Text: p.Text}
		if p.Cut {
			prompt.Text = "" // a value at its end may be a part of another
		}
		s.session.Prompts = append(s.session.Prompts, prompt)
		if s.grow(len(prompt.Text)); s.failed != "" {
			return nil
		}
	}
	return nil
}

// addCall adds a call of the session. Its row says enough, unless labels trust results of its tool, its client rewrote
// it, or the row is of a later time.
func (s *sessionReader) addCall(q *RunRow) error {
	args, err := q.ReadArgs(s.reader)
	if err != nil {
		return err
	}
	call := sessionCall{sent: q.Entry < s.before}
	reads := s.rules.ReadsResults(q.Server, q.Tool)
	if reads || !call.sent || q.Code == string(policy.CodeRewritten) {
		if call, err = s.known.read(s.reader, q, s.before); err != nil {
			return err
		}
	}
	call.Run, call.Call, call.Server, call.Tool, call.Arguments = strconv.FormatInt(q.First, 10), q.First, q.Server, q.Tool, args
	if !call.sent {
		return nil
	}
	if len(s.runs) == MaxSessionCalls {
		s.failed = fmt.Sprintf("the session has more than %d calls", MaxSessionCalls)
		return nil
	}
	if !reads {
		call.Value = nil
	}
	s.grow(len(call.Arguments) + len(call.Value) + len(call.ran))
	s.runs = append(s.runs, q.First)
	s.untrusted = s.untrusted || q.Delegates()
	s.session.Results = append(s.session.Results, call.Result)
	if call.rewritten {
		s.session.Results = append(s.session.Results, origin.Result{
			Run: call.Run, Call: call.Call, Server: call.Server, Tool: call.Tool, Arguments: call.ran,
		})
	}
	return nil
}

// A sessionCall is an earlier call of a session.
type sessionCall struct {
	origin.Result
	sent      bool
	rewritten bool
	last      int64          // the index of the last entry that was read
	ran       jsontext.Value // the arguments with which a rewritten call ran; nil: unknown
}

// Bounds of the calls that are remembered. If there are more, all are read again.
const (
	maxKnownBytes  = 4 * MaxSessionBytes
	knownCallBytes = 512 // of a call without its result
)

// sessionCalls remembers what the entries of runs that have ended say of their calls, because each later call of a
// session needs it. The zero value has none.
type sessionCalls struct {
	mu    sync.Mutex
	ended map[string]sessionCall // by run
	bytes int
}

// read returns what the entries of a run before an index say of its call.
func (c *sessionCalls) read(r Reader, q *RunRow, before int64) (call sessionCall, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	whole := q.Ended != "" && q.Entry < before
	if call, ok := c.ended[q.RunID]; whole && ok && call.last == q.Entry { // else a commit was rolled back
		return call, nil
	}
	if err = call.readEntries(r, q.RunID, before); err != nil || !whole {
		return call, err
	}
	size := len(call.Value) + len(call.ran) + knownCallBytes
	if c.bytes += size; c.ended == nil || c.bytes > maxKnownBytes {
		c.ended, c.bytes = make(map[string]sessionCall), size
	}
	call.last = q.Entry
	c.ended[q.RunID] = call
	return call, nil
}

// readEntries adds what the entries of the call's run before an index say.
func (c *sessionCall) readEntries(r Reader, run string, before int64) error {
	for e, err := range r.EntriesOf(run) {
		if err != nil {
			return err
		}
		if e.Index >= before {
			break
		}
		var body struct {
			Events []callEvent `json:"events"`
		}
		if err := json.Unmarshal(e.Body, &body); err != nil {
			return fmt.Errorf("entry %d: %w", e.Index, canonical.Explain(err))
		}
		for i := range body.Events {
			if err := c.addEvent(e.Index, &body.Events[i]); err != nil {
				return fmt.Errorf("entry %d: %w", e.Index, err)
			}
		}
	}
	return nil
}

// A callEvent has the members of events that say something of a call.
type callEvent struct {
	Type   Type           `json:"type"`
	Args   jsontext.Value `json:"args"`
	Inputs []input        `json:"inputs"`
}

func (c *sessionCall) addEvent(index int64, event *callEvent) error {
	switch event.Type {
	case ProxySent, CallDelegated:
		c.sent = true
	case CallRewritten:
		c.rewritten, c.ran = true, event.Args
	}
	for i := range event.Inputs {
		decoded, err := event.Inputs[i].decodeOwn()
		if err != nil {
			return err
		}
		switch e := decoded.(type) {
		case *states.HistoryRead:
			c.Found = e.Origins != nil && origin.Found(e.Origins.Leaves)
		case *states.ToolReturned:
			c.Entry = index
			c.Value, c.Failed = resultValue(e.Result)
		}
	}
	return nil
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
