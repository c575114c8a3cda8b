// Package checkpoint signs the tree head of a ledger's log, has witnesses cosign it, and proves
// single runs against it.
//
// The formats are those of c2sp.org: signed-note, tlog-checkpoint, tlog-cosignature, tlog-witness
// and tlog-proof. Other programs can read the files that this package writes.
//
// # What a checkpoint shows
//
// A checkpoint has the log's origin, its number of entries, and the root of its Merkle tree (RFC
// 6962). A log that contains a checkpoint's entries unchanged has the same root at that size. So a
// checkpoint that is stored elsewhere reveals that entries were changed, removed or put back to an
// older copy. The log's key shows who signed, not that there is only one log: only a witness, which
// cosigns one history of an origin, reveals a second one.
//
// # The proof of a run
//
// A proof is a c2sp.org/tlog-proof@v1 of the run's last entry. Its extra data has one line for each
// entry of the run, in order: the leaf in the form of the log. If the leaf's events are a reference
// ("@sha256:…"), the next line is the text of the events. The inclusion proof covers the last
// entry, and each entry names the leaf hash of the previous one.
package checkpoint
