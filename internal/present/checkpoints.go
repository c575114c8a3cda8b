package present

import (
	"cmp"
	"errors"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/safefile"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
)

// maxCheckpoints bounds the list of checkpoints.
const maxCheckpoints = 10

// Checkpoints holds the newest checkpoints in a folder, newest first. Every member is always
// present.
type Checkpoints struct {
	SchemaVersion int          `json:"schema_version"`
	Checkpoints   []Checkpoint `json:"checkpoints"`
	More          int          `json:"more"` // number of older checkpoints in the folder
}

// A Checkpoint is a signed state of the log.
type Checkpoint struct {
	Size      int64     `json:"size"`      // number of covered entries
	Root      tlog.Hash `json:"root"`      // root of the tree over these entries
	Contained bool      `json:"contained"` // the log has these entries
	// The fault; empty if the log has the entries and one of its keys has signed.
	Problem  string   `json:"problem"`
	SignedBy []string `json:"signed_by"` // the keys of the log whose signatures are valid
	// Keys of the other signatures, which are not verified: witnesses' keys, for example.
	Others []string `json:"others"`
	Text   string   `json:"text"` // the signed checkpoint
}

// ReadCheckpoints reads the checkpoints in a folder, and compares them with the log.
func ReadCheckpoints(r ledger.Reader, dir string) (c Checkpoints, err error) {
	c = Checkpoints{SchemaVersion: SchemaVersion, Checkpoints: []Checkpoint{}}
	files, err := checkpoint.Files(dir)
	if err != nil || len(files) == 0 {
		return c, err
	}

	c.More = max(0, len(files)-maxCheckpoints)
	logKeys, err := ledger.Keys(r)
	if err != nil {
		return c, err
	}

	var keys checkpoint.Keys
	for _, k := range logKeys {
		v, err := checkpoint.LogVerifier(k.Key)
		if err != nil {
			return c, err
		}
		keys.Log = append(keys.Log, v)
	}

	for _, path := range slices.Backward(files[c.More:]) {
		one, err := readCheckpoint(r, path, keys)
		if err != nil {
			return c, err
		}
		c.Checkpoints = append(c.Checkpoints, one)
	}

	return c, nil
}

func readCheckpoint(r ledger.Reader, path string, keys checkpoint.Keys) (c Checkpoint, err error) {
	c = Checkpoint{SignedBy: []string{}, Others: []string{}}
	signed, _, err := safefile.Read(path)
	if err != nil {
		return c, err
	}

	c.Text = string(signed)
	state, err := ledger.Contains(r, signed)
	if errors.Is(err, ledger.ErrUnavailable) {
		return c, err
	}
	c.Size, c.Root, c.Contained = state.Size, state.Root, err == nil
	if !c.Contained {
		c.Problem = err.Error()
	}

	opened, err := checkpoint.Open(signed, keys)
	if err != nil {
		c.Problem = cmp.Or(c.Problem, "no key of the log has signed it")
	} else {
		c.SignedBy = opened.Signed
	}

	for _, name := range checkpoint.Signers(signed) {
		if !slices.Contains(c.SignedBy, name) {
			c.Others = append(c.Others, name)
		}
	}

	return c, nil
}
