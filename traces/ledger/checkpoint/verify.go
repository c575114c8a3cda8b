package checkpoint

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/states"
	"pgfsm/traces"
)

// Verified holds the facts that a proof has shown.
type Verified struct {
	Opened
	Run     string
	Index   int64 // index of the run's last entry
	Entries int   // number of the run's entries, up to that one
	Ended   bool  // false: the run is held, and the proof covers the steps of the trace but not its outcome
}

// Verify verifies that a log contains a run with this trace. It shows that
//   - a trusted key of the log signed the checkpoint, and every trusted witness cosigned it;
//   - the log contains, at the checkpoint, the entries of the run in p, from its first on, in this order and with none missing between them;
//   - one of these entries records the end of this trace: its head, which covers every value of it. For a run that is held, the entry
//     has the hash of the trace's last step, which covers every value but the outcome.
//
// It does not show that the run has no later entry, and, without a witness, that the log has no
// second history.
func (p *Proof) Verify(t *traces.Trace, keys Keys) (*Verified, error) {
	o, err := Open(p.Signed, keys)
	if err != nil {
		return nil, err
	}
	recorded, err := p.checkInclusion(o.Checkpoint)
	if err != nil {
		return nil, err
	}

	v := &Verified{
		Opened:  *o,
		Run:     recorded.run,
		Index:   p.Index,
		Entries: len(p.Entries),
		Ended:   recorded.head != "",
	}

	// The end of a run covers its head. Until then, the hold covers the last step.
	switch last := t.Steps[len(t.Steps)-1].Hash; {
	case t.Header.RunID != recorded.run:
		return nil, ruleProofRun.Broken("the proof is of the run %s, and the trace is of the run %s", recorded.run,
			t.Header.RunID)
	case v.Ended && t.Head != recorded.head:
		return nil, ruleProofRecorded.Broken("the log has the head %s, and the trace has the head %s", recorded.head, t.Head)
	case v.Ended:
		return v, nil
	case t.Outcome.State != string(states.Pending):
		return nil, ruleProofRecorded.Broken("the log has the run as held, and the trace ends at %s", t.Outcome.State)
	case last != recorded.last:
		return nil, ruleProofRecorded.Broken("the log has %s as the last step of the held run, and the trace has %s", recorded.last,
			last)
	}

	return v, nil
}

// recordedEnd holds the end of a trace according to the entries of a run.
type recordedEnd struct {
	run  string
	head canonical.Digest // head of the trace; empty if the run has not ended
	last canonical.Digest // hash of the last step when the run was held; empty if it never was
}

// checkInclusion verifies that the last entry is in the tree of a checkpoint and that the entries
// are chained from the run's first on.
func (p *Proof) checkInclusion(c Checkpoint) (*recordedEnd, error) {
	if len(p.Entries) == 0 {
		return nil, ruleInclusion.Broken("the proof has no entries")
	}
	if err := tlog.CheckRecord(p.Hashes, c.Size, c.Root, p.Index,
		tlog.RecordHash(p.Entries[len(p.Entries)-1].Header)); err != nil {
		return nil, ruleInclusion.Broken("the run's last entry is not entry %d of the log: %w", p.Index, err)
	}

	recorded := new(recordedEnd)
	prev := ""

	for i := range p.Entries {
		e := &p.Entries[i]
		if err := recorded.addEntry(e, i, prev); err != nil {
			return nil, fmt.Errorf("entry %d of the run: %w", i, err)
		}
		prev = tlog.RecordHash(e.Header).String()
	}

	if recorded.head == "" && recorded.last == "" {
		return nil, ruleProofRecorded.Broken("the entries record neither that the run ended nor that it is held")
	}

	return recorded, nil
}

// addEntry checks that an entry is the run's entry with this number and follows the entry with the
// leaf hash prev, and stores what it records.
func (end *recordedEnd) addEntry(e *Entry, number int, prev string) error {
	h, b, err := e.parse()
	if err != nil {
		return err
	}
	if number == 0 {
		end.run = b.Run
	}

	switch {
	case b.Run == "" || b.Run != end.run:
		return ruleProofRun.Broken("it is of the run %q", b.Run)
	case h.N != number:
		return ruleProofRun.Broken("it is the run's entry number %d", h.N)
	case h.Prev != prev:
		return ruleProofRun.Broken("it was not written after the entry before it")
	}

	return end.addEvents(h, b)
}

// addEvents stores what the events of an entry record about the trace.
func (end *recordedEnd) addEvents(h *Header, b *Body) error {
	var events []struct {
		Type string           `json:"type"`
		Head canonical.Digest `json:"head"`
		Last canonical.Digest `json:"last"`
		Rest jsontext.Value   `json:",embed"`
	}

	if err := json.Unmarshal(b.Events, &events); err != nil {
		return ruleProofEntries.Broken("its events: %w", canonical.Explain(err))
	}
	if len(events) != len(h.Types) {
		return ruleProofEntries.Broken("it has %d events, and its header names %d", len(events), len(h.Types))
	}

	for i, event := range events {
		if event.Type != h.Types[i] {
			return ruleProofEntries.Broken("event %d is a %s, and its header says %s", i, event.Type, h.Types[i])
		}
		switch event.Type {
		case "approval.requested":
			end.last = event.Last
		case "run.ended":
			if end.head != "" || event.Head == "" {
				return ruleProofRecorded.Broken("the run's end is recorded twice, or without a head")
			}
			end.head = event.Head
		}
	}

	return nil
}
