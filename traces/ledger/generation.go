package ledger

import (
	"errors"
	"fmt"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/traces"
)

// EventList is the version of the list of events. A build that does not know an event cannot verify
// the log.
const EventList = 1

// ErrNewer means that a later version of pgfsm wrote a part of the log, which this one cannot verify.
var ErrNewer = errors.New("a later version of pgfsm wrote events that this one does not know: verify the ledger with that version")

// A generation is what all runs of a process with one bundle have in common. An entry of its own
// records it, and the runs refer to that entry.
type generation struct {
	Build   string           `json:"build"` // the version of the program
	Bundle  canonical.Digest `json:"bundle"`
	Env     string           `json:"env"`     // of the bundle
	Events  int              `json:"events"`  // EventList of the program
	Format  string           `json:"format"`  // the format of the traces
	Machine canonical.Digest `json:"machine"` // the digest of the machine's table
	Settings
}

func (g *generation) generationOf() *generation { return g }

// A generationKey names a generation within a process.
type generationKey struct{ bundle, machine canonical.Digest }

func (g *generation) key() generationKey { return generationKey{g.Bundle, g.Machine} }

// newGeneration returns the generation of this process with a bundle and settings.
func (l *Ledger) newGeneration(bundle *policy.Bundle, machine canonical.Digest, settings Settings) generation {
	return generation{
		Build:   l.build,
		Bundle:  bundle.Digest(),
		Env:     bundle.Content().Env,
		Events:  EventList,
		Format:  traces.Format,
		Machine: machine,

		Settings: settings,
	}
}

// findGeneration returns the index of the entry with this process's generation. If there is none,
// it adds one: the process is a command, not a gateway.
func (b *batch) findGeneration(bundle *policy.Bundle, machine canonical.Digest) (int64, *generation, error) {
	g := b.ledger.newGeneration(bundle, machine, b.ledger.settings)
	if index, ok := b.ledger.generations[g.key()]; ok && index < b.size {
		return index, &g, nil
	}
	if index, ok := b.generations[g.key()]; ok {
		return index, &g, nil
	}
	index, err := b.addGeneration(&commandStarted{generation: g}, bundle)
	return index, &g, err
}

// addGeneration adds the entry of a generation, with its bundle.
func (b *batch) addGeneration(p payload, bundle *policy.Bundle) (index int64, err error) {
	b.wrote = true
	if err := b.PutBlob(Blob{Digest: bundle.Digest(), Kind: BlobBundle, Text: bundle.Text()}); err != nil {
		return 0, err
	}
	if err := b.addEvent(nil, "", b.ledger.owner, p); err != nil {
		return 0, err
	}
	index = b.entry.Index
	if b.generations == nil {
		b.generations = make(map[generationKey]int64)
	}
	b.generations[p.(interface{ generationOf() *generation }).generationOf().key()] = index
	return index, b.flushEntry()
}

// generations reads generations by the indexes of their entries.
type generations map[int64]*generationEntry

// A generationEntry is a recorded generation.
type generationEntry struct {
	generation
	by string // the id of the process
}

// find returns the generation that an entry has.
func (g generations) find(r Reader, index int64) (*generationEntry, error) {
	if found := g[index]; found != nil {
		return found, nil
	}
	for e, err := range r.Entries(index) {
		if err != nil {
			return nil, err
		}
		if e.Index != index {
			break
		}
		single, err := e.singleEvent()
		if err != nil {
			return nil, err
		}
		return g.add(&single)
	}
	return nil, fmt.Errorf("entry %d: %w", index, ErrNotFound)
}

// settingsOf returns the settings with which a run began.
func settingsOf(r Reader, q *RunRow) (*Settings, error) {
	first, err := q.readFirst(r)
	if err != nil {
		return nil, err
	}
	found, err := make(generations).find(r, first.Gen)
	if err != nil {
		return nil, err
	}
	return &found.Settings, nil
}

// add adds a decoded event, which must have a generation.
func (g generations) add(e *decodedEvent) (*generationEntry, error) {
	p, ok := e.payload.(interface{ generationOf() *generation })
	if !ok {
		return nil, ruleGeneration.Broken("entry %d: %w: a run refers to it, and it is a %s", e.event.Index, ErrChanged, e.event.Type)
	}
	found := &generationEntry{*p.generationOf(), e.event.By}
	g[e.event.Index] = found
	return found, nil
}

// resolve sets the generation of an event that begins a run. It does nothing for other events.
func (g generations) resolve(r Reader, e *decodedEvent) error {
	first, ok := e.payload.(*requestCreated)
	if !ok {
		return nil
	}
	found, err := g.find(r, first.Gen)
	switch {
	case errors.Is(err, ErrNotFound):
		return ruleGeneration.Wrap(err)
	case err != nil:
		return err
	case first.Gen >= e.event.Index || found.by != e.event.By:
		return ruleGeneration.Broken("%w: entry %d is not of the process that began the run", ErrChanged, first.Gen)
	}
	first.generation = &found.generation
	return nil
}
