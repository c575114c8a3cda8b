package config

import (
	"fmt"
	"io/fs"
)

// writableByOthers are the permission bits of group and world to write.
const writableByOthers fs.FileMode = 0o022

// Insecure says why a file is not to be trusted as a configuration, or nil: someone else than we could have written it,
// and a configuration starts commands. A file of the system's own user (0) is trusted, for that user could replace this
// program too. The caller looks at the file; ownerUID is -1 where files have no owner, which is refused.
func Insecure(mode fs.FileMode, ownerUID, ourUID int) error {
	switch {
	case ownerUID < 0 || ownerUID != ourUID && ownerUID != 0:
		return fmt.Errorf("it belongs to user %d, and we are user %d: take it over with chown, or copy it", ownerUID, ourUID)
	case mode&writableByOthers != 0:
		return fmt.Errorf("others may write it (mode %04o): run chmod go-w on it", mode.Perm())
	}
	return nil
}
