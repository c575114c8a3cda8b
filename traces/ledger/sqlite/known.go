package sqlite

import (
	"context"
	"errors"

	"pgfsm/policy/canonical"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/tail"
)

// A known is a process's cache of the ledger while it holds the ledger: no other process changes the ledger then.
type known struct {
	stale   bool  // it could not be read again
	age     int64 // increases whenever the ledger may have changed other than by commits in the tail
	end     ledger.End
	decided int64  // seq of the last decision
	newest  string // a later run is cached, or does not exist
	waiting bool   // there are runs that a call can attach to
	runs    map[string]*knownRun
	blobs   map[canonical.Digest]bool
	tokens  map[string]ledger.Token
}

// A knownRun is the state of a run after all commits.
type knownRun struct {
	request ledger.Request
	step    int          // the last, or stepInFile
	last    *tail.Commit // the last commit that puts it; nil if the file has all of it
}

// Values of step that are not a step.
const (
	noStep     = -1
	stepInFile = -2 // the tail has none
)

func (k *known) reset() {
	*k = known{
		age: k.age + 1, runs: make(map[string]*knownRun), blobs: make(map[canonical.Digest]bool), tokens: make(map[string]ledger.Token),
	}
}

// know reads the state of the ledger from the file, which has all commits, and replaces the cache. The caller has mu.
func (t *tailing) know(ctx context.Context) error {
	t.known.reset()
	t.stale = true // until all of it is read
	err := t.beside(ctx, func(x *tx) (err error) {
		if t.end, err = x.End(); err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return err
		}
		for seq, err := range all(x, (*row).int64, "SELECT coalesce(max(seq), 0) FROM decisions") {
			if err != nil {
				return err
			}
			t.decided = seq
		}
		for _, table := range []string{"requests", "steps"} {
			for run, err := range all(x, (*row).text, "SELECT coalesce(max(run_id), '') FROM "+table) {
				if err != nil {
					return err
				}
				t.newest = max(t.newest, run)
			}
		}
		for n, err := range all(x, (*row).int64, "SELECT EXISTS (SELECT 1 FROM requests WHERE "+attachable+")") {
			if err != nil {
				return err
			}
			t.waiting = n != 0
		}
		return nil
	})
	t.stale = err != nil
	return err
}

// beside reads the file for an update, with a connection that is not one of the readers': readers may wait for the caller's locks, so the caller must not
// wait for readers.
func (t *tailing) beside(ctx context.Context, do func(*tx) error) error {
	c, err := t.s.reader(ctx)
	if err != nil {
		return err
	}
	defer t.s.put(c)
	x := &tx{c: c, ctx: ctx, path: t.s.path}
	defer x.end()
	if err := do(x); err != nil {
		return err
	}
	return t.s.file.same()
}

// learn adds a commit to the cache. The caller has mu.
func (t *tailing) learn(c *tail.Commit) {
	last := c.Events[len(c.Events)-1]
	t.end = ledger.End{Seq: last.Seq, At: last.At, Hash: last.Hash}
	for i := range c.Requests {
		q := &c.Requests[i].Request
		run := t.runs[q.RunID]
		if run == nil {
			if run = (&knownRun{step: stepInFile}); q.RunID > t.newest {
				run.step = noStep
			}
			t.runs[q.RunID] = run
		}
		run.request, run.last = *q, c
	}
	for i := range c.Steps {
		if run := t.runs[c.Steps[i].RunID]; run != nil {
			run.step = max(run.step, c.Steps[i].Seq)
		}
	}
	if n := len(c.Decisions); n > 0 {
		t.decided = c.Decisions[n-1].Seq
	}
	for i := range c.Blobs {
		t.addBlob(c.Blobs[i].Digest)
	}
}

// forget removes commits that the file now has from the pending ones, and removes unneeded entries from the cache.
func (t *tailing) forget(part []*tail.Commit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending, t.settles = append([]*tail.Commit(nil), t.pending[len(part):]...), 0
	for _, c := range part {
		for i := range c.Requests {
			run := t.runs[c.Requests[i].RunID]
			if run == nil || run.last != c {
				continue // there is more of it
			}
			if run.last = nil; run.request.Ended != "" || len(t.runs) > maxKnown {
				delete(t.runs, run.request.RunID)
				t.newest = max(t.newest, run.request.RunID)
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

// run returns a run's cached state. A run that is not cached is only in the file.
func (t *tailing) run(id string) (knownRun, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if run := t.runs[id]; run != nil {
		return *run, true
	}
	return knownRun{}, false
}

// lastDecision returns the seq of the last decision.
func (t *tailing) lastDecision() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.decided
}

// isNew reports whether a run that is not cached cannot be in the file, because ids are ordered by time.
func (t *tailing) isNew(id string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.held && !t.stale && id > t.newest
}

// noneWaits reports whether there is no run that a call can attach to.
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

// addBlob notes that the ledger has a blob. The caller has mu.
func (t *tailing) addBlob(d canonical.Digest) {
	if len(t.blobs) < maxKnown {
		t.blobs[d] = true
	}
}

// token returns a cached token, or reads and caches it, unless tokens may have changed meanwhile.
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
