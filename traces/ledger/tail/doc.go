// Package tail stores the last commits of a ledger in a separate file. It appends each commit with one flush; the ledger's owner moves many commits into
// the ledger at once.
//
// For the ledger FILE, FILE-tail contains the commits, and FILE-tail-bell is only locked. The package never removes these files. If the last process did
// not close the ledger properly, copy or move FILE-tail together with FILE.
//
// # Locks
//
// The lock of FILE-tail is a flock(2) lock, which the operating system releases when the process ends.
//
//   - A process that reads or writes the ledger itself holds the lock, shared or exclusive, during each transaction, and calls [File.Pending] under the
//     lock. If commits are pending, the ledger is incomplete: under the exclusive lock, the process must first move the commits of [File.Left] into the
//     ledger, and then call [File.End].
//   - A process that appends holds the exclusive lock from [File.Begin] to [File.End]. From time to time it moves the appended commits into the ledger,
//     and then calls [File.Restart]. It does this a last time before [File.End].
//   - A process that waits for the lock calls [File.Ring], which takes a shared lock of FILE-tail-bell. The process that appends calls [File.Rung]
//     between commits, and sees that another process waits. The signal ends with the waiting process.
//
// Package tail checks that the lock is held, but not that the ledger contains the commits: before the caller calls Restart or End, it must have flushed
// them to the ledger.
//
// # The file
//
// The file has a header and, from byte 4,096 on, one record after the other. All numbers are little-endian.
//
//	512  16  "pgfsm tail v1" and zeros
//	528  16  generation: random bytes; zeros in a closed file
//	544   8  capacity: how long the file is at least, with its header; 0 before it has that length on disk
//	552   4  state: 1 open, 2 closed
//	556   4  CRC-32C of the 44 bytes before
//
// and each record
//
//	 0  16  generation
//	16   4  index: 0, 1, 2 and so on
//	20   4  length
//	24   4  CRC-32C of the 24 bytes before and of the record
//	28      record
//
// A file that is empty or has only zeros was never used. The first byte is never written, because Windows locks it. Before the first use, the file gets its
// whole length in zeros, and is flushed with its name; so flushing a record changes only that record's blocks. Records are never removed: a new generation
// makes all earlier records invalid. A generation is random and secret, so the content of a record cannot imitate one.
//
// # Crashes
//
// When [File.Append] returns nil, the record is on disk and survives a crash. When Append returns an error, the record is not in the file, unless the error
// is [ErrUndecided].
//
// A killed process leaves all records complete, except perhaps the one that it was appending. If that record is complete, it is moved into the ledger like
// the others: it was not acknowledged, but the caller was not told that it failed, either.
//
// The power may fail between the header of [File.Begin], [File.Restart] or [File.End] and the next flush. Then the file may have the previous header again,
// and some or all records of its generation; the first ones may be overwritten. The ledger contains all these records, so the header needs no flush; the
// process that moves records sees from their content that the ledger has them. So a complete record after an incomplete one ([Record.Gap]) is no damage if
// the ledger already has it.
package tail
