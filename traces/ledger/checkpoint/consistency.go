package checkpoint

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// A Consistency shows that the log of a checkpoint begins with the entries of an earlier one (RFC 6962,
// section 2.1.2).
type Consistency struct {
	Old    int64 // the size of the earlier checkpoint
	Hashes tlog.TreeProof
	Signed []byte // the later checkpoint
}

// ProveConsistency proves that a log contains the entries of an earlier checkpoint, at a later one.
func ProveConsistency(old Checkpoint, signed []byte, tree tlog.HashReader) (*Consistency, error) {
	c, err := Read(signed)
	if err != nil {
		return nil, err
	}
	if err := old.Contained(c, tree); err != nil {
		return nil, err
	}
	hashes, err := ProveGrowth(c.Size, old.Size, tree)
	return &Consistency{old.Size, hashes, signed}, err
}

// ProveGrowth proves that a tree of some size contains its first entries. No proof is needed for none of
// them.
func ProveGrowth(size, old int64, tree tlog.HashReader) (tlog.TreeProof, error) {
	if old == 0 {
		return nil, nil
	}
	return tlog.ProveTree(size, old, tree)
}

// CheckGrowth returns [ErrInconsistent] unless the hashes show that a later checkpoint contains the entries of
// an earlier one of the same log.
func CheckGrowth(old, now Checkpoint, hashes tlog.TreeProof) error {
	switch {
	case old.Origin != now.Origin:
		return ruleConsistency.Broken("%w: the checkpoints are of the logs %s and %s", ErrInconsistent, old.Origin, now.Origin)
	case old.Size > now.Size:
		return ruleConsistency.Broken("%w: the log has %d entries, and had %d", ErrInconsistent, now.Size, old.Size)
	case old.Size == 0 && len(hashes) == 0:
		return nil
	case tlog.CheckTree(hashes, now.Size, now.Root, old.Size, old.Root) != nil:
		return ruleConsistency.Broken("%w: nothing shows that its first %d entries are those of the earlier checkpoint", ErrInconsistent, old.Size)
	}
	return nil
}

// Marshal writes the proof as the body of a request add-checkpoint (c2sp.org/tlog-witness).
func (c *Consistency) Marshal() []byte {
	text := fmt.Appendf(nil, "old %d\n", c.Old)
	for _, hash := range c.Hashes {
		text = fmt.Appendf(text, "%s\n", hash)
	}
	return append(append(text, '\n'), c.Signed...)
}

// ParseConsistency reads a proof in exactly the form that [Consistency.Marshal] writes. It verifies nothing.
func ParseConsistency(text []byte) (*Consistency, error) {
	head, signed, _ := bytes.Cut(text, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	c := &Consistency{Signed: signed}
	size, _ := strings.CutPrefix(lines[0], "old ")
	var err error
	if c.Old, err = strconv.ParseInt(size, 10, 64); err != nil || c.Old < 0 {
		return nil, ruleConsistency.Wrap(errors.New("not a proof of consistency: its first line is not old and a number of entries"))
	}
	for _, line := range lines[1:] {
		hash, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(hash) != tlog.HashSize {
			return nil, ruleConsistency.Broken("not a proof of consistency: %q is no hash", line)
		}
		c.Hashes = append(c.Hashes, tlog.Hash(hash))
	}
	if !bytes.Equal(c.Marshal(), text) {
		return nil, ruleConsistency.Wrap(errors.New("not a proof of consistency: it is not in its one form"))
	}
	return c, nil
}

// Verify verifies both checkpoints, and that the later one contains the entries of the earlier one.
func (c *Consistency) Verify(old []byte, keys Keys) (earlier, later *Opened, err error) {
	if earlier, err = Open(old, Keys{Log: keys.Log}); err != nil {
		return nil, nil, err
	}
	if later, err = Open(c.Signed, keys); err != nil {
		return nil, nil, err
	}
	if c.Old != earlier.Size {
		return nil, nil, ruleConsistency.Broken("the proof is of %d entries, and the earlier checkpoint has %d", c.Old, earlier.Size)
	}
	return earlier, later, CheckGrowth(earlier.Checkpoint, later.Checkpoint, c.Hashes)
}
