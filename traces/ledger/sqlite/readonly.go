package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"time"
)

// OpenReadOnly opens a ledger for reading, for example for an auditor. It neither creates nor
// migrates anything. The file and its folder may be read-only.
func OpenReadOnly(path string) (*Store, error) {
	path, err := resolvePath(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("ledger %s: %w: it is not a regular file", path, ErrUnsafeFile)
	}

	file, err := identifyFile(path, os.Stat)
	if err != nil {
		return nil, err
	}

	s := newStore(path, file, BusyTimeout)
	s.readOnly = true
	settings := url.Values{"mode": {"ro"}}
	err = s.openCurrent(settings)
	if cannotShare(err) && noLog(path) {
		// In WAL mode, readers also write locks beside the file. If this reader cannot do so and
		// there is no log, the file is complete.
		if s.frozen, err = freeze(path); err != nil {
			return nil, err
		}
		settings.Set("immutable", "1")
		err = s.openCurrent(settings)
	}

	if err != nil {
		return nil, err
	}

	return s, nil
}

// noLog reports whether there is no write-ahead log, or an empty one.
func noLog(path string) bool {
	info, err := os.Stat(path + "-wal")
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}

// openCurrent opens the file for readers, and rejects a file that is not a ledger of today's
// schema.
func (s *Store) openCurrent(settings url.Values) error {
	if err := s.openReaders(settings); err != nil {
		return err
	}
	if err := s.checkSchema(); err != nil {
		return errors.Join(explainError(s.path, err), s.readers.Close())
	}
	return nil
}

func (s *Store) checkSchema() error {
	if err := checkApplication(s.readers, s.path); err != nil {
		return err
	}
	blank, err := isEmpty(s.readers)
	if err != nil {
		return err
	}
	if blank {
		return fmt.Errorf("ledger %s: %w: it is empty", s.path, ErrNotLedger)
	}
	return checkVersion(s.readers, s.path)
}

// A frozen file is read without locks. If another process begins to write it meanwhile, a read may
// mix two states.
type frozen struct {
	path    string
	size    int64
	changed time.Time
}

func freeze(path string) (*frozen, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return &frozen{path, info.Size(), info.ModTime()}, nil
}

// checkUnchanged returns an error if the file changed. A nil frozen means that the file is read
// with locks.
func (f *frozen) checkUnchanged() error {
	if f == nil {
		return nil
	}
	current, err := freeze(f.path)
	if err != nil {
		return err
	}
	if *current != *f || !noLog(f.path) {
		return fmt.Errorf("ledger %s was written while it was read without locks: try again, or read a copy", f.path)
	}
	return nil
}
