// Package ledger is the durable record of runs: requests, decisions and who made them, calls, and
// results.
//
// # Entries and rows
//
// The record is a log of entries. An [Entry] has the events that one commit adds to one run, or one
// event about no run; payloads.go lists the events. Its header is a leaf of a Merkle tree (RFC 6962)
// and is never removed; [Ledger.Prune] may remove its body. The rows of runs ([RunRow]), tokens and
// blocks are projections of the events, stored for queries. [Verify] computes them again and
// compares; [Rebuild] writes them again.
//
// # Writing
//
// A [Store] stores entries and rows, and does not know what they mean. A [Ledger] commits in one
// goroutine: operations that arrive together share a transaction and its flush. Each operation
// makes its checks within the transaction that records it, so of several concurrent callers, in any
// number of processes, one succeeds.
//
// A run's [RunRecorder] is the recorder of its machine. Before the machine holds a call or sends
// it, the steps so far are durable. A held run belongs to no process: [Ledger.Vote] decides,
// [Ledger.Claim] makes a process its owner, and [Ledger.Resume] executes the record again, judges
// the votes and makes the call at most once. [Ledger.Recover] ends the runs of processes that are
// gone.
//
// # Reading
//
// [Load] returns the record of one run, from which [Trace] derives its trace. [BoundOf] returns
// what approvers see and bind to. [TakeCheckpoint] and [Prove] state and prove what the log
// contains.
package ledger
