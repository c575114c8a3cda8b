// Package sqlite stores a ledger in one SQLite file.
//
// The file is in WAL mode and every commit is flushed (synchronous=FULL). One connection writes, a
// few read. While a process has a ledger open, it must not open the file in any other way: when a
// process closes a descriptor of a file, POSIX drops all its locks on that file. For the same
// reason Open refuses symbolic and hard links.
//
// Further files are beside FILE: FILE-wal and FILE-shm while it is open, and FILE.owners with one
// locked file for each process that owns runs.
package sqlite
