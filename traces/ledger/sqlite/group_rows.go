package sqlite

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/fsm"
	"pgfsm/policy/canonical"
	"pgfsm/traces/ledger"
)

// An earlierEvent is an event before the last of its group. It has its seq and its run from that.
type earlierEvent struct {
	At      string           `json:"at"`
	By      string           `json:"by"`
	Hash    canonical.Digest `json:"hash"`
	Payload jsontext.Value   `json:"payload"`
	Prev    canonical.Digest `json:"prev"`     // of the first alone
	RunPrev canonical.Digest `json:"run_prev"` // of the first alone
	Type    ledger.Type      `json:"type"`
}

// eventJoins reports whether an event may stand before the next one in a group.
func eventJoins(a, b *ledger.Event) bool {
	return a.RunID != "" && a.RunID == b.RunID && a.Seq+1 == b.Seq && a.Hash == b.Prev && a.Hash == b.RunPrev &&
		a.Type != ledger.LedgerPruned && embeds(a.Payload) &&
		quotable(a.At, a.By, string(a.Hash), string(a.Prev), string(a.RunPrev), string(a.Type))
}

func spellEvent(text []byte, e *ledger.Event, first bool) []byte {
	text = canonical.AppendText(append(text, `{"at":`...), e.At)
	text = canonical.AppendText(append(text, `,"by":`...), e.By)
	text = canonical.AppendText(append(text, `,"hash":`...), string(e.Hash))
	text = append(append(text, `,"payload":`...), e.Payload...)
	if first {
		text = canonical.AppendText(append(text, `,"prev":`...), string(e.Prev))
		text = canonical.AppendText(append(text, `,"run_prev":`...), string(e.RunPrev))
	}
	return append(canonical.AppendText(append(text, `,"type":`...), string(e.Type)), '}')
}

const eventColumns = "seq, run_id, type, at, by, payload, prev, run_prev, hash, earlier, before"

// readEvents reads the events of one row.
func readEvents(r *row) []ledger.Event {
	e := ledger.Event{
		Seq: r.int64(), RunID: r.text(), Type: ledger.Type(r.text()), At: r.text(), By: r.text(), Payload: jsontext.Value(r.text()),
		Prev: canonical.Digest(r.text()), RunPrev: canonical.Digest(r.text()), Hash: canonical.Digest(r.text()),
	}
	earlier, before := r.int64(), r.text()
	if r.err != nil {
		return nil
	}
	all, err := unspell(&e, earlier, before, func(list []earlierEvent) []ledger.Event {
		all := make([]ledger.Event, len(list), len(list)+1)
		for i, v := range list {
			if i > 0 {
				v.Prev, v.RunPrev = list[i-1].Hash, list[i-1].Hash
			}
			if e.RunID == "" || v.Type == ledger.LedgerPruned || !embeds(v.Payload) {
				return nil
			}
			all[i] = ledger.Event{
				Seq: e.Seq - int64(len(list)-i), RunID: e.RunID, Type: v.Type, At: v.At, By: v.By, Payload: v.Payload,
				Prev: v.Prev, RunPrev: v.RunPrev, Hash: v.Hash,
			}
		}
		return all
	}, spellEvent)
	if err != nil {
		r.err = unreadableGroup("events", strconv.FormatInt(e.Seq, 10), err)
	}
	return all
}

// readLastEvent reads the last event of a row.
func readLastEvent(r *row) ledger.Event {
	all := readEvents(r)
	if len(all) == 0 {
		return ledger.Event{}
	}
	return all[len(all)-1]
}

// An earlierStep is a step before the last of its group. It has its seq and its run from that.
type earlierStep struct {
	At      string           `json:"at"`
	Command jsontext.Value   `json:"command"`
	Event   jsontext.Value   `json:"event"`
	Facts   jsontext.Value   `json:"facts"`
	From    fsm.State        `json:"from_state"`
	Hash    canonical.Digest `json:"hash"`
	Prev    canonical.Digest `json:"prev"` // of the first alone
	To      fsm.State        `json:"to_state"`
	Trigger fsm.Trigger      `json:"trigger"`
}

// stepJoins reports whether a step may stand before the next one in a group.
func stepJoins(a, b *ledger.Step) bool {
	return a.RunID == b.RunID && a.Seq+1 == b.Seq && a.Hash == b.Prev && embeds(a.Command) && embeds(a.Event) && embeds(a.Facts) &&
		quotable(a.At, string(a.From), string(a.Hash), string(a.Prev), string(a.To), string(a.Trigger))
}

func spellStep(text []byte, s *ledger.Step, first bool) []byte {
	text = canonical.AppendText(append(text, `{"at":`...), s.At)
	text = append(append(text, `,"command":`...), s.Command...)
	text = append(append(text, `,"event":`...), s.Event...)
	text = append(append(text, `,"facts":`...), s.Facts...)
	text = canonical.AppendText(append(text, `,"from_state":`...), string(s.From))
	text = canonical.AppendText(append(text, `,"hash":`...), string(s.Hash))
	if first {
		text = canonical.AppendText(append(text, `,"prev":`...), string(s.Prev))
	}
	text = canonical.AppendText(append(text, `,"to_state":`...), string(s.To))
	return append(canonical.AppendText(append(text, `,"trigger":`...), string(s.Trigger)), '}')
}

const stepColumns = `run_id, seq, at, from_state, "trigger", to_state, facts, command, event, prev, hash, earlier, before`

// readSteps reads the steps of one row.
func readSteps(r *row) []ledger.Step {
	s := ledger.Step{
		RunID: r.text(), Seq: r.int(), At: r.text(), From: fsm.State(r.text()), Trigger: fsm.Trigger(r.text()), To: fsm.State(r.text()),
		Facts: r.text(), Command: r.text(), Event: r.text(), Prev: canonical.Digest(r.text()), Hash: canonical.Digest(r.text()),
	}
	earlier, before := r.int64(), r.text()
	if r.err != nil {
		return nil
	}
	all, err := unspell(&s, earlier, before, func(list []earlierStep) []ledger.Step {
		all := make([]ledger.Step, len(list), len(list)+1)
		for i, v := range list {
			if i > 0 {
				v.Prev = list[i-1].Hash
			}
			if !embeds(v.Command) || !embeds(v.Event) || !embeds(v.Facts) {
				return nil
			}
			all[i] = ledger.Step{
				RunID: s.RunID, Seq: s.Seq - len(list) + i, At: v.At, From: v.From, Trigger: v.Trigger, To: v.To,
				Facts: string(v.Facts), Command: string(v.Command), Event: string(v.Event), Prev: v.Prev, Hash: v.Hash,
			}
		}
		return all
	}, spellStep)
	if err != nil {
		r.err = unreadableGroup("steps", s.RunID+"/"+strconv.Itoa(s.Seq), err)
	}
	return all
}
