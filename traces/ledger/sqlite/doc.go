// Package sqlite keeps a ledger in one SQLite file.
//
// The file is in WAL mode and every commit is flushed (synchronous=FULL). One connection writes, a few read. A process must
// not open the file in any other way while it has it open here: POSIX drops all locks that a process has on a file when it
// closes any descriptor of it. For the same reason a file is found by one name only: symbolic and hard links are refused.
//
// Beside FILE stand FILE-wal and FILE-shm while it is open, FILE.owners with a locked file for each process that has runs
// in it, and FILE-tail, in which a Store that was opened with Options.Tail keeps commits before it brings many of them into
// FILE together. While it does, it holds the ledger: nobody else reads or writes it. See package tail.
package sqlite
