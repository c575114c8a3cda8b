package main

import (
	"pgfsm/policy/canonical"
	"pgfsm/states"
	"pgfsm/traces"
)

// A record is where a run of the gateway is kept: the ledger, a file for each, or nowhere.
type record interface {
	states.Recorder
	Door(states.Door) states.Door
	Finish(states.Outcome) (canonical.Digest, error)
	Abandon()
}

// begin begins the record of a run. If that cannot be, nothing happens.
func (g *gate) begin(run *states.Run) (record, error) {
	switch {
	case g.nowhere:
		return nowhere{}, nil
	case g.ledger != nil:
		return g.ledger.Begin(traces.NewHeader(g.machine, run), run), nil
	}
	rec, err := traces.Create(g.tracesDir, traces.NewHeader(g.machine, run), now)
	if err != nil {
		return nil, err
	}
	return fileRecord{rec}, nil
}

// fileRecord is a trace of its own.
type fileRecord struct{ *traces.Recorder }

func (fileRecord) Door(d states.Door) states.Door { return d }

func (f fileRecord) Finish(o states.Outcome) (canonical.Digest, error) {
	_, head, err := f.Recorder.Finish(o)
	return head, err
}

func (f fileRecord) Abandon() { _ = f.Recorder.Abandon() } // the run has failed already, and says so

// nowhere keeps nothing: the operator said so.
type nowhere struct{ states.Nowhere }

func (nowhere) Door(d states.Door) states.Door                  { return d }
func (nowhere) Finish(states.Outcome) (canonical.Digest, error) { return "", nil }
func (nowhere) Abandon()                                        {}
