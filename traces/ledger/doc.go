// Package ledger is the durable store of runs: what was asked, what was decided and by whom, what left, and what came
// back.
package ledger
