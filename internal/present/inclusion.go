package present

import (
	"pgfsm/traces/ledger"
)

// An Inclusion is where the entries of a run are in the log. Every member is always present. Hashes are base64.
type Inclusion struct {
	SchemaVersion int       `json:"schema_version"`
	Run           string    `json:"run"`
	Origin        string    `json:"origin"` // the name of the log
	Size          int64     `json:"size"`   // of the tree: how many entries the log has
	Root          string    `json:"root"`   // of the tree
	Index         int64     `json:"index"`  // of the run's last entry
	Entries       []InEntry `json:"entries"`
	Path          []string  `json:"path"` // the inclusion proof of the last entry (RFC 6962), from its leaf to the root
}

// An InEntry is one entry of the run.
type InEntry struct {
	Index int64  `json:"index"`
	Hash  string `json:"hash"` // of its leaf
}

// NewInclusion returns the inclusion of a run.
func NewInclusion(run string, in *ledger.Inclusion) Inclusion {
	d := Inclusion{
		SchemaVersion: SchemaVersion, Run: run, Origin: in.Origin, Size: in.Size, Root: in.Root.String(), Entries: []InEntry{}, Path: []string{},
	}
	for _, e := range in.Entries {
		d.Entries, d.Index = append(d.Entries, InEntry{e.Index, e.Hash.String()}), e.Index
	}
	for _, hash := range in.Path {
		d.Path = append(d.Path, hash.String())
	}
	return d
}
