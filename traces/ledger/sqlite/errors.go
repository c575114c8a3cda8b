package sqlite

import (
	"context"
	"errors"
	"fmt"

	"modernc.org/sqlite"

	"pgfsm/traces/ledger"
)

// What can be wrong with a file. The errors that wrap these name the file and what to do.
var (
	ErrFull       = error(unavailable("the disk is full"))
	ErrReadOnly   = error(unavailable("the ledger cannot be written"))
	ErrLocked     = error(unavailable("the ledger is locked by another process"))
	ErrNotLedger  = ledger.ErrMalformed
	ErrNewer      = errors.New("the ledger was written by a newer version of pgfsm")
	ErrOlder      = errors.New("the ledger was written by an older version of pgfsm")
	ErrUnsafeFile = errors.New("the ledger's file cannot be trusted")
	ErrClosed     = errors.New("the ledger is closed")
	ErrMoved      = errors.New("the ledger's file was moved or replaced")
	ErrUnrecorded = errors.New("a row was not recorded")
)

// An unavailable error is also a [ledger.ErrUnavailable].
type unavailable string

func (u unavailable) Error() string        { return string(u) }
func (u unavailable) Is(target error) bool { return target == ledger.ErrUnavailable }

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

	primaryCode = 0xff // the rest says more of the same
)

// primary returns the primary result code of an error, or 0.
func primary(err error) int {
	var coded *sqlite.Error
	if !errors.As(err, &coded) {
		return 0
	}
	return coded.Code() & primaryCode
}

// explained puts into words what an error of SQLite means for the ledger, and what can be done.
func explained(path string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	switch primary(err) {
	case 0:
		return err
	case codeFull:
		return fmt.Errorf("ledger %s: %w: make room, or `pgfsm ledger prune`, and try again (%w)", path, ErrFull, err)
	case codeBusy:
		return fmt.Errorf("ledger %s: %w, and waiting did not help: end the program that holds it (%w)", path, ErrLocked, err)
	case codeReadOnly:
		return fmt.Errorf("ledger %s: %w: this user needs to write the file and its folder (%w)", path, ErrReadOnly, err)
	case codeNotADB:
		return fmt.Errorf("ledger %s: %w: name another one, or restore it from a backup: %s (%w)", path, ErrNotLedger, afterRestoring, err)
	case codeCorrupt:
		return fmt.Errorf("ledger %s: %w: it is damaged; keep it, and restore a backup: %s (%w)", path, ErrNotLedger, afterRestoring, err)
	case codeCantOpen:
		return fmt.Errorf("ledger %s cannot be opened: this user needs to read the file and to write its folder; to read a copy, "+
			"copy the file and its -wal together into a folder of your own (%w)", path, err)
	case codeIOErr, codeProtocol:
		return fmt.Errorf("ledger %s cannot be read or written: is the disk full or broken, or the folder on a network? "+
			"A ledger needs a local disk (%w)", path, err)
	}
	return fmt.Errorf("ledger %s: %w", path, err)
}

// cannotShare reports whether a file could not be opened because its locks cannot be written.
func cannotShare(err error) bool {
	code := primary(err)
	return code == codeReadOnly || code == codeCantOpen
}
