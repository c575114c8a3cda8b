package safefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/gofrs/flock"
)

// CheckReplaceable returns why a result must not replace a file: the file is one of the inputs, or
// no regular file, or not a result. A result begins with start, without its white space. The error
// continues a sentence that begins with the path.
func CheckReplaceable(path, start string, inputs ...string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	for _, input := range inputs {
		if other, err := os.Stat(input); err == nil && os.SameFile(info, other) {
			return errors.New("is one of the files that are read")
		}
	}

	if !info.Mode().IsRegular() {
		return errors.New("is not a regular file")
	}

	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	begin, err := io.ReadAll(io.LimitReader(f, 2*int64(len(start))))
	if err != nil {
		return err
	}
	if !strings.HasPrefix(strings.Join(strings.Fields(string(begin)), ""), start) {
		return errors.New("is there and is no result of an evaluation")
	}
	return nil
}

// IsCurrent reports whether path still leads to the locked file: its owner may have finished and
// removed it.
func IsCurrent(lock *flock.Flock, path string) bool {
	locked, err := lock.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(locked, named)
}
