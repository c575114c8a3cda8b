package sqlite

import (
	"context"
	"errors"
	"fmt"

	"modernc.org/sqlite"

	"pgfsm/traces/ledger"
)

// Errors about a file. The errors that wrap these name the file and a remedy.
var (
	ErrFull     = error(&fileError{"the disk is full", unavailable})
	ErrReadOnly = error(&fileError{"the ledger cannot be written",
		[]error{ledger.ErrUnavailable, ledger.ErrReadOnly}})
	ErrLocked     = error(&fileError{"the ledger is locked by another process", unavailable})
	ErrNotLedger  = ledger.ErrMalformed
	ErrNewer      = error(&fileError{"the ledger was written by a newer version of pgfsm", otherSchema})
	ErrOlder      = error(&fileError{"the ledger was written by an older version of pgfsm", otherSchema})
	ErrUnsafeFile = errors.New("the ledger's file cannot be trusted")
	ErrMoved      = errors.New("the ledger's file was moved or replaced")
)

var unavailable, otherSchema = []error{ledger.ErrUnavailable}, []error{ledger.ErrSchema}

// A wrong error also matches some of the errors that every store has.
type fileError struct {
	text string
	of   []error
}

func (w *fileError) Error() string   { return w.text }
func (w *fileError) Unwrap() []error { return w.of }

// afterRestoring is the warning for operators who restore a backup.
const afterRestoring = "runs that the backup holds as approved can be called again, also if they were called since; deny them or let them expire first"

// Primary result codes of SQLite, https://www.sqlite.org/rescode.html.
const (
	codeBusy     = 5
	codeReadOnly = 8
	codeIOErr    = 10
	codeCorrupt  = 11
	codeFull     = 13
	codeCantOpen = 14
	codeProtocol = 15
	codeNotADB   = 26

	primaryCode = 0xff // the other bits give details
)

// resultCode returns the primary result code of an error, or 0.
func resultCode(err error) int {
	var coded *sqlite.Error
	if !errors.As(err, &coded) {
		return 0
	}
	return coded.Code() & primaryCode
}

// explainError explains an error of SQLite: its meaning for the ledger, and a remedy.
func explainError(path string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}

	switch resultCode(err) {
	case 0:
		return err
	case codeFull:
		return fmt.Errorf("ledger %s: %w: make room, or `pgfsm ledger prune`, and try again (%w)", path, ErrFull, err)
	case codeBusy:
		return fmt.Errorf("ledger %s: %w, and waiting did not help: end the program that holds it (%w)", path,
			ErrLocked, err)
	case codeReadOnly:
		return fmt.Errorf("ledger %s: %w: this user needs to write the file and its folder (%w)", path, ErrReadOnly,
			err)
	case codeNotADB:
		return fmt.Errorf("ledger %s: %w: name another one, or restore it from a backup: %s (%w)", path, ErrNotLedger,
			afterRestoring, err)
	case codeCorrupt:
		return fmt.Errorf("ledger %s: %w: it is damaged; keep it, and restore a backup: %s (%w)", path, ErrNotLedger,
			afterRestoring, err)
	case codeCantOpen:
		return fmt.Errorf("ledger %s cannot be opened: this user needs to read the file and to write its folder; to read a copy, "+
			"copy the file and its -wal together into a folder of your own (%w)", path, err)
	case codeIOErr, codeProtocol:
		return fmt.Errorf("ledger %s cannot be read or written: is the disk full or broken, or the folder on a network? "+
			"A ledger needs a local disk (%w)", path, err)
	}
	return fmt.Errorf("ledger %s: %w", path, err)
}

// cannotShare reports whether a file could not be opened because this process cannot write its
// locks.
func cannotShare(err error) bool {
	code := resultCode(err)
	return code == codeReadOnly || code == codeCantOpen
}
