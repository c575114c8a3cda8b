package sqlite

import (
	"context"
	"errors"

	"pgfsm/policy/canonical"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/tail"
)

// A known is what a process knows of the ledger while it holds it: nobody else changes anything then.
type known struct {
	stale   bool  // it could not be read anew
	age     int64 // grows whenever what is known may have changed otherwise than by what is kept in the tail
	end     ledger.End
	newest  string // run of those in the file
	waiting bool   // there are runs that a call could attach to
	runs    map[string]*knownRun
	blobs   map[canonical.Digest]bool
	tokens  map[string]ledger.Token
}

// A knownRun is how a run stands with all that was committed.
type knownRun struct {
	request ledger.Request
	step    int  // the last
	pending bool // not all of it stands in the file
}

func (k *known) reset() {
	*k = known{
		age: k.age + 1, runs: make(map[string]*knownRun), blobs: make(map[canonical.Digest]bool), tokens: make(map[string]ledger.Token),
	}
}

// know reads how the ledger stands in the file, where all of it stands, and forgets what was known before. The caller has mu.
func (t *tailing) know(ctx context.Context) error {
	t.known.reset()
	return t.s.look(ctx, func(x *tx) (err error) {
		defer x.end()
		if t.end, err = x.End(); err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return err
		}
		for run, err := range all(x, (*row).text, "SELECT coalesce(max(run_id), '') FROM requests") {
			if err != nil {
				return err
			}
			t.newest = run
		}
		for n, err := range all(x, (*row).int64, "SELECT EXISTS (SELECT 1 FROM requests WHERE "+attachable+")") {
			if err != nil {
				return err
			}
			t.waiting = n != 0
		}
		return nil
	})
}

// learn adds what was committed. The caller has mu.
func (t *tailing) learn(c *tail.Commit) {
	last := c.Events[len(c.Events)-1]
	t.end = ledger.End{Seq: last.Seq, At: last.At, Hash: last.Hash}
	for i := range c.Requests {
		q := &c.Requests[i].Request
		run := t.runs[q.RunID]
		if run == nil {
			run = &knownRun{step: -1}
			t.runs[q.RunID] = run
		}
		run.request, run.pending = *q, true
	}
	for i := range c.Steps {
		if run := t.runs[c.Steps[i].RunID]; run != nil {
			run.step = max(run.step, c.Steps[i].Seq)
		}
	}
	for i := range c.Blobs {
		t.addBlob(c.Blobs[i].Digest)
	}
}

// forget takes commits that stand in the file from those that do not, and what nobody will ask for from what is known.
func (t *tailing) forget(part []*tail.Commit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending, t.settles = append([]*tail.Commit(nil), t.pending[len(part):]...), 0
	for _, c := range part {
		for i := range c.Requests {
			run := t.runs[c.Requests[i].RunID]
			if run == nil || run.request.Seq != c.Requests[i].Seq {
				continue // there is more of it
			}
			if run.pending = false; run.request.Ended != "" || len(t.runs) > maxKnown {
				delete(t.runs, run.request.RunID)
			}
		}
	}
}

// reached returns the end of the chain, if this process holds the ledger.
func (t *tailing) reached() (end ledger.End, held bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.end, t.held && !t.stale
}

// run returns how a run stands. One that is not known stands in the file alone.
func (t *tailing) run(id string) (knownRun, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if run := t.runs[id]; run != nil {
		return *run, true
	}
	return knownRun{}, false
}

// isNew reports whether a run that is not known cannot be in the file: ids are ordered by time.
func (t *tailing) isNew(id string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.held && !t.stale && id > t.newest
}

// noneWaits reports whether there is no run at all that a call could attach to.
func (t *tailing) noneWaits() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.held && !t.stale && !t.waiting
}

func (t *tailing) hasBlob(d canonical.Digest) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.blobs[d]
}

// addBlob notes that a blob is there. The caller has mu.
func (t *tailing) addBlob(d canonical.Digest) {
	if len(t.blobs) < maxKnown {
		t.blobs[d] = true
	}
}

// token returns a token as it is known, or asks for it and remembers it, unless tokens may have changed meanwhile.
func (t *tailing) token(id string, ask func() (ledger.Token, error)) (ledger.Token, error) {
	t.mu.RLock()
	k, there := t.tokens[id]
	held, age := t.held && !t.stale, t.age
	t.mu.RUnlock()
	if there && held {
		return k, nil
	}
	k, err := ask()
	if err != nil {
		return k, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if held && t.held && t.age == age && len(t.tokens) < maxKnown {
		t.tokens[id] = k
	}
	return k, nil
}
