package present

import (
	"fmt"

	"pgfsm/internal/canonical"
	"pgfsm/traces/ledger"
)

// Replicas are the processes that work on a ledger. Every member is always present.
type Replicas struct {
	SchemaVersion int       `json:"schema_version"`
	Origin        string    `json:"origin"`
	Entries       int64     `json:"entries"`
	At            string    `json:"at"`         // of the last entry
	Checkpoint    int64     `json:"checkpoint"` // how many entries the last one in checkpoints.dir covers; 0: there is none
	BundlesDiffer bool      `json:"bundles_differ"`
	Replicas      []Replica `json:"replicas"`
	Others        int       `json:"runs_of_other_processes"`
	Waiting       int       `json:"runs_waiting"`
	Left          int       `json:"runs_of_no_process"`
}

// A Replica is a running process that serves agents.
type Replica struct {
	ID     string           `json:"id"`
	Since  string           `json:"since"`
	Build  string           `json:"build"`
	Bundle canonical.Digest `json:"bundle"`
	Runs   int              `json:"runs"` // under way
}

// NewReplicas returns the processes that work on a ledger whose last checkpoint covers so many entries.
func NewReplicas(p *ledger.Replicas, checkpoint int64) Replicas {
	out := Replicas{
		SchemaVersion: SchemaVersion, Origin: p.Origin, Entries: p.End.Size, At: p.End.At, Checkpoint: checkpoint, BundlesDiffer: p.Differ(),
		Replicas: []Replica{}, Others: p.Others, Waiting: p.Waiting, Left: p.Left,
	}
	for _, r := range p.Replicas {
		out.Replicas = append(out.Replicas, Replica{r.Owner, r.Since, r.Build, r.Bundle, r.Runs})
	}
	return out
}

// Rows returns what people read beside the replicas.
func (p *Replicas) Rows() []Row {
	checkpoint := ""
	if p.Checkpoint > 0 {
		checkpoint = fmt.Sprintf("covers the first %d entries", p.Checkpoint)
	}
	return filled([]Row{
		{"Log", p.Origin},
		{"Entries", fmt.Sprintf("%d, the last of %s", p.Entries, p.At)},
		{"Checkpoint", checkpoint},
		{"Held calls", fmt.Sprintf("%d, waiting for approvers or for a replica", p.Waiting)},
		{"Other runs", fmt.Sprintf("%d, under way in processes that do not serve agents", p.Others)},
		{"Orphans", fmt.Sprintf("%d, runs whose process is gone; the next sweep of a replica ends them", p.Left)},
	})
}
