package ledger

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy/origin"
	"pgfsm/states"
)

// A lookback names calls that were sent: those of a session, with their results, or those of a requester in all
// sessions, with what they sent.
type lookback struct {
	actor, person string
	session, task string        // of a session
	everywhere    bool          // in all sessions
	rules         *origin.Rules // for a session: they say whose results are read
}

// includes reports whether a run belongs to the calls.
func (k *lookback) includes(q *RunRow) bool {
	return q.Sent != "" && q.Actor == k.actor && q.OnBehalfOf == k.person && (k.everywhere || q.Session == k.session)
}

// bounds returns how many calls and bytes are looked at, and why a look beyond them fails.
func (k *lookback) bounds() (calls, bytes int, failed string) {
	if k.everywhere {
		return MaxEarlierCalls, MaxEarlierBytes,
			fmt.Sprintf("the requester has made more than %d calls, or their arguments have more than %d bytes", MaxEarlierCalls, MaxEarlierBytes)
	}
	return MaxSessionCalls, MaxSessionBytes,
		fmt.Sprintf("the session has more than %d calls, or %d bytes of results", MaxSessionCalls, MaxSessionBytes)
}

// An earlierCall is a call that was sent, as the entries of its run say; or what a late report says that a call sent.
type earlierCall struct {
	origin.Result
	run       string // empty: a late report
	sent      int64  // the entry that sent it
	last      int64  // the last entry of its run
	delegated bool
	texts     []sentText
}

// A sentText is what an entry says that a call sent.
type sentText struct {
	at int64
	origin.Sent
}

// earlierCalls are the calls of a lookback up to a point of the log. A look at them changes nothing.
type earlierCalls struct {
	lookback
	ended []earlierCall // of runs that have ended
	open  []earlierCall // of other runs, and those that only a transaction has read
	until string        // the time of the last entry
	end   int64         // the size of the log
	prune int64         // the entry of the last prune
	bytes int           // of the calls
	full  int64         // from this entry on, a bound is exceeded; 0: not yet
}

// extend returns the calls with those that came since. keep stores those of runs that have ended for later looks; only
// one caller may keep at a time.
func (e *earlierCalls) extend(r Reader, prune int64, keep, untilFull bool) (*earlierCalls, error) {
	if e.prune != prune { // what is gone is not looked at
		e = &earlierCalls{lookback: e.lookback, prune: prune}
	}
	end, err := r.End()
	if err != nil {
		return nil, err
	}
	next := *e
	next.open, next.until, next.end = nil, end.At, end.Size
	open := make(map[string]*earlierCall, len(e.open)) // by run: those that are not in next yet
	for i := range e.open {
		open[e.open[i].run] = &e.open[i]
		next.bytes -= e.open[i].size()
	}
	add := func(q *RunRow) (err error) {
		known := open[q.RunID]
		if !e.includes(q) || known == nil && q.Ended != "" && (q.Entry < e.end || q.First < e.end && e.hasEnded(q.First)) {
			return nil
		}
		delete(open, q.RunID)
		if known == nil || known.last != q.Entry {
			if known, err = e.readCall(r, q); err != nil {
				return err
			}
		}
		next.add(known, q.Ended != "" && keep)
		return nil
	}
	for q, err := range r.Runs(Filter{
		Actor: e.actor, Session: e.session, Task: e.task, Statuses: sentStatuses, Counted: true, Since: e.until,
	}) {
		if err == nil {
			err = add(&q)
		}
		if err != nil {
			return nil, err
		}
		if untilFull && next.full != 0 {
			return &next, nil
		}
	}
	for i := range e.open { // it may have ended meanwhile
		if open[e.open[i].run] == nil {
			continue
		}
		q, err := r.Run(e.open[i].run)
		if err == nil {
			err = add(&q)
		}
		if err != nil {
			return nil, err
		}
	}
	return &next, next.addLate(r, e.end, keep)
}

func (e *earlierCalls) add(call *earlierCall, keep bool) {
	if keep {
		e.ended = append(e.ended, *call)
	} else {
		e.open = append(e.open, *call)
	}
	e.bytes += call.size()
	e.cut()
}

// size returns about how many bytes the calls take.
func (e *earlierCalls) size() int { return e.bytes + 512*(len(e.ended)+len(e.open)+1) }

// hasEnded reports whether the call of a run with this first entry is stored. It takes a millisecond for many calls, so
// it is not asked about those that are open.
func (e *earlierCalls) hasEnded(first int64) bool {
	for i := len(e.ended) - 1; i >= 0; i-- { // the newest are at the end
		if e.ended[i].Call == first {
			return true
		}
	}
	return false
}

// calls returns how many calls these are: a late report is about another one.
func (c *earlierCall) calls() int {
	if c.run == "" {
		return 0
	}
	return 1
}

func (c *earlierCall) size() int {
	n := len(c.Value)
	for i := range c.texts {
		n += c.texts[i].Size()
	}
	return n
}

// addLate adds the arguments of late reports that are others than those that were permitted.
func (e *earlierCalls) addLate(r Reader, from int64, keep bool) error {
	if !e.everywhere {
		return nil
	}
	for entry, err := range r.EntriesOfType(ReportLate, from) {
		if err != nil {
			return err
		}
		one, err := entry.singleEvent()
		if err != nil {
			return err
		}
		report, ok := one.payload.(*reportLate)
		if !ok {
			continue
		}
		q, err := r.Run(report.Run)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if e.includes(&q) && report.Arguments != "" && report.Arguments != q.Arguments {
			texts := []sentText{{entry.Index, origin.NewSent(q.First, report.Args, nil)}}
			e.add(&earlierCall{sent: entry.Index, texts: texts}, keep)
		}
	}
	return nil
}

// cut drops what is beyond the bounds: every look from there on fails.
func (e *earlierCalls) cut() {
	maxCalls, maxBytes, _ := e.bounds()
	if len(e.ended)+len(e.open) <= 2*maxCalls && e.bytes <= 2*maxBytes {
		return
	}
	type growth struct {
		at           int64
		calls, bytes int
	}
	var grown []growth
	for _, list := range [][]earlierCall{e.ended, e.open} {
		for i := range list {
			c := &list[i]
			grown = append(grown, growth{c.sent, c.calls(), 0}, growth{c.Entry, 0, len(c.Value)})
			for k := range c.texts {
				grown = append(grown, growth{c.texts[k].at, 0, c.texts[k].Size()})
			}
		}
	}
	slices.SortFunc(grown, func(a, b growth) int { return cmp.Compare(a.at, b.at) })
	var sum growth
	for _, g := range grown {
		sum.calls, sum.bytes = sum.calls+g.calls, sum.bytes+g.bytes
		if sum.calls > maxCalls || sum.bytes > maxBytes {
			e.full = g.at + 1
			break
		}
	}
	e.bytes = 0
	e.ended, e.open = e.beforeFull(e.ended), e.beforeFull(e.open)
}

// beforeFull returns the calls that were sent before a bound was exceeded, and adds their bytes.
func (e *earlierCalls) beforeFull(calls []earlierCall) (kept []earlierCall) {
	for _, c := range calls {
		if c.sent >= e.full {
			continue
		}
		if c.Entry >= e.full {
			c.Value = nil
		}
		kept = append(kept, c)
		e.bytes += c.size()
	}
	return kept
}

// callsBefore returns the calls that were sent before an entry, as they were known there, in the order of their runs; or why
// there are too many.
func (e *earlierCalls) callsBefore(entry int64) (calls []earlierCall, failed string) {
	maxCalls, maxBytes, tooMuch := e.bounds()
	size := 0
	for _, list := range [][]earlierCall{e.ended, e.open} {
		for _, c := range list {
			if c.sent >= entry {
				continue
			}
			if c.Entry >= entry {
				c.Entry, c.Value, c.Failed = 0, nil, false
			}
			size += len(c.Value)
			calls = append(calls, c)
		}
	}
	if e.full != 0 && e.full <= entry || len(calls) > maxCalls || size > maxBytes {
		return nil, tooMuch
	}
	slices.SortFunc(calls, func(a, b earlierCall) int { return cmp.Compare(a.Call, b.Call) })
	return calls, ""
}

// textsBefore returns what the calls sent, as it was known before an entry, and how many calls there are; or why there
// is too much.
func (e *earlierCalls) textsBefore(entry int64) (texts []origin.Sent, calls int, failed string) {
	maxCalls, maxBytes, tooMuch := e.bounds()
	size := 0
	for _, list := range [][]earlierCall{e.ended, e.open} {
		for i := range list {
			if list[i].sent >= entry {
				continue
			}
			calls += list[i].calls()
			for _, text := range list[i].texts {
				if text.at < entry {
					texts = append(texts, text.Sent)
					size += text.Size()
				}
			}
		}
	}
	if e.full != 0 && e.full <= entry || calls > maxCalls || size > maxBytes {
		return nil, 0, tooMuch
	}
	return texts, calls, ""
}

// readCall reads the call of a run that was sent.
func (e *earlierCalls) readCall(r Reader, q *RunRow) (call *earlierCall, err error) {
	call = &earlierCall{run: q.RunID, last: q.Entry, delegated: q.Delegates()}
	call.Run, call.Call, call.Server, call.Tool = strconv.FormatInt(q.First, 10), q.First, q.Server, q.Tool
	wanted := [][]byte{historyEvent}
	if !e.everywhere && e.rules.ReadsResults(q.Server, q.Tool) {
		wanted = append(wanted, returnedEvent)
	}
	var found []origin.Leaf
	for entry, err := range r.EntriesOf(q.RunID) {
		if err != nil {
			return call, err
		}
		var body struct {
			Events []callEvent `json:"events"`
		}
		if err := json.Unmarshal(entry.Body, &body); err != nil {
			return call, fmt.Errorf("entry %d: %w", entry.Index, canonical.Explain(err))
		}
		for i := range body.Events {
			if err := call.addEvent(entry.Index, &body.Events[i], wanted, &found); err != nil {
				return call, fmt.Errorf("entry %d: %w", entry.Index, err)
			}
		}
	}
	call.Found = origin.Found(found)
	if !e.everywhere {
		call.texts = nil
		return call, nil
	}
	args, err := q.ReadArgs(r)
	if q.Agreed > 0 { // what people have seen and approved is no echo
		args = jsontext.Value("{}")
	}
	sent := origin.NewSent(q.First, args, found)
	sent.Returned = call.Entry
	call.texts = append(call.texts, sentText{call.sent, sent})
	return call, err
}

// A callEvent has the members of events that say something of a call.
type callEvent struct {
	Type   Type           `json:"type"`
	Args   jsontext.Value `json:"args"`
	Inputs []input        `json:"inputs"`
}

// returnedEvent is in the canonical form of an event with the result of a call.
var returnedEvent = []byte(`"happened":"tool_returned"`)

// addEvent adds what an event of the call's run says, and those of its inputs that are wanted. found are the leaves of
// the call.
func (c *earlierCall) addEvent(index int64, event *callEvent, wanted [][]byte, found *[]origin.Leaf) error {
	switch event.Type {
	case ProxySent, CallDelegated:
		c.sent = index
	case CallRewritten:
		c.texts = append(c.texts, sentText{index, origin.NewSent(c.Call, event.Args, nil)})
	}
	for i := range event.Inputs {
		if bytes.Contains(event.Inputs[i].Event, returnedEvent) {
			c.Entry = index
		}
		if !slices.ContainsFunc(wanted, func(text []byte) bool { return bytes.Contains(event.Inputs[i].Event, text) }) {
			continue
		}
		decoded, err := event.Inputs[i].decodeOwn()
		if err != nil {
			return err
		}
		switch e := decoded.(type) {
		case *states.HistoryRead:
			if e.Origins != nil {
				*found = e.Origins.Leaves
			}
		case *states.ToolReturned:
			c.Value, c.Failed = resultValue(e.Result)
		}
	}
	return nil
}

// Bounds of what a process remembers. If there is more, all is read again.
const (
	maxMemoryBytes = 64 << 20
	maxLookbacks   = 1 << 12
)

// An earlierMemory belongs to a process or to a verification. The zero value remembers nothing.
type earlierMemory struct {
	mu    sync.Mutex
	known map[lookback]*rememberedCalls
}

// rememberedCalls are those of a lookback. What a transaction reads is not remembered: it may be rolled back.
type rememberedCalls struct {
	reading sync.Mutex
	calls   atomic.Pointer[earlierCalls]
}

// get returns the calls of a lookback that are remembered.
func (m *earlierMemory) get(k lookback) *rememberedCalls {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[k] == nil {
		size := 0
		for _, one := range m.known { // the order does not matter
			size += one.calls.Load().size()
		}
		if m.known == nil || size > maxMemoryBytes || len(m.known) >= maxLookbacks {
			m.known = make(map[lookback]*rememberedCalls)
		}
		m.known[k] = new(rememberedCalls)
		m.known[k].calls.Store(&earlierCalls{lookback: k})
	}
	return m.known[k]
}

// update reads what is not remembered.
func (m *rememberedCalls) update(r Reader, prune int64, untilFull bool) error {
	m.reading.Lock()
	defer m.reading.Unlock()
	calls, err := m.calls.Load().extend(r, prune, true, untilFull)
	if err == nil {
		m.calls.Store(calls)
	}
	return err
}
