// Package tail keeps the last commits of a ledger beside it, in a file to which they are appended with one flush each,
// until somebody brings many of them into the ledger at once.
//
// Beside the ledger FILE stand FILE-tail, which has the commits, and FILE-tail-bell, which is only locked. Neither is
// ever removed, and neither means anything without the ledger: whoever copies or moves a ledger that nobody has ended
// properly must take FILE-tail along.
//
// # Who may do what
//
// The lock of FILE-tail is one of flock(2), which the operating system lets go of when its process ends, however it
// ends.
//
//   - Whoever reads or writes the ledger itself holds the lock, shared or exclusive, as long as a transaction lasts,
//     and has asked [File.Pending] under it. While something is pending the ledger is not complete: [File.Left] has to
//     be brought into it first, under the exclusive lock, and [File.End] says that this was done.
//   - Whoever appends holds the exclusive lock from [File.Begin] on, brings what was appended into the ledger from time
//     to time and says so with [File.Restart], and lets go after a last time and [File.End].
//   - Whoever waits for the lock rings the bell with [File.Ring]; who appends asks [File.Rung] between two commits.
//     Ringing is a shared lock of the bell's file, so it ends with the process that rings.
//
// Package tail checks that the lock is held, and not that the ledger has what it should: "everything is elsewhere" is
// the word of the caller, who has it on disk there before he gives that word.
//
// # The file
//
// It has a header and, from byte 4,096 on, one record behind the other. All numbers are little-endian.
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
// A file that is empty, or zeros only, was never used. The first byte is never written, for Windows locks exactly that
// one. Before the file is used first it gets its whole length, written with zeros and flushed with its name: flushing a
// record then changes nothing but that record's blocks. No record is ever cut off or cleaned: a new generation makes all
// records before it bytes like others. Nobody outside knows a generation, so no record can have one in it.
//
// # What survives what
//
// When [File.Append] returns nil the record is on disk, and what ends a process or the power afterwards leaves it
// there. When it returns an error the record is not there, and will not be found later, unless the error is
// [ErrUndecided].
//
// A process that is killed leaves all records whole, save perhaps one that it was appending, which is whole, too, or
// not found. Whole, it was not acknowledged to anybody, and is brought in like the others: its caller was not told that
// it is not there.
//
// The power may fail between the header of [File.Begin], [File.Restart] or [File.End] and the next flush. Then the
// header before it may come back, and with it the records of its generation, all or some of them: the first may be
// overwritten. All of them are in the ledger, which is why the header need not be flushed; who brings in what is left
// sees that by what is in the records. So a whole record behind one that is not ([Record.Gap]) is no damage if the
// ledger has it already.
package tail
