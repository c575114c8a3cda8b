package ledger

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"pgfsm/policy/canonical"
)

// A Checkpoint is stored elsewhere, to detect later that the end of a ledger was cut off or that its past was rewritten.
type Checkpoint struct {
	Size int64            // the seq of the last event
	Head canonical.Digest // its hash; of an empty ledger, the ledger's origin
}

// TakeCheckpoint returns the current checkpoint.
func TakeCheckpoint(r Reader) (Checkpoint, error) {
	end, err := lastLink(r)
	return Checkpoint{Size: end.seq, Head: end.hash}, err
}

// String writes a checkpoint as three lines: the format, the size and the head.
func (c Checkpoint) String() string { return fmt.Sprintf("%s\n%d\n%s\n", Format, c.Size, c.Head) }

// maxCheckpointBytes bounds what is read as a checkpoint: three short lines.
const maxCheckpointBytes = 1 << 10

// ReadCheckpoint reads a checkpoint, as [ParseCheckpoint] does.
func ReadCheckpoint(from io.Reader) (Checkpoint, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxCheckpointBytes+1))
	switch {
	case err != nil:
		return Checkpoint{}, err
	case len(text) > maxCheckpointBytes:
		return Checkpoint{}, fmt.Errorf("not a checkpoint: it has more than %d bytes", maxCheckpointBytes)
	}
	return ParseCheckpoint(string(text))
}

// ParseCheckpoint reads what [Checkpoint.String] wrote, in exactly that form; only the last line end may be missing.
func ParseCheckpoint(text string) (Checkpoint, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != 3 || lines[0] != Format {
		return Checkpoint{}, fmt.Errorf("not a checkpoint: want the three lines %s, size and head", Format)
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return Checkpoint{}, fmt.Errorf("not a checkpoint: the size %q is not a number", lines[1])
	}
	head, err := canonical.ParseDigest(lines[2])
	if err != nil {
		return Checkpoint{}, fmt.Errorf("not a checkpoint: %w", err)
	}
	if size == 0 && head != Origin {
		return Checkpoint{}, errors.New("not a checkpoint: the head of an empty ledger is another one")
	}
	return Checkpoint{Size: size, Head: head}, nil
}
