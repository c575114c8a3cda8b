// Package ledger is the durable record of runs: requests, decisions and who made them, calls, and
// results.
package ledger
