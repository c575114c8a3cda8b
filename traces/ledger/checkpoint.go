package ledger

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// A Checkpoint is the state of the log at one size. Stored elsewhere, it shows later that the end of the log was cut off or that its past
// was rewritten.
type Checkpoint struct {
	Origin string
	Size   int64
	Root   tlog.Hash
}

// TakeCheckpoint returns the current checkpoint.
func TakeCheckpoint(r Reader) (c Checkpoint, err error) {
	if c.Origin, err = Origin(r); err == nil {
		c.Size, c.Root, err = Root(r)
	}
	return c, err
}

// String writes a checkpoint as the body of a note (https://c2sp.org/tlog-checkpoint).
func (c Checkpoint) String() string { return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, c.Root) }

// ParseCheckpoint reads the body of a note.
func ParseCheckpoint(text []byte) (c Checkpoint, err error) {
	lines := strings.SplitN(string(text), "\n", 4)
	if len(lines) < 4 {
		return c, fmt.Errorf("not a checkpoint: want the lines origin, size and root")
	}
	c.Origin = lines[0]
	if c.Size, err = strconv.ParseInt(lines[1], 10, 64); err != nil || c.Size < 0 || strconv.FormatInt(c.Size, 10) != lines[1] {
		return c, fmt.Errorf("not a checkpoint: the size %q is not a number", lines[1])
	}
	if c.Root, err = tlog.ParseHash(lines[2]); err != nil {
		return c, fmt.Errorf("not a checkpoint: %w", err)
	}
	return c, nil
}
