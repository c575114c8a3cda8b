package ledger

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"pgfsm/internal/canonical"
)

// documentVersion is the schema_version of the documents of this package.
const documentVersion = 1

// A Replica is a running process that serves agents on a ledger.
type Replica struct {
	Owner  string           `json:"id"` // the owner's id, which its runs carry
	Since  string           `json:"since"`
	Build  string           `json:"build"`
	Bundle canonical.Digest `json:"bundle"`
	Runs   int              `json:"runs"` // how many runs are under way
}

// Replicas lists the processes that serve agents on a ledger, and counts the runs that have not
// ended. Every member is always present.
type Replicas struct {
	SchemaVersion int    `json:"schema_version"`
	Origin        string `json:"origin"`
	Entries       int64  `json:"entries"`
	At            string `json:"at"` // when the last entry was added
	// How many entries the last checkpoint in checkpoints.dir covers; 0: there is none.
	Checkpoint    int64     `json:"checkpoint"`
	BundlesDiffer bool      `json:"bundles_differ"`
	Replicas      []Replica `json:"replicas"` // ordered by start, the oldest first
	// Runs under way in processes that do not serve agents.
	Others int `json:"runs_of_other_processes"`
	// Runs that wait for approvers, or approved runs that wait for a replica.
	Waiting int `json:"runs_waiting"`
	// Runs without a process; the next sweep of a replica ends them.
	Left int `json:"runs_of_no_process"`
}

// ReadReplicas returns the processes that work on the ledger of a store at a time.
func ReadReplicas(ctx context.Context, s Store, now time.Time) (report Replicas, err error) {
	err = s.View(ctx, func(r Reader) (err error) {
		end, err := r.End()
		if err != nil {
			return err
		}
		report = Replicas{SchemaVersion: documentVersion, Entries: end.Size, At: end.At}
		if report.Origin, err = Origin(r); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		var replicas roster
		if report.Replicas, err = replicas.liveReplicas(ctx, r, s.OwnerGone); err != nil {
			return err
		}
		for i := range report.Replicas {
			report.BundlesDiffer = report.BundlesDiffer || report.Replicas[i].Bundle != report.Replicas[0].Bundle
		}
		return report.countRuns(ctx, r, s, max(now.UTC().Format(timeForm), report.At))
	})
	return report, err
}

// Replicas is [ReadReplicas] for this ledger.
func (l *Ledger) Replicas(ctx context.Context) (Replicas, error) {
	p, err := ReadReplicas(ctx, l.store, l.clock())
	return p, l.reportFatal(err)
}

// countRuns counts the runs that have not ended.
func (p *Replicas) countRuns(ctx context.Context, r Reader, s Store, now string) error {
	byOwner := make(map[string]*Replica)
	for i := range p.Replicas {
		byOwner[p.Replicas[i].Owner] = &p.Replicas[i]
	}

	// The other runs belong to live processes, to none, or wait for people.
	goneOwners := map[string]bool{"": true} // by owner, because many runs have the same one
	for q, err := range r.Runs(Filter{Open: true}) {
		if err != nil {
			return err
		}
		if replica := byOwner[q.Owner]; replica != nil {
			replica.Runs++
			continue
		}
		if _, seen := goneOwners[q.Owner]; !seen {
			if goneOwners[q.Owner], err = s.OwnerGone(ctx, q.Owner); err != nil {
				return err
			}
		}
		switch {
		case !goneOwners[q.Owner]:
			p.Others++
		case checkEndable(&q, now) == nil:
			p.Left++
		default:
			p.Waiting++
		}
	}

	return nil
}

// Activations returns the last activation of each bundle, the newest first, at most limit. The
// first one has the active bundle.
func (l *Ledger) Activations(r Reader, limit int) ([]Activation, error) {
	o := &l.replicas
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.readActivations(r)
	newest := slices.Clone(o.bundles[max(0, len(o.bundles)-limit):])
	slices.Reverse(newest)
	return newest, err
}

// A roster caches the replicas, because a ledger has an entry for each start and each reload. The
// zero roster has read no entry.
type roster struct {
	mu   sync.Mutex
	read int64 // index after the last activation that was read
	live []Replica

	bundles []Activation // the last activation of each bundle, oldest first
}

// liveReplicas returns the replicas whose process is not gone.
func (o *roster) liveReplicas(ctx context.Context, r Reader,
	ownerGone func(context.Context, string) (bool, error)) (live []Replica, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.readActivations(r); err != nil {
		return nil, err
	}
	for _, replica := range o.live {
		isGone, err := ownerGone(ctx, replica.Owner)
		if err != nil {
			return nil, err
		}
		if !isGone {
			live = append(live, replica)
		}
	}
	o.live = live // a replica that is gone never comes back
	return slices.Clone(live), nil
}

// readActivations reads the entries that were not read yet.
func (o *roster) readActivations(r Reader) error {
	last, err := r.LastOfType(BundleActivated)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil || last.Index < o.read {
		return err
	}

	for e, err := range r.EntriesOfType(BundleActivated, o.read) {
		if err != nil {
			return err
		}
		a, err := e.decodeActivation()
		if err != nil {
			return err
		}

		o.read = e.Index + 1
		// The replica has reloaded.
		if i := slices.IndexFunc(o.live, func(r Replica) bool { return r.Owner == a.By }); i >= 0 {
			o.live[i].Bundle = a.Bundle
		} else if a.Cause == CauseStart {
			o.live = append(o.live, Replica{
				Owner:  a.By,
				Since:  a.At,
				Build:  a.Build,
				Bundle: a.Bundle,
			})
		}

		o.bundles = append(slices.DeleteFunc(o.bundles, func(b Activation) bool { return b.Bundle == a.Bundle }), a)
	}

	return nil
}

// OtherBundle reports whether a replica of the ledger has a bundle other than own.
func (l *Ledger) OtherBundle(ctx context.Context, own canonical.Digest) (other bool, err error) {
	err = l.View(ctx, func(r Reader) error {
		live, err := l.replicas.liveReplicas(ctx, r, l.store.OwnerGone)
		other = false
		for i := range live {
			other = other || live[i].Bundle != own
		}
		return err
	})
	return other, err
}
